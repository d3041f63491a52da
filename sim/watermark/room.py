"""Timed runs of room ``watermark`` (docs/watermark.md)."""

from functools import partial

import numpy as np

from model.vocabulary import WatermarkConfig
from model.watermark.machine import MODEL, Task
from sim.kernel.recorder import Summary
from sim.windows.machine import Gauges, Machine, ModelMachine
from sim.windows.room import TimedRoom
from sim.windows.seen import SeenRun


def machine_of(config: WatermarkConfig, number: int) -> Machine:
    """Return the model's machine of a task."""
    return ModelMachine(partial(MODEL.task_pipeline, config, number), _gauges)


def _gauges(task: Task) -> Gauges:
    return Gauges(task.wait_us, task.wm_us, disorder_of(task))


def disorder_of(task: Task) -> float:
    """Return D of a task's micro-cluster."""
    n = len(task.cluster)
    return task.cluster.inv / (n * (n - 1) // 2) if n > 1 else 1.0


def _described(config: WatermarkConfig) -> Summary:
    return {
        "reading": config.reading,
        "k": config.k,
        "aggregate": config.aggregate,
        "tasks": config.tasks,
    }


def _figures(run: SeenRun) -> Summary:
    ratio = performance_ratio(run)
    return {} if ratio is None else {"performance_ratio": ratio}


def performance_ratio(run: SeenRun) -> float | None:
    """Return E of docs/watermark.md, section 6, in tuples a second; None where it is undefined.

    In time: from when a window's first tuple was served to when its answer was given.
    """
    answered = run.answers.by_stream
    opened_us = np.concatenate([pairs.opened_us for pairs in run.pairs])
    lasted_us = sum((answered.at_us - opened_us).tolist())
    return int(answered.n_rcv.sum()) * 1e6 / lasted_us if lasted_us else None


WATERMARK = TimedRoom(
    "watermark",
    WatermarkConfig.from_json,
    machine_of,
    "wait_us",
    "disorder",
    _described,
    more_figures=_figures,
)
simulate = WATERMARK.simulate
replay = WATERMARK.replay
make_system = WATERMARK.make_system
