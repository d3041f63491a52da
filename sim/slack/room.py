"""Timed runs of room ``slack`` (docs/slack.md)."""

from functools import partial
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from model.slack.machine import MODEL, Task
from model.vocabulary import SlackConfig
from model.vocabulary.slack import Judged
from sim.kernel.distributions import FloatArray
from sim.kernel.recorder import Series, Summary
from sim.windows.machine import Gauges, Machine, ModelMachine
from sim.windows.room import TimedRoom
from sim.windows.seen import SeenRun
from sim.windows.series import means
from sim.windows.summary import mean


def machine_of(config: SlackConfig, number: int) -> Machine:
    """Return the model's machine of a task."""
    return ModelMachine(partial(MODEL.task_pipeline, config, number), _gauges)


def _gauges(task: Task) -> Gauges:
    return Gauges(task.slack_us, task.wm_us, task.factor.alpha)


def _described(config: SlackConfig) -> Summary:
    return {"control": config.control, "aggregate": config.aggregate, "tasks": config.tasks}


class Judgements(NamedTuple):
    """Judgements, a row each; see :class:`model.vocabulary.slack.Judged`."""

    at_us: FloatArray
    n_rcv: FloatArray
    n_late: FloatArray
    n_req: FloatArray
    miss: FloatArray


def judged(run: SeenRun) -> Judgements:
    """Return the judgements before the flush."""
    seen = [task.of(Judged) for task in run.observed.tasks]
    # A view of the fields, for there are many judgements.
    fields = itemgetter(*map(Judged._fields.index, ("batch", "n_rcv", "n_late", "n_req", "miss")))
    rows = [fields(step) for each in seen for step in each.steps]
    batch, *counts = np.array(rows, dtype=np.float64).reshape(-1, 5).T
    before = batch != run.observed.room.batches
    at_us = np.concatenate([each.at_us for each in seen])
    return Judgements(*[column[before] for column in (at_us, *counts)])


def _series(run: SeenRun) -> Series:
    """Return ``required_coverage``: of the windows judged in the interval."""
    found = judged(run)
    required = found.n_req / (found.n_rcv + found.n_late)
    return {"required_coverage": means(found.at_us, required, run.observed.grid_us)}


def _figures(run: SeenRun) -> Summary:
    """Return the shares of misses and of wrong answers: those with an error of ``eps`` or more."""
    errors = run.answers.errors(run.answers.by_stream)
    config = run.observed.room.query
    assert isinstance(config, SlackConfig)
    return {**mean("miss_share", judged(run).miss), **mean("wrong_share", errors >= config.eps)}


SLACK = TimedRoom(
    "slack",
    SlackConfig.from_json,
    machine_of,
    "slack_us",
    "alpha",
    _described,
    _series,
    _figures,
)
simulate = SLACK.simulate
replay = SLACK.replay
make_system = SLACK.make_system
