"""Room ``watermark`` on Spark: windows whose watermark follows the disorder (docs/watermark.md)."""

from dataclasses import replace
from functools import partial

import pyarrow as pa

from model.vocabulary import WatermarkConfig
from model.vocabulary.watermark import Clock, Inserted, Passing
from spark_impl.runtime.systems import system_maker
from spark_impl.watermark.rule import CLOCK, Memory, WatermarkRule
from spark_impl.watermark.upstream import INSERTION, PASSING, UpstreamMemory, UpstreamRule
from spark_impl.windows import answers, query, system, waiting
from spark_impl.windows import progress as figures
from spark_impl.windows.room import HOLDER, WindowRoom, WindowSettings, window_settings


def _settings(config: WatermarkConfig) -> WindowSettings:
    by_arrival = config.insert_every_us > 0 or config.idle_after_us is not None
    own = {"upstreams": config.upstreams, "times_arrivals": by_arrival}
    return window_settings(config, corrects=config.corrections, **own)


UPSTREAM = WindowRoom(
    name="watermark",
    read=WatermarkConfig.from_json,
    settings=_settings,
    rule=UpstreamRule,
    memory=UpstreamMemory(),
    progress={HOLDER: pa.int64()},
    records={"passing": PASSING, "inserted": INSERTION},
    words={"passing": Passing, "inserted": Inserted},
)
"""The room with operators upstream."""
WATERMARK = replace(
    UPSTREAM,
    rule=WatermarkRule,
    memory=Memory(),
    progress={},
    records={"clock": CLOCK},
    words={"clock": Clock},
    upstream=UPSTREAM,
)
"""The room; every task has a clock of its own."""


class WatermarkQuery(query.WindowedQuery[WatermarkConfig]):
    """Windows over a history, with a watermark that follows the disorder of the last arrivals.

    Late tuples are a side output (:func:`late`), or are corrected if the configuration says so.
    Arguments and errors are those of :class:`spark_impl.windows.query.WindowedQuery`.
    """

    room = WATERMARK


results = partial(answers.results, WATERMARK)
"""Returns current answers, as :func:`spark_impl.windows.answers.results` does."""
late = partial(answers.late, WATERMARK)
"""Returns a row for each late (tuple, window) (:func:`spark_impl.windows.answers.late`)."""
rejected = partial(answers.rejected, WATERMARK)
"""Returns a row for each refused arrival (:func:`spark_impl.windows.answers.rejected`)."""
corrections = partial(answers.corrections, WATERMARK)
"""Returns a row for each correction, as :func:`spark_impl.windows.answers.corrections` does."""
pending = partial(waiting.pending, WATERMARK)
"""Returns each row that waits, as :func:`spark_impl.windows.waiting.pending` does."""
progress = partial(figures.progress, WATERMARK)
"""Returns the figures of the last micro-batch of a store, without Spark."""

run_workloads = partial(system.run_workloads, WATERMARK)
"""Runs many workloads of one configuration in one query."""
run_in_process = partial(system.run_in_process, WATERMARK)
"""Runs a workload without Spark; returns the steps of the stream part."""
make_system = system_maker("watermark", run_workloads)
