"""Timed runs of room ``watermark`` (docs/watermark.md)."""

from functools import partial

import numpy as np

from model.vocabulary import WatermarkConfig
from model.watermark.machine import MODEL, Task
from sim.kernel.plan import Plan
from sim.kernel.recorder import Summary
from sim.kernel.run import TimedRun
from sim.timed_figures import Panel, PanelLine
from sim.timed_room import TimedRoom
from sim.windows.machine import MachineOf, ModelWindowMachine, WindowGauges, WindowMachine
from sim.windows.observations import Observations
from sim.windows.room import WindowWords, simulate_windows, window_plot


def machine_of(config: WatermarkConfig, number: int) -> WindowMachine:
    """Return the model's machine of a task."""
    return ModelWindowMachine(partial(MODEL.task_pipeline, config, number), _gauges)


def _gauges(task: Task) -> WindowGauges:
    return WindowGauges(task.wait_us, task.wm_us, disorder_of(task))


def disorder_of(task: Task) -> float:
    """Return the disorder D of a task's micro-cluster."""
    n = len(task.cluster)
    return task.cluster.inv / (n * (n - 1) // 2) if n > 1 else 1.0


def _describe(config: WatermarkConfig) -> Summary:
    return {
        "reading": config.reading,
        "k": config.k,
        "aggregate": config.aggregate,
        "tasks": config.tasks,
    }


def _figures(observed: Observations) -> Summary:
    """Return E of docs/watermark.md, section 6, in tuples a second, if it is defined.

    The time of a window lasts from the service of its first tuple until its answer.
    """
    answered = observed.answers.by_stream
    opened_us = np.concatenate([pairs.opened_us for pairs in observed.pairs])
    lasted_us = sum((answered.at_us - opened_us).tolist())
    if not lasted_us:
        return {}
    return {"performance_ratio": int(answered.n_rcv.sum()) * 1e6 / lasted_us}


WORDS = WindowWords("watermark", "wait_us", "disorder", _describe, more_figures=_figures)


def simulate(
    plan: Plan,
    config: WatermarkConfig,
    seed: int,
    *,
    machine: MachineOf[WatermarkConfig] = machine_of,
) -> TimedRun:
    """Run a plan through the room; see :func:`sim.windows.room.simulate_windows`."""
    return simulate_windows(WORDS, plan, config, seed, machine)


PLOT = window_plot(
    "wait_us",
    "wait",
    lambda summary: f"{summary['aggregate']}, reading {summary['reading']}, k = {summary['k']}",
    Panel("Disorder of the last arrivals", "D", (PanelLine("disorder", "mean of the tasks"),)),
    Panel(
        "Tuples that answers contained",
        "% of the window's tuples",
        (PanelLine("coverage", "mean", 0.01),),
        is_from_0=False,
    ),
)
TIMED_ROOM = TimedRoom(WatermarkConfig.from_json, simulate, PLOT)
