"""Promise 4 of docs/watermark.md: the operator in process does what the model does.

``test_spark.py`` does the same on Spark.
"""

from collections import Counter

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from model.vocabulary import Event, WatermarkConfig, Workload
from model.vocabulary.watermark import READINGS
from model.vocabulary.windows import AGGREGATES
from model.watermark.variants import VARIANTS
from properties import stream_packs
from straggler.rooms import find_room
from straggler.strategies.streams import cuts
from straggler.strategies.watermark import cases
from tests.properties.watermark.test_model import NEEDED, changed, unbatched

WATERMARK = find_room("watermark")
UPSTREAMS = (0, 0, 1, 2, 3)
SECOND_US = 1_000_000


def reversed_far() -> Workload:
    """Return hours of tuples in reverse order; one arrival makes more than 255 pairs."""
    config = WatermarkConfig(3_600 * SECOND_US, 3_600 * SECOND_US, 60 * SECOND_US, k=280)
    times_us = [20 * SECOND_US * number for number in reversed(range(300))]
    events = [Event(n, n, "a", time_us, 1.0, times_us[0] + n) for n, time_us in enumerate(times_us)]
    return Workload("watermark", tuple(events), config.to_json(), (150,))


@settings(max_examples=2 * settings().max_examples)
@example(case=VARIANTS["ties_reversed"].example)
@example(case=VARIANTS["cluster_per_batch"].example)
@example(case=changed(VARIANTS["pairs_left_behind"].example, max_wait_us=10**18))
@example(case=reversed_far())
@example(case=VARIANTS["greatest_of_upstreams"].example)
@given(case=cases(READINGS, upstreams=UPSTREAMS))
def test_operator_in_process_equals_model(case: Workload) -> None:
    observed = WATERMARK.in_process(case)
    expected = WATERMARK.reference()(case)
    difference = WATERMARK.compare(case, expected, observed, WATERMARK.in_process_step_types)
    assert not difference.mismatches, "\n".join(difference.sentences)


def test_cases_in_process_contain_what_matters(seed: int) -> None:
    drawn = stream_packs.collect(cases(READINGS, upstreams=UPSTREAMS), 200, seed)
    guards = Counter[str]()
    for case in drawn:
        guards.update(WATERMARK.check(case, WATERMARK.reference()(case)).guards)
    for guard in (*NEEDED, "passings", "insertions", "insertions past an idle operator"):
        assert guards[guard], f"there were no {guard}"
    assert {case.config["aggregate"] for case in drawn} == set(AGGREGATES)
    assert {case.config["reading"] for case in drawn} == set(READINGS)


NOT_IN_PROCESS = {"clears_first", "gamma_only", "ignores_flushes", "rejected_rows_do_not_matter"}
"""Planted bugs of corrections and final answers, which do not run in process."""


@pytest.mark.parametrize("bug", sorted({*VARIANTS} - NOT_IN_PROCESS))
def test_comparison_sees_every_planted_bug(bug: str) -> None:
    case = VARIANTS[bug].example
    observed, wrong = WATERMARK.in_process(case), VARIANTS[bug].make_system()(case)
    assert WATERMARK.compare(case, wrong, observed, WATERMARK.in_process_step_types).mismatches


@given(case=cases(READINGS, upstreams=UPSTREAMS), data=st.data())
def test_cuts_change_nothing_in_process(case: Workload, data: st.DataObject) -> None:
    every = case.with_(config={**case.config, "clocks": "arrivals"})
    recut = every.with_(cuts=data.draw(cuts(len(case.arrivals))))
    assert unbatched(WATERMARK.in_process(recut)) == unbatched(WATERMARK.in_process(every))
