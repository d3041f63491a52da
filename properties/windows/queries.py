"""Queries over windows on the command line: what rooms ``slack`` and ``watermark`` have in common.

Rules of this file:

1. Rooms differ in how long they wait. Whatever else can be asked of a query is asked here, once.
2. A setting is named as in the configurations of both rooms; an error names the option instead.
"""

import argparse
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product
from typing import Any, NamedTuple, Protocol, TypeVar

from model.vocabulary import task_of
from model.vocabulary.answers import AGGREGATES
from properties.data.durations import duration, parse_duration_us, write_duration
from properties.data.tables import Recording
from properties.errors import UsageError, in_options
from properties.windows.limits import TASKS_MAX, refuse_query

BATCHES = 8
"""Micro-batches where ``--batches`` does not say otherwise."""
KEYED_TASKS = 2
PER = ("key", "task", "device")
Setting = tuple[str, str, Callable[[str], Any], str]
"""Option, setting of the configuration, how it is read, what it means."""

SETTINGS: tuple[Setting, ...] = (
    (
        "--slide",
        "slide_us",
        duration,
        "window slide s, at least W / 10,000 (by input, in room watermark W)",
    ),
    ("--q", "q", float, "rank of the aggregate quantile (0.5)"),
    ("--feedback", "feedback_us", duration, "L, how long after its end a window is known (W)"),
    ("--max-future", "max_future_us", duration, "how far ahead of its arrival a tuple may be"),
    ("--gamma", "gamma_us", duration, "event time pending before a correction starts (5s)"),
    ("--max-age", "max_age_us", duration, "age of a pending tuple that starts one (4 W)"),
)
_OTHERS = (("--window", "size_us"), ("--aggregate", "aggregate"), ("--tasks", "tasks"))


class Config(Protocol):
    """What the configurations of both rooms have."""

    @property
    def size_us(self) -> int:
        """Window length."""
        ...

    @property
    def slide_us(self) -> int:
        """Window slide."""
        ...

    @property
    def aggregate(self) -> str:
        """What is computed."""
        ...

    @property
    def tasks(self) -> int:
        """Number of tasks."""
        ...

    def to_json(self) -> dict[str, Any]:
        """All settings by name."""
        ...


ConfigT = TypeVar("ConfigT", bound=Config)


class Defaults(NamedTuple):
    """What is asked of an input when the options do not say."""

    window: str
    slide: str | None
    """None: as long as the window, whatever that is."""
    aggregates: tuple[str, ...]
    per: tuple[str, ...]


def add_options(group: argparse._ArgumentGroup) -> None:
    """Everything that both rooms can be asked, except for the window."""
    add_settings(group, SETTINGS)
    group.add_argument(
        "--aggregate",
        action="append",
        metavar="AGGREGATE",
        help=f"{', '.join(AGGREGATES)}; may be repeated (sum, or by input)",
    )
    group.add_argument(
        "--per",
        action="append",
        choices=PER,
        help="a result per key, or one for all keys of a task, or a result and a task for every"
        " key; may be repeated (by room)",
    )
    group.add_argument("--tasks", type=int, help=f"tasks ({KEYED_TASKS} per key, 1 per task)")
    group.add_argument(
        "--no-dedup", dest="dedup", action="store_false", default=None, help="trust identities"
    )


def add_settings(group: argparse._ArgumentGroup, settings: Iterable[Setting]) -> None:
    """An option for each of some settings."""
    for flag, setting, read, meaning in settings:
        metavar = "DURATION" if read is duration else flag[2:].upper()
        group.add_argument(flag, dest=setting, type=read, metavar=metavar, help=meaning)


def queries(
    make: Callable[..., ConfigT],
    args: argparse.Namespace,
    defaults: Defaults,
    recording: Recording,
    own: Sequence[Setting],
) -> Iterator[tuple[ConfigT, str]]:
    """The queries that the options ask of an input, and what each answers per.

    ``make`` is the room's configuration, ``own`` are its own options. Raises :class:`UsageError`
    with one sentence that names the offending value.
    """
    names = ("dedup", *(setting for _, setting, _, _ in (*SETTINGS, *own)))
    given: dict[str, Any] = {
        name: value for name in names if (value := getattr(args, name)) is not None
    }
    window_us = args.window_us
    given["size_us"] = parse_duration_us(defaults.window) if window_us is None else window_us
    slide_us = given["size_us"] if defaults.slide is None else parse_duration_us(defaults.slide)
    given.setdefault("slide_us", slide_us)
    for aggregate, per in product(args.aggregate or defaults.aggregates, args.per or defaults.per):
        tasks = _tasks(per, args.tasks, recording)
        settings = {**given, "aggregate": aggregate, "keyed": per != "task", "tasks": tasks}
        try:
            config = make(**settings)
        except ValueError as error:
            options = (*_OTHERS, *(each[:2] for each in (*SETTINGS, *own)))
            raise UsageError(in_options(str(error), options)) from error
        refuse_query(
            "--window", config.size_us, "--slide", config.slide_us, "--tasks", config.tasks
        )
        yield config, per


def _tasks(per: str, asked: int | None, recording: Recording) -> int:
    """How many tasks: for answers per device so many that no two keys share one."""
    if per != "device":
        return asked if asked is not None else KEYED_TASKS if per == "key" else 1
    if asked is not None:
        raise UsageError(f"--tasks is {asked}, but with --per device every key has its own")
    keys = {event.key for event in recording.events}
    for tasks in range(max(len(keys), 1), TASKS_MAX + 1):
        if len({task_of(key, tasks) for key in keys}) == len(keys):
            return tasks
    raise UsageError(f"{recording.label} has {len(keys):,} keys; too many for --per device")


def describe(config: Config, plain: Config, per: str, told: Sequence[str] = ()) -> str:
    """The query in a few words: aggregate, window, slide, and whatever is not as in ``plain``.

    ``told`` are settings that are said elsewhere.
    """
    size, slide = write_duration(config.size_us), write_duration(config.slide_us)
    said = {"size_us", "slide_us", "aggregate", "keyed", "tasks", *told}
    usual = plain.to_json()
    parts = [
        f"{name}={value}"
        for name, value in config.to_json().items()
        if name not in said and value != usual[name]
    ]
    return ", ".join([f"{config.aggregate} per {per}", f"{size}/{slide}", *parts])
