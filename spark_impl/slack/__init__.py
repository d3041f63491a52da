"""Room ``slack`` on Spark: adaptive K-slack windows that end exact (docs/slack.md)."""

from functools import partial

import pyarrow as pa

from model.vocabulary import SlackConfig
from model.vocabulary.slack import Judged, Progress
from spark_impl.runtime.systems import system_maker
from spark_impl.slack.judgement import JUDGED
from spark_impl.slack.rule import Memory, SlackRule
from spark_impl.windows import answers, query, system, waiting
from spark_impl.windows import progress as figures
from spark_impl.windows.room import WindowRoom, WindowSettings, window_settings


def _settings(config: SlackConfig) -> WindowSettings:
    return window_settings(config, corrects=True)


SLACK = WindowRoom(
    name="slack",
    read=SlackConfig.from_json,
    settings=_settings,
    rule=SlackRule,
    memory=Memory(),
    progress={"max_delay_us": pa.int64(), "alpha": pa.float64()},
    records={"judged": JUDGED},
    words={"judged": Judged, "progress": Progress},
)


class SlackQuery(query.WindowedQuery[SlackConfig]):
    """Adaptive K-slack windows over a history, whose answers end exact.

    Arguments and errors are those of :class:`spark_impl.windows.query.WindowedQuery`.
    """

    room = SLACK


results = partial(answers.results, SLACK)
"""Returns current answers, as :func:`spark_impl.windows.answers.results` does."""
rejected = partial(answers.rejected, SLACK)
"""Returns a row for each refused arrival (:func:`spark_impl.windows.answers.rejected`)."""
corrections = partial(answers.corrections, SLACK)
"""Returns a row for each correction, as :func:`spark_impl.windows.answers.corrections` does."""
pending = partial(waiting.pending, SLACK)
"""Returns each row that waits, as :func:`spark_impl.windows.waiting.pending` does."""
progress = partial(figures.progress, SLACK)
"""Returns the figures of the last micro-batch of a store, without Spark."""
run_workloads = partial(system.run_workloads, SLACK)
"""Runs many workloads of one configuration in one query."""
run_in_process = partial(system.run_in_process, SLACK)
"""Runs a workload without Spark; returns the steps of the stream part."""
make_system = system_maker("slack", run_workloads)
