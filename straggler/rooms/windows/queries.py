"""Queries over windows on the command line, for rooms ``slack`` and ``watermark``.

Rules of this file:

1. The rooms differ in their waits. All other options of a query are declared here, once.
2. Settings have the names of both configurations; refusals name the option instead.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from itertools import product
from typing import NamedTuple, TypeVar

import click

from model.vocabulary import task_of
from model.vocabulary.durations import parse_duration_us, write_duration
from model.vocabulary.settings import settings_of
from model.vocabulary.windows import AGGREGATES, WindowQuery
from straggler.errors import UsageError
from straggler.inputs.tables import Recording
from straggler.options import QUERY, Arguments, Option, duration, given, in_options, setting_options
from straggler.rooms.windows.limits import TASKS_MAX, refuse_query

BATCHES = 8
"""Default of ``--batches``."""
KEYED_TASKS = 2
PER = ("key", "task", "device")
OPTIONS = tuple(settings_of(WindowQuery))
"""Settings of both rooms."""
_SHOWN = ("slide_us", "q", "feedback_us", "gamma_us", "max_age_us")
_USUAL = {"slide_us": "by input, in room watermark W; at least W / 10,000"}
_OTHERS = {"size_us": "--window"}


ConfigT = TypeVar("ConfigT", bound=WindowQuery)


class Defaults(NamedTuple):
    """Default query of an input."""

    window: str
    slide: str | None
    """Slide as a duration; ``None``: the length of the window."""
    aggregates: tuple[str, ...]
    per: tuple[str, ...]


def options() -> Iterator[Option]:
    """Yield the options of both rooms."""
    window = "length W of a window, like 5s or 6h (by input)"
    yield Option("--window", window, "window_us", type=duration, section=QUERY)
    known = settings_of(WindowQuery)
    yield from setting_options({name: known[name] for name in _SHOWN}, _USUAL, ("slide_us",))
    aggregates = f"{', '.join(AGGREGATES)}; may be repeated (by input)"
    yield Option("--aggregate", aggregates, metavar="NAME", multiple=True, section=QUERY)
    per = "a result per key, per task, or a task per key"
    yield Option(
        "--per",
        f"{per}; may be repeated (by room)",
        type=click.Choice(PER),
        multiple=True,
        section=QUERY,
    )
    tasks = f"tasks ({KEYED_TASKS} per key, 1 per task)"
    yield Option("--tasks", tasks, type=int, metavar="N", section=QUERY)
    trust = {"is_flag": True, "flag_value": False, "default": None}
    yield Option("--no-dedup", "trust identities", "dedup", section=QUERY, is_rare=True, **trust)


def queries(
    make: Callable[..., ConfigT],
    args: Arguments,
    defaults: Defaults,
    recording: Recording,
    own: Sequence[str],
) -> Iterator[tuple[ConfigT, str]]:
    """Yield the queries for an input, as the options say, with the grouping of their answers.

    ``make`` builds the configuration of the room, ``own`` are the settings that only it has.
    Raise :class:`UsageError` with one sentence that names the offending value.
    """
    settings = given(args, ("dedup", *_SHOWN, *own))
    window_us = args.window_us
    settings["size_us"] = parse_duration_us(defaults.window) if window_us is None else window_us
    slide_us = settings["size_us"] if defaults.slide is None else parse_duration_us(defaults.slide)
    settings.setdefault("slide_us", slide_us)
    pers = args.per or _suited(defaults.per, args.tasks, recording)
    for aggregate, per in product(args.aggregate or defaults.aggregates, pers):
        tasks = _tasks(per, args.tasks, recording)
        asked = {**settings, "aggregate": aggregate, "keyed": per != "task", "tasks": tasks}
        try:
            config = make(**asked)
        except ValueError as error:
            raise UsageError(in_options(str(error), (*OPTIONS, *own), _OTHERS)) from error
        refuse_query(
            "--window", config.size_us, "--slide", config.slide_us, "--tasks", config.tasks
        )
        yield config, per


def _suited(pers: Sequence[str], asked: int | None, recording: Recording) -> Sequence[str]:
    """Return the usual groupings of answers that the input and ``--tasks`` allow."""
    suited = []
    for per in pers:
        with suppress(UsageError):
            _tasks(per, asked, recording)
            suited.append(per)
    return suited


def _tasks(per: str, asked: int | None, recording: Recording) -> int:
    """Return the number of tasks; with one result per device no two keys share a task."""
    if per != "device":
        return asked if asked is not None else KEYED_TASKS if per == "key" else 1
    if asked is not None:
        raise UsageError(f"--tasks is {asked}, but with --per device every key has its own")
    keys = {event.key for event in recording.events}
    if tasks := tasks_of(keys):
        return tasks
    raise UsageError(
        f"{recording.label} has {len(keys):,} keys, too many for --per device;"
        " --per key or --per task takes any number"
    )


def tasks_of(keys: Collection[str]) -> int:
    """Return the least number of tasks with which no two keys share one; 0 if it is too large."""
    numbers = range(max(len(keys), 1), TASKS_MAX + 1)
    apart = (n for n in numbers if len({task_of(key, n) for key in keys}) == len(keys))
    return next(apart, 0)


def describe(config: WindowQuery, plain: WindowQuery, per: str, omitted: Sequence[str] = ()) -> str:
    """Return the query in a few words: aggregate, window, slide, and differences from ``plain``.

    ``omitted`` are settings that are described elsewhere.
    """
    size, slide = write_duration(config.size_us), write_duration(config.slide_us)
    known = {"size_us", "slide_us", "aggregate", "keyed", "tasks", *omitted}
    usual = plain.to_json()
    parts = [
        f"{name}={value}"
        for name, value in config.to_json().items()
        if name not in known and value != usual[name]
    ]
    return ", ".join([f"{config.aggregate} per {per}", f"{size}/{slide}", *parts])
