"""Room ``watermark`` in time (docs/watermark.md)."""

from collections.abc import Sequence
from operator import attrgetter

import numpy as np

from model.vocabulary import WatermarkConfig, Workload
from model.watermark.machine import Task
from model.watermark.quick import Quick
from model.windows.correction import nothing_scored
from sim.windows.observed import Observed
from sim.windows.series import Series, series_of
from sim.windows.summary import Summary, summary_of
from sim.windows.task import Rule
from sim.windows.timed import Cluster, Room


def room_of(
    workload: Workload,
    cluster: Cluster,
    start_us: int,
    ends_us: Sequence[float] | None = None,
    sample_at_us: Sequence[float] = (),
) -> Room[Task]:
    """The room for a workload; see :class:`sim.windows.timed.Room`."""
    config = WatermarkConfig.from_json(workload.config)
    rule = Rule(
        config,
        lambda number: Task(config, number),
        lambda task, _batch, is_flush: () if is_flush else task.end_batch(),
        nothing_scored if config.corrections else None,
        Quick,
        wait_us=attrgetter("wait_us"),
        share=disorder_of,
    )
    return Room(workload, rule, cluster, start_us, ends_us, sample_at_us)


def disorder_of(task: Task) -> float:
    """D of a task's micro-cluster."""
    n = len(task.cluster)
    return task.cluster.inv / (n * (n - 1) // 2) if n > 1 else 1.0


def timeline(run: Observed[Task]) -> Series:
    """Columns of :func:`sim.windows.series.series_of`, ``wait_us`` and ``disorder``."""
    return series_of(run, "wait_us", "disorder")


def figures(run: Observed[Task]) -> Summary:
    """Figures of :func:`sim.windows.summary.summary_of`, and the performance ratio."""
    ratio = performance_ratio(run)
    return {
        **summary_of(run, "wait_us"),
        **({} if ratio is None else {"performance_ratio": ratio}),
    }


def performance_ratio(run: Observed[Task]) -> float | None:
    """E of docs/watermark.md, section 6, in tuples a second; None where it is undefined.

    In time: from when a window's first tuple was served to when its answer was given.
    """
    answered = run.answers.by_stream
    opened_us = np.concatenate([pairs.opened_us for pairs in run.pairs])
    lasted_us = sum((answered.at_us - opened_us).tolist())
    return int(answered.n_rcv.sum()) * 1e6 / lasted_us if lasted_us else None
