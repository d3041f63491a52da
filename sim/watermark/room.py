"""Timed runs of room ``watermark`` (docs/watermark.md)."""

from functools import partial

import numpy as np

from model.vocabulary import WatermarkConfig
from model.watermark.machine import MODEL, Task
from model.watermark.rules import RULES
from model.watermark.upstream import upstreams_of
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
    n = len(task.cluster)
    share = task.cluster.inv / (n * (n - 1) // 2) if n > 1 else 1.0  # disorder D
    if task.config.upstreams:
        # The clusters are upstream; the share of the longest wait is seen in the watermark.
        share = min(1.0, task.wait_us / max(task.config.max_wait_us, 1))
    return WindowGauges(task.wait_us, task.wm_us, share)


def _describe(config: WatermarkConfig) -> Summary:
    return {
        "reading": config.reading,
        "k": config.k,
        "aggregate": config.aggregate,
        "tasks": config.tasks,
    }


def _figures(observed: Observations) -> Summary:
    """Return both forms of E (docs/watermark.md, section 6), in tuples a second, if defined.

    The time of a task's part of a window lasts from the service of its first tuple until its
    answer. A window of which the flush answered a part is left out.
    """
    answers = observed.answers
    keys = np.array([observed.run.keys[each.key] for each in answers.windows], dtype=np.int64)
    names = np.stack([answers.start_us, keys], axis=1)
    window = np.unique(names, axis=0, return_inverse=True)[1].reshape(-1)
    cut_off = window[answers.first.window[answers.first.is_flush]]
    opened_us = np.concatenate([pairs.opened_us for pairs in observed.pairs])
    whole = ~np.isin(window[answers.by_stream.window], cut_off)
    parts, opened_us = answers.by_stream.select(whole), opened_us[whole]
    windows, window = np.unique(window[parts.window], return_inverse=True)
    mean_us = np.bincount(window, parts.at_us - opened_us) / np.bincount(window)
    first_us, last_us = np.full(len(windows), np.inf), np.zeros(len(windows))
    np.minimum.at(first_us, window, opened_us)
    np.maximum.at(last_us, window, parts.at_us)
    tuples = int(parts.n_rcv.sum())
    lasted_us = {
        "performance_ratio": float(mean_us.sum()),
        "performance_ratio_last": float((last_us - first_us).sum()),
    }
    return {name: tuples * 1e6 / each_us for name, each_us in lasted_us.items() if each_us}


WORDS = WindowWords("watermark", "wait_us", "disorder", _describe, more_figures=_figures)


def simulate(
    plan: Plan,
    config: WatermarkConfig,
    seed: int,
    *,
    machine: MachineOf[WatermarkConfig] = machine_of,
) -> TimedRun:
    """Run a plan through the room; see :func:`sim.windows.room.simulate_windows`."""
    upstream = upstreams_of(config, RULES)
    return simulate_windows(WORDS, plan, config, seed, machine, upstream)


PLOT = window_plot(
    "wait_us",
    "wait",
    lambda summary: f"{summary['aggregate']}, reading {summary['reading']}, k = {summary['k']}",
    Panel(
        "Disorder D of the last arrivals",
        "share of pairs reversed",
        (PanelLine("disorder", "mean of the tasks"),),
    ),
    Panel(
        "Tuples that answers contained",
        "% of the window's tuples",
        (PanelLine("coverage", "mean", 0.01),),
        is_from_0=False,
    ),
)
TIMED_ROOM = TimedRoom(WatermarkConfig.from_json, simulate, PLOT)
