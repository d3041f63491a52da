"""Room ``slack`` in time (docs/slack.md)."""

from collections.abc import Sequence
from operator import attrgetter, itemgetter
from typing import NamedTuple

import numpy as np

from model.slack.assumption import scored
from model.slack.machine import Task
from model.slack.quick import Quick
from model.vocabulary import SlackConfig, Workload
from model.vocabulary.slack import Judged
from sim.distributions import FloatArray
from sim.windows.observed import Observed
from sim.windows.series import Series, means, series_of
from sim.windows.summary import Summary, mean, summary_of
from sim.windows.task import Rule
from sim.windows.timed import Cluster, Room


class Judgements(NamedTuple):
    """Judgements, a row each; see :class:`model.vocabulary.slack.Judged`."""

    at_us: FloatArray
    n_rcv: FloatArray
    n_late: FloatArray
    n_req: FloatArray
    miss: FloatArray


def room_of(
    workload: Workload,
    cluster: Cluster,
    start_us: int,
    ends_us: Sequence[float] | None = None,
    sample_at_us: Sequence[float] = (),
) -> Room[Task]:
    """The room for a workload; see :class:`sim.windows.timed.Room`."""
    config = SlackConfig.from_json(workload.config)
    rule = Rule(
        config,
        lambda number: Task(config, number),
        lambda task, batch, _is_flush: (task.progress(batch),),
        scored(config),
        Quick,
        wait_us=attrgetter("slack_us"),
        share=lambda task: task.factor.alpha,
    )
    return Room(workload, rule, cluster, start_us, ends_us, sample_at_us)


def judged(run: Observed[Task]) -> Judgements:
    """Judgements before the flush."""
    seen = [task.of(Judged) for task in run.room.tasks]
    flush_batch = len(run.room.batches)
    # A view of the fields, for there are many judgements.
    fields = itemgetter(*map(Judged._fields.index, ("batch", "n_rcv", "n_late", "n_req", "miss")))
    rows = [fields(step) for each in seen for step in each.steps]
    batch, *counts = np.array(rows, dtype=np.float64).reshape(-1, 5).T
    before = batch != flush_batch
    at_us = np.concatenate([each.at_us for each in seen])
    return Judgements(*[column[before] for column in (at_us, *counts)])


def timeline(run: Observed[Task]) -> Series:
    """Columns of :func:`sim.windows.series.series_of`, ``slack_us`` and ``alpha``.

    And ``required_coverage``: of the windows judged in the interval.
    """
    series = series_of(run, "slack_us", "alpha")
    found = judged(run)
    required = found.n_req / (found.n_rcv + found.n_late)
    return {**series, "required_coverage": means(found.at_us, required, series["time_us"])}


def figures(run: Observed[Task]) -> Summary:
    """Figures of :func:`sim.windows.summary.summary_of`, shares of misses and of wrong answers.

    A first answer is wrong if its error is ``eps`` or more.
    """
    errors = run.answers.errors(run.answers.by_stream)
    eps = SlackConfig.from_json(run.room.workload.config).eps
    return {
        **summary_of(run, "slack_us"),
        **mean("miss_share", judged(run).miss),
        **mean("wrong_share", errors >= eps),
    }
