"""The stream side alone: one task whose work takes no time, for streams of half a million tuples.

The hybrid processing model was tried on 544,223 and 559,211 tuples. What its figures show (buffer,
latency, accuracy) follows from arrivals and control; workers add next to nothing. So these runs
have no workers, and need a tenth of the time and memory of a timed run.

Rules of this file:

* The model decides; this file only looks on (``sim/slack/stream_figures.py`` has the figures).
* Positions in the order of arrival decide what was in time, because times may be equal.
"""

import gc
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from model.slack.machine import Task
from model.slack.rules import RULES
from model.vocabulary import Event, SlackConfig, Step
from model.vocabulary.settings import JsonObject, Setting, pick, read_settings, schema
from model.vocabulary.slack import Judged
from model.vocabulary.windows import Result, Revision
from model.windows.pipeline import TaskPipeline
from sim.kernel.distributions import FloatArray
from sim.kernel.log import simulate_arrivals
from sim.kernel.plan import Plan
from sim.kernel.run import uncollected
from sim.slack.stream_figures import Course, FirstAnswer, Revised, figures_at
from sim.sweep.measurable import AT, MOMENT, Figures, Measurable, Settings
from sim.windows.settings import TRIGGER, StreamSettings

CONTROL = "control"


class _Observer:
    """Takes arrivals through one task and notes what its steps say."""

    def __init__(self, pipeline: TaskPipeline[Task], interval_us: int, epoch_us: int) -> None:
        self.first: list[FirstAnswer] = []
        self.revised: list[Revised] = []
        self.judged: list[Judged] = []
        self._pipeline, self._interval_us, self._epoch_us = pipeline, interval_us, epoch_us

    def follow(self, events: Sequence[Event]) -> FloatArray:
        """Take all arrivals and a flush; return K (us) as each arrival met it."""
        slack_us = np.empty(len(events))
        task, interval_us = self._pipeline.task, self._interval_us
        batch, due_us = 0, None
        for row, event in enumerate(events):
            came_us = event.arrival_us - self._epoch_us
            if due_us is not None and came_us >= due_us:
                self._look(self._pipeline.end_batch(batch), due_us, row)
                batch, due_us = batch + 1, None
            if due_us is None:
                due_us = (came_us // interval_us + 1) * interval_us
            self._look(self._pipeline.arrive(event, batch), due_us, row)
            slack_us[row] = task.slack_us
        end_us = due_us or 0
        self._look(self._pipeline.end_batch(batch), end_us, len(events))
        # What only the flush answers counts in no figure about first answers.
        flushed = self._pipeline.flush(batch + 1)
        kept = [step for step in flushed if not isinstance(step, Result | Judged)]
        self._look(kept, end_us, len(events))
        return slack_us

    def _look(self, steps: Iterable[Step], at_us: int, row: int) -> None:
        for step in steps:
            if isinstance(step, Judged):
                self.judged.append(step)
            elif isinstance(step, Result):
                self.first.append(FirstAnswer(step.start_us, row, step.value, step.n_rcv))
            elif isinstance(step, Revision):
                self.revised.append(Revised(at_us, step.start_us, step.value))


def pipeline_of(config: SlackConfig) -> TaskPipeline[Task]:
    """Return one task, with corrections unless its control is AQ-K-slack, which makes none."""
    return TaskPipeline(config, Task(config, 0), RULES, corrects=config.control != "aq")


def course_of(values: JsonObject, events: Sequence[Event], epoch_us: int) -> Course:
    """Run one task over the arrivals; return what could be seen."""
    config = pick(SlackConfig, values, keyed=False, tasks=1)
    observer = _Observer(pipeline_of(config), values[TRIGGER.name], epoch_us)
    slack_us = observer.follow(events)
    return Course(
        config, events, epoch_us, slack_us, observer.first, observer.revised, observer.judged
    )


def _several(texts: Settings, seed: int, name: str, levels: Sequence[str]) -> list[Figures]:
    """Return the figures for several values of one setting, on the same arrivals."""
    values = read_settings({key: text for key, text in texts.items() if key != name}, SETTINGS)
    read = [SETTINGS[name].read(level) for level in levels]
    plan = pick(StreamSettings, values).plan(seed)
    try:
        with uncollected():
            return _on_arrivals(values, seed, plan, name, read)
    finally:
        # The log of a run refers to itself; without this, each run would leave its tuples behind.
        gc.collect()


def _on_arrivals(
    values: JsonObject, seed: int, plan: Plan, name: str, levels: Sequence[Any]
) -> list[Figures]:
    events = simulate_arrivals(plan, seed).events
    if name == AT:
        course = course_of(values, events, plan.epoch_us)
        return [figures_at(course, moment) for moment in levels]
    moment = values[AT]
    return [
        figures_at(course_of({**values, name: each}, events, plan.epoch_us), moment)
        for each in levels
    ]


def measure_controls(texts: Settings, seed: int, levels: Sequence[str]) -> list[Figures]:
    """Return the figures under several controls, on the same arrivals."""
    return _several(texts, seed, CONTROL, levels)


def measure_moments(texts: Settings, seed: int, levels: Sequence[str]) -> list[Figures]:
    """Return the figures at several moments of one run."""
    return _several(texts, seed, AT, levels)


def measure_stream(texts: Settings, seed: int) -> Figures:
    """Return the figures of one run."""
    return measure_moments(texts, seed, [texts.get(AT, MOMENT.write(MOMENT.default))])[0]


def _settings() -> dict[str, Setting]:
    """Return the settings of these runs: those of a query of one task that ignores keys."""
    fixed = ("tasks", "keyed")
    sizes = {"size_us": 500_000, "slide_us": 100_000}
    known = schema(StreamSettings, SlackConfig, without=fixed, **sizes)
    return {**known, TRIGGER.name: TRIGGER, AT: MOMENT}


SETTINGS: Mapping[str, Setting] = _settings()
STREAM = Measurable(SETTINGS, measure_stream, {AT: measure_moments, CONTROL: measure_controls})
