"""Measures of a rule of waiting on a stream: its costs and misses (docs/watermark.md, section 6).

Rules of this file:

* The machines of the model decide; this file only measures them, at the times of the arrivals.
* Rules of rooms ``watermark`` and ``slack`` are measured alike.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from model.slack.machine import Task as SlackTask
from model.vocabulary import Event, SlackConfig, Step, WatermarkConfig, task_of
from model.vocabulary.windows import Late, Result
from model.watermark.machine import Task as WatermarkTask

SHORT = 0.05
"""Share of a window's tuples without which its first answer counts as short."""


class Waiting(Protocol):
    """A task of either room."""

    number: int
    n_accepted: int
    t_max_us: int
    wm_us: int

    def arrive(self, event: Event, batch: int) -> list[Step]:
        """Take one arrival; return the steps it causes."""
        ...

    def flush(self, batch: int) -> list[Step]:
        """Close all windows; return the steps."""
        ...


class Measures(NamedTuple):
    """Figures of one run."""

    ratio: float | None
    """E (tuples a second), windows counted over all tasks; ``None`` if it is undefined."""
    coverage: float
    """Share of (tuple, window) pairs that a first answer contains."""
    mean_wait_us: float
    """Mean of t_max - wm over all accepted arrivals (us)."""
    short_windows: float
    """Share of windows whose first answer lacks ``SHORT`` or more, or does not exist."""


def tasks_of(config: WatermarkConfig | SlackConfig) -> Sequence[Waiting]:
    """Return the tasks of a query."""
    if isinstance(config, SlackConfig):
        return [SlackTask(config, number) for number in range(config.tasks)]
    return [WatermarkTask(config, number) for number in range(config.tasks)]


def measure(config: WatermarkConfig | SlackConfig, events: Sequence[Event]) -> Measures:
    """Measure a stream, with at least one accepted tuple, and its flush."""
    tasks = tasks_of(config)
    numbers = {key: task_of(key, config.tasks) for key in {event.key for event in events}}
    windows = config.windows
    opened_us: dict[tuple[int, int, str], int] = {}
    in_time: Counter[tuple[int, int, str]] = Counter()
    late: Counter[tuple[int, int, str]] = Counter()
    times_us: dict[tuple[int, str], dict[int, int]] = defaultdict(dict)
    waited_us = 0
    for event in events:
        task = tasks[numbers[event.key]]
        for step in task.arrive(event, 0):
            if isinstance(step, Result):
                in_time[step[:3]] = step.n_rcv
                parts = times_us[step.start_us, step.key]
                parts[step.task] = event.arrival_us - opened_us.pop(step[:3])
            elif isinstance(step, Late):
                late[step[:3]] += 1
        waited_us += task.t_max_us - task.wm_us
        key = event.key if config.keyed else ""
        for index in windows.indices(event.event_time_us):
            if windows.end_us(index) > task.wm_us:
                window = task.number, windows.start_us(index), key
                opened_us.setdefault(window, event.arrival_us)
    for task in tasks:
        for step in task.flush(1):
            if isinstance(step, Result):
                in_time[step[:3]] = step.n_rcv
                # The stream did not answer the whole window.
                times_us.pop((step.start_us, step.key), None)
    found = in_time.keys() | late.keys()
    short = sum(late[each] >= SHORT * (in_time[each] + late[each]) for each in found)
    return Measures(
        _ratio(times_us, in_time),
        in_time.total() / (in_time.total() + late.total()),
        waited_us / sum(task.n_accepted for task in tasks),
        short / len(found),
    )


def _ratio(
    times_us: Mapping[tuple[int, str], Mapping[int, int]],
    in_time: Mapping[tuple[int, int, str], int],
) -> float | None:
    """Return E: tuples of a window over all tasks, by the mean time of its parts.

    ``times_us`` holds the time to the answer of each task's part, by start and key of the window.
    """
    answered = sum(
        in_time[task, start_us, key]
        for (start_us, key), parts in times_us.items()
        for task in parts
    )
    lasted_us = sum(sum(parts.values()) / len(parts) for parts in times_us.values())
    return answered * 1e6 / lasted_us if lasted_us else None
