"""How fast the timed room ``slack`` is; ``benchmarks/_timed_rooms.py`` says how it is measured.

``standard_...`` is the run of the default settings. The others are of the stream of
``benchmarks/slack_model.py`` (five windows a tuple, 16 keys, conformal control) at two unequal
tasks, each at about half of its capacity, with a micro-batch a second: ``timed_...`` the timed run
alone, and without a prefix everything from the first arrival to the figures of the finished run.
``model_...`` is the machine of the model alone, which every timed run drives: no run is faster.
"""

from dataclasses import replace
from functools import partial
from time import process_time

from benchmarks._timed_rooms import paces, standard
from benchmarks.slack_model import CONFIG, arrivals
from model.slack.machine import Task
from model.vocabulary import Workload, task_of
from sim.batches import cut
from sim.cluster import Worker
from sim.collecting import uncollected
from sim.distributions import Exponential
from sim.slack import from_settings
from sim.slack.timed import figures, room_of, timeline
from sim.windows.observed import observe
from sim.windows.timed import Cluster

SAMPLES = 300
CLUSTER = Cluster(workers=(Worker(Exponential(1_000.0)), Worker(Exponential(500.0), speed=0.5)))


def measure() -> dict[str, float]:
    """Medians over five rounds."""
    events = tuple(arrivals())
    cuts, ends_us = cut(events, events[0].arrival_us, 1_000_000)
    workload = Workload("slack", events, replace(CONFIG, tasks=2).to_json(), cuts)
    return {
        **standard(partial(from_settings, {})),
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
    return {"": whole_s, "timed_": timed_s, "model_": _model_s(workload)}


def _model_s(workload: Workload) -> float:
    """How long the machines of the two tasks take for it by themselves."""
    config = replace(CONFIG, tasks=2)
    tasks = [Task(config, number) for number in range(config.tasks)]
    keys = {event.key for event in workload.arrivals}
    owners = {key: tasks[task_of(key, config.tasks)] for key in keys}
    started_s = process_time()
    for event in workload.arrivals:
        owners[event.key].arrive(event, 0)
    for task in tasks:
        task.flush(1)
    return process_time() - started_s
