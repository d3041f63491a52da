"""Commands that have a command of their own for each room."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import click

from straggler.cli.commands import Command, Group, Run, examples_of
from straggler.rooms import Room, find_room, find_rooms, room_names

ALL = "all"
"""Name of all rooms together."""


def room_group(
    summary: str,
    examples: str,
    options: Callable[[Sequence[Room]], Iterator[click.Parameter]],
    run: Run,
    *,
    has_all: bool = False,
) -> Group:
    """Return a group with a command for each room, and one for all of them if ``has_all``.

    ``options`` yields the options of some rooms. A command shows the examples that are its own.
    """

    def load(name: str) -> Command:
        rooms = find_rooms(name) if has_all else [find_room(name)]
        # Rooms may share options.
        unique = {option.opts[0]: option for option in reversed(list(options(rooms)))}
        parameters = list(reversed(unique.values()))
        own = examples_of(name, examples)
        return Command(summary, own, parameters, run, {"room": name}, partial(owners, name))

    def owners(name: str, flag: str) -> str:
        names = [
            room.name
            for room in find_rooms(ALL)
            if any(flag in option.opts for option in options([room]))
        ]
        return f"{flag} is an option of {join_names(names)}, not of {name}" if names else ""

    names = (*room_names(), ALL) if has_all else room_names()
    return Group(summary, examples, "room", dict.fromkeys(names, ""), load)


def join_names(names: Sequence[str]) -> str:
    """Return names of rooms as words of a sentence."""
    *first, last = names
    listed = f"{', '.join(first)} and {last}" if first else last
    return f"room{'s' * (len(names) > 1)} {listed}"
