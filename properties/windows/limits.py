"""What would take all day, or all memory, is refused before it is begun."""

from collections.abc import Callable, Mapping
from typing import Any

from model.vocabulary import SlackConfig, WatermarkConfig, Workload
from properties.data.durations import LONGEST_US, write_duration
from properties.errors import UsageError
from sim.settings import AUTO

WINDOWS_MAX = 10_000
"""Windows that a tuple may be in: a run takes time and memory for each of them."""
TASKS_MAX = 10_000
"""Each has a state, a clock and what else says how long it waits."""
MESSAGES_MAX = 100_000
"""Of each source of a timed run."""


def refuse_query(
    size: str, size_us: int, slide: str, slide_us: int, tasks_name: str, tasks: int
) -> None:
    """Refuse a query whose tuples would be in too many windows, or that has too many tasks.

    ``size``, ``slide`` and ``tasks_name`` are what the user calls these settings. Raises
    :class:`UsageError` with one sentence that names the offending value.
    """
    windows = -(-size_us // slide_us)
    if windows > WINDOWS_MAX:
        raise UsageError(
            f"{size} {write_duration(size_us)} and {slide} {write_duration(slide_us)} put every"
            f" tuple into {windows:,} windows; at most {WINDOWS_MAX:,} are allowed"
        )
    if tasks > TASKS_MAX:
        raise UsageError(f"{tasks_name} is {tasks}; at most {TASKS_MAX:,} are allowed")


def refuse_workload(
    read: Callable[[Mapping[str, Any]], SlackConfig | WatermarkConfig], workload: Workload
) -> None:
    """Refuse a stored workload with such a query; :class:`UsageError` if it has no query at all."""
    try:
        config = read(workload.config)
    except (TypeError, ValueError) as error:
        raise UsageError(str(error)) from error
    refuse_query("size_us", config.size_us, "slide_us", config.slide_us, "tasks", config.tasks)


def refuse_settings(defaults: Mapping[str, object], settings: Mapping[str, str]) -> None:
    """Refuse settings of a timed run with which it would not end; others are for the run to judge.

    ``defaults`` is for settings that are not given. Raises :class:`UsageError` with one sentence
    that names the offending value.
    """
    for key, text in settings.items():
        number = _integer(text)
        if key.endswith("_us") and number is not None and abs(number) > LONGEST_US:
            raise UsageError(f"{key} is {text}; it must be at most {LONGEST_US}")
    messages = _integer(settings.get("messages", AUTO))
    if messages is not None and messages > MESSAGES_MAX:
        raise UsageError(
            f"messages is {messages}; at most {MESSAGES_MAX:,} of each source are sent"
        )
    size_us, slide_us, tasks = (
        _integer(str(settings.get(key, defaults[key]))) for key in ("size_us", "slide_us", "tasks")
    )
    if size_us and slide_us and slide_us > 0:
        refuse_query("size_us", size_us, "slide_us", slide_us, "tasks", tasks or 0)


def _integer(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None
