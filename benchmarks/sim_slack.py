"""Speed of the timed room ``slack``, as measured by ``benchmarks/_timed_rooms.py``.

``standard_...`` is the run of the default settings. The others are of the stream of
``benchmarks/slack_model.py`` (five windows a tuple, 16 keys, conformal control) at two unequal
tasks, each at about half of its capacity, with a micro-batch a second: ``timed_...`` is the event
loop of that run. ``model_...`` is the model's task alone, given each tuple by itself: no run is
faster.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from time import process_time

from benchmarks._timed_rooms import paces, parts, standard
from benchmarks.slack_model import CONFIG, arrivals
from model.slack.machine import Task
from model.vocabulary import Event, task_of
from sim.kernel.distributions import Exponential
from sim.kernel.plan import Cluster, Plan, Worker, replay
from sim.kernel.run import TimedRun
from sim.slack import from_settings, simulate

QUERY = replace(CONFIG, tasks=2)
CLUSTER = Cluster((Worker(), Worker(0.8)), Exponential(900.0))


def measure() -> dict[str, float]:
    """Medians over five rounds."""
    events = arrivals()
    plan = replay(events, "stream of the model's benchmark", cluster=CLUSTER)
    return {
        **standard(partial(from_settings, {})),
        **paces(len(events), lambda: _once(plan, events)),
    }


def _once(plan: Plan, events: Sequence[Event]) -> dict[str, float]:
    def run(seed: int) -> TimedRun:
        return simulate(plan, QUERY, seed)

    return {**parts("", run), "model_": _model_s(events)}


def _model_s(events: Sequence[Event]) -> float:
    """Return how long the tasks take for it by themselves."""
    tasks = [Task(QUERY, number) for number in range(QUERY.tasks)]
    owners = {key: tasks[task_of(key, len(tasks))] for key in {event.key for event in events}}
    started_s = process_time()
    for event in events:
        owners[event.key].arrive(event, 0)
    return process_time() - started_s
