"""How fast the timed room ``slack`` is; ``benchmarks/_timed_rooms.py`` says how it is measured.

``standard_...`` is the run of the default settings. The others are of the stream of
``benchmarks/slack_model.py`` (five windows a tuple, 16 keys, conformal control) at two unequal
tasks, each at about half of its capacity, with a micro-batch a second: ``timed_...`` the timed run
alone, and without a prefix everything from the first arrival to the figures of the finished run.
``model_...`` is the model's task alone, given micro-batches as every timed run gives them to it:
no run is faster. ``one_by_one_...`` is its machine, given each tuple by itself.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from time import process_time

from model.slack.quick import Quick
from sim.slack.timed import figures, room_of, timeline
from sim.windows.timed import Cluster, Room

from benchmarks._timed_rooms import paces, standard
from benchmarks.slack_model import CONFIG, arrivals
from model.slack.machine import Task
from model.vocabulary import Event, Workload, task_of
from sim.kernel.distributions import Exponential
from sim.kernel.run import uncollected
from sim.kernel.station import Worker
from sim.kernel.trigger import cut
from sim.slack import from_settings
from sim.windows.observed import observe

SAMPLES = 300
CLUSTER = Cluster(workers=(Worker(Exponential(1_000.0)), Worker(Exponential(500.0), speed=0.5)))


def measure() -> dict[str, float]:
    """Medians over five rounds."""
    events = tuple(arrivals())
    cuts, ends_us = cut(events, events[0].arrival_us, 1_000_000)
    workload = Workload("slack", events, replace(CONFIG, tasks=2).to_json(), cuts)
    return {
        **standard(partial(from_settings, {}), Room),
        **paces(len(events), lambda: _once(workload, ends_us)),
    }


@uncollected()
def _once(workload: Workload, ends_us: tuple[float, ...]) -> dict[str, float]:
    sample_at_us = [ends_us[-1] * row / SAMPLES for row in range(1, SAMPLES)]
    start_us = workload.arrivals[0].arrival_us
    started_s = process_time()
    room = room_of(workload, CLUSTER, start_us, ends_us, sample_at_us)
    room.run()
    timed_s = process_time() - started_s
    room.trace()
    observed = observe(room)
    timeline(observed)
    figures(observed)
    whole_s = process_time() - started_s
    model_s, one_by_one_s = _model_s(workload, _at_once), _model_s(workload, _one_by_one)
    return {"": whole_s, "timed_": timed_s, "model_": model_s, "one_by_one_": one_by_one_s}


def _tasks() -> list[Task]:
    config = replace(CONFIG, tasks=2)
    return [Task(config, number) for number in range(config.tasks)]


def _at_once(task: Task, events: Sequence[Event], ends: Sequence[int]) -> None:
    quick = Quick(task, events)
    for batch, end in enumerate(ends):
        quick.until(end, batch)


def _one_by_one(task: Task, events: Sequence[Event], ends: Sequence[int]) -> None:
    for batch, (first, end) in enumerate(pairwise((0, *ends))):
        for event in events[first:end]:
            task.arrive(event, batch)


def _model_s(
    workload: Workload, take: Callable[[Task, Sequence[Event], Sequence[int]], None]
) -> float:
    """How long the two tasks take for it by themselves."""
    tasks = _tasks()
    keys = {event.key for event in workload.arrivals}
    owners = {key: task_of(key, len(tasks)) for key in keys}
    arrivals, bounds = workload.arrivals, [*workload.cuts, len(workload.arrivals)]
    rows = [
        [row for row, event in enumerate(arrivals) if owners[event.key] == task.number]
        for task in tasks
    ]
    given = [[arrivals[row] for row in own] for own in rows]
    ends = [[bisect_left(own, bound) for bound in bounds] for own in rows]
    started_s = process_time()
    for task, events, bounds in zip(tasks, given, ends, strict=True):
        take(task, events, bounds)
    return process_time() - started_s
