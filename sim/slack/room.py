"""Timed runs of room ``slack`` (docs/slack.md)."""

from functools import partial
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from model.slack.machine import MODEL, Task
from model.vocabulary import SlackConfig
from model.vocabulary.slack import Judged
from sim.kernel.distributions import FloatArray
from sim.kernel.plan import Plan
from sim.kernel.recorder import Series, Summary
from sim.kernel.run import TimedRun
from sim.timed_figures import Panel, PanelLine, mean, means
from sim.timed_room import TimedRoom
from sim.windows.machine import MachineOf, ModelWindowMachine, WindowGauges, WindowMachine
from sim.windows.observations import Observations
from sim.windows.room import WindowWords, simulate_windows, window_plot


def machine_of(config: SlackConfig, number: int) -> WindowMachine:
    """Return the model's machine of a task."""
    return ModelWindowMachine(partial(MODEL.task_pipeline, config, number), _gauges)


def _gauges(task: Task) -> WindowGauges:
    return WindowGauges(task.slack_us, task.wm_us, task.factor.alpha)


def _describe(config: SlackConfig) -> Summary:
    return {"control": config.control, "aggregate": config.aggregate, "tasks": config.tasks}


class Judgements(NamedTuple):
    """Judgements, a row each; see :class:`model.vocabulary.slack.Judged`."""

    at_us: FloatArray
    n_rcv: FloatArray
    n_late: FloatArray
    n_req: FloatArray
    miss: FloatArray


def judgements_of(observed: Observations) -> Judgements:
    """Return the judgements before the flush."""
    tasks = [task.of(Judged) for task in observed.run.tasks]
    # Only the fields that are needed: there are many judgements.
    fields = itemgetter(*map(Judged._fields.index, ("batch", "n_rcv", "n_late", "n_req", "miss")))
    rows = [fields(step) for each in tasks for step in each.steps]
    batch, *counts = np.array(rows, dtype=np.float64).reshape(-1, 5).T
    before = batch != observed.run.cluster.batches
    at_us = np.concatenate([each.at_us for each in tasks])
    return Judgements(*[column[before] for column in (at_us, *counts)])


def _series(observed: Observations) -> Series:
    """Return ``required_coverage``: mean over the windows judged in the interval."""
    found = judgements_of(observed)
    required = found.n_req / (found.n_rcv + found.n_late)
    return {"required_coverage": means(found.at_us, required, observed.run.grid_us)}


def _figures(observed: Observations) -> Summary:
    """Return the shares of misses and of wrong answers: those with an error of ``eps`` or more."""
    errors = observed.answers.errors(observed.answers.by_stream)
    config = observed.run.query
    assert isinstance(config, SlackConfig)
    misses = judgements_of(observed).miss
    return {**mean("miss_share", misses), **mean("wrong_share", errors >= config.eps)}


WORDS = WindowWords("slack", "slack_us", "alpha", _describe, _series, _figures)


def simulate(
    plan: Plan, config: SlackConfig, seed: int, *, machine: MachineOf[SlackConfig] = machine_of
) -> TimedRun:
    """Run a plan through the room; see :func:`sim.windows.room.simulate_windows`."""
    return simulate_windows(WORDS, plan, config, seed, machine)


PLOT = window_plot(
    "slack_us",
    "slack K",
    lambda summary: f"{summary['aggregate']}, control {summary['control']}",
    Panel(
        "Tuples that first answers contained",
        "% of the window's tuples",
        (
            PanelLine("coverage", "contained", 0.01),
            PanelLine("required_coverage", "required", 0.01),
        ),
        is_from_0=False,
    ),
)
TIMED_ROOM = TimedRoom(SlackConfig.from_json, simulate, PLOT)
