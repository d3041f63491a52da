"""Limits of queries over windows: settings above them are refused."""

from collections.abc import Mapping

from model.vocabulary import Workload
from model.vocabulary.durations import write_duration
from model.vocabulary.settings import Setting, read_settings
from model.vocabulary.windows import WindowQuery
from straggler.errors import UsageError

WINDOWS_MAX = 10_000
"""Most windows that hold one tuple: each of them takes time and memory."""
TASKS_MAX = 10_000
"""Most tasks: each has a state and a clock of its own."""
MESSAGES_MAX = 100_000
"""Most messages of one source of a timed run."""


def refuse_query(
    size: str, size_us: int, slide: str, slide_us: int, tasks_name: str, tasks: int
) -> None:
    """Refuse a query with too many windows per tuple, or with too many tasks.

    ``size``, ``slide`` and ``tasks_name`` are the names that the user knows for these settings.
    Raise :class:`UsageError` with one sentence that names the offending value.
    """
    windows = -(-size_us // slide_us)
    if windows > WINDOWS_MAX:
        raise UsageError(
            f"{size} {write_duration(size_us)} and {slide} {write_duration(slide_us)} put every"
            f" tuple into {windows:,} windows; at most {WINDOWS_MAX:,} are allowed"
        )
    if tasks > TASKS_MAX:
        raise UsageError(f"{tasks_name} is {tasks}; at most {TASKS_MAX:,} are allowed")


def refuse_config(config: WindowQuery, _: Workload) -> None:
    """Raise :class:`UsageError` for too large a query of a stored workload."""
    refuse_query("size_us", config.size_us, "slide_us", config.slide_us, "tasks", config.tasks)


def refuse_settings(known: Mapping[str, Setting], settings: Mapping[str, str]) -> None:
    """Refuse settings of a timed run above their limits.

    ``known`` are all settings of the room. Raise :class:`UsageError` with one sentence that names
    the offending value, and ``ValueError`` for a value that is not allowed at all.
    """
    values = read_settings(settings, known)
    messages = values["messages"]
    if messages is not None and messages > MESSAGES_MAX:
        raise UsageError(
            f"messages is {messages}; at most {MESSAGES_MAX:,} of each source are sent"
        )
    size_us, slide_us, tasks = (values[key] for key in ("size_us", "slide_us", "tasks"))
    refuse_query("size_us", size_us, "slide_us", slide_us, "tasks", tasks)
