"""Hypothesis strategies: queries whose watermark follows the disorder, and streams for them.

Rules of this file:

1. Streams are those of ``strategies/streams``: a simulation makes them, with calm and stormy
   phases.
2. Clusters are smaller than a stream; waits range from none to more than several windows.
3. The literal reading is drawn only on request, because it does not keep the promises.
"""

from collections.abc import Sequence

from hypothesis import strategies as st

from model.vocabulary import WatermarkConfig, Workload
from model.vocabulary.windows import AGGREGATES
from straggler.strategies.networks import upto
from straggler.strategies.streams import UNIT_US, timings, workloads
from straggler.strategies.timed_cases import TimedCase

PROMISING = ("disorder", "scaled", "fixed")
"""Readings that keep the promises."""


@st.composite
def configs(
    draw: st.DrawFn,
    readings: Sequence[str] = PROMISING,
    corrections: Sequence[bool] = (False, True),
    upstreams: Sequence[int] = (0,),
) -> WatermarkConfig:
    """Draw queries of every shape: overlapping, tumbling and gapped windows, odd limits.

    With ``upstreams`` there are no corrections and every clock is recorded.
    """
    operators = draw(st.sampled_from(upstreams))
    slide_us = draw(st.sampled_from([4, 6, 7])) * UNIT_US
    size_us = draw(st.sampled_from([slide_us, 3 * slide_us, slide_us // 2, 9 * UNIT_US]))
    return WatermarkConfig(
        size_us=size_us,
        slide_us=slide_us,
        max_wait_us=draw(st.sampled_from([size_us, size_us // 3, 4 * size_us + 1, 0])),
        reading=draw(st.sampled_from(readings)),
        k=draw(st.sampled_from([3, 2, 5, 8, 50, 1])),
        aggregate=draw(st.sampled_from(AGGREGATES)),
        q=draw(st.sampled_from([0.1, 0.25, 0.9])),
        keyed=draw(st.booleans()),
        tasks=draw(st.integers(1, 3)),
        corrections=draw(st.sampled_from([False] if operators else corrections)),
        clocks=draw(st.sampled_from(["arrivals"] * 3 + ["batches"] * (not operators))),
        upstreams=operators,
        insert_every_us=draw(upto(2 * size_us)) if operators else 0,
        idle_after_us=draw(st.none() | upto(2 * size_us, above=1)) if operators else None,
        feedback_us=draw(st.sampled_from([None, 0, 1, 3 * size_us])),
        gamma_us=draw(upto(8 * size_us)),
        max_age_us=draw(st.none() | upto(4 * size_us)),
        dedup=draw(st.sampled_from([True, True, False])),
    )


def cases(
    readings: Sequence[str] = PROMISING,
    corrections: Sequence[bool] = (False, True),
    upstreams: Sequence[int] = (0,),
) -> st.SearchStrategy[Workload]:
    """Draw a query and a stream for it."""
    return configs(readings, corrections=corrections, upstreams=upstreams).flatmap(workloads)


@st.composite
def timed_cases(
    draw: st.DrawFn,
    region: str | None = None,
    corrections: Sequence[bool] = (False, True),
    upstreams: Sequence[int] = (0,),
) -> TimedCase[WatermarkConfig]:
    """Draw a query and a cluster that serves it, in a region or in any."""
    config = draw(configs(corrections=corrections, upstreams=upstreams))
    return TimedCase(config, draw(timings(config, region)))
