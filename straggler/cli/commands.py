"""Commands of the command line: their help and refusals, and groups that load commands late.

Rules of this file:

* A command runs a function with its arguments, which returns the exit code. Its line, as the user
  gave it, is the argument ``line``.
* A group knows the names of its commands. It loads a command when that command is asked for.
* Every refusal is one sentence, if possible with a suggestion.
"""

import sys
import textwrap
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import click

from model.vocabulary.settings import nearest
from straggler.cli.outputs import refuse_overwriting
from straggler.errors import UsageError
from straggler.options import Arguments, Option
from straggler.rooms import Room, find_room, find_rooms, room_names

WIDTH = 100
"""Width of a help text, unless a terminal is narrower."""

HELP_ALL = "--help-all"

ALL = "all"
"""Name of all rooms together."""

Run = Callable[[Arguments], int]


class Command(click.Command):
    """A command with its options in sections, and with examples."""

    def __init__(
        self,
        summary: str,
        examples: str,
        parameters: Iterable[click.Parameter],
        run: Run,
        constants: Mapping[str, object] | None = None,
        owners: Callable[[str], str] = lambda _: "",
        details: str = "",
    ) -> None:
        """Declare a command.

        ``constants`` are arguments that the user does not give. ``owners`` returns a sentence on
        an unknown option that other commands have, or nothing. ``details`` are shown by
        ``--help-all`` only.
        """
        settings = {**_context_settings(), "allow_extra_args": True}
        params = [*parameters, _help_all()]
        super().__init__(None, settings, params=params, help=summary, epilog=examples or None)
        self.run = run
        self.constants = dict(constants or {})
        self.owners = owners
        self.details = details

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse arguments; an option that takes several values may have them in a row."""
        several = {
            flag
            for option in self.params
            if isinstance(option, Option) and option.takes_several
            for flag in option.opts
        }
        return super().parse_args(ctx, list(_repeat_flags(args, several)))

    def invoke(self, ctx: click.Context) -> int:
        """Run the command and return its exit code."""
        if ctx.args:
            raise UsageError(_describe_unknown(ctx, ctx.args[0]))
        args = Arguments(**ctx.params, **self.constants)
        refuse_overwriting(args)
        return self.run(args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options by section, without ``--help``, which the reader knows."""
        sections: dict[str, list[tuple[str, str]]] = defaultdict(list)
        rare = []
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is None or not isinstance(param, Option):
                continue
            if param.is_rare and HELP_ALL not in ctx.meta:
                rare.append(param.opts[0])
            else:
                sections[param.section].append(record)
        for name, records in sections.items():
            with formatter.section(name.capitalize()):
                formatter.write_dl(records)
        if rare:
            with formatter.section(f"More, described by {HELP_ALL}"):
                width = formatter.width - formatter.current_indent
                lines = textwrap.wrap(", ".join(rare), width, break_on_hyphens=False)
                formatter.write_dl([(line, "") for line in lines])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples as they are, and perhaps the details."""
        details = self.details if HELP_ALL in ctx.meta else ""
        text = f"{self.epilog or ''}{details}".rstrip()
        formatter.write(f"\n{text}\n" if text else "")


class Group(click.Group):
    """A group of commands, which are loaded when they are asked for."""

    def __init__(
        self,
        summary: str,
        examples: str,
        noun: str,
        summaries: Mapping[str, str],
        load: Callable[[str], click.Command],
        options: Sequence[click.Parameter] = (),
    ) -> None:
        """Declare a group; ``summaries`` has its commands, each of which is a ``noun``.

        ``load`` returns a command, or raises :class:`UsageError` for a name without one.
        """
        super().__init__(
            None,
            no_args_is_help=False,
            subcommand_metavar=f"{noun.upper()} ...",
            context_settings=_context_settings(),
            params=[*options, _help_all()],
            help=summary,
            epilog=examples,
        )
        self.noun = noun
        self.summaries = summaries
        self.load = load

    details = ""
    format_epilog = Command.format_epilog

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands."""
        return list(self.summaries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load a command; raise :class:`UsageError` if there is none.

        Return None for an option, which click then refuses.
        """
        return None if cmd_name.startswith("-") else self.load(cmd_name)

    def invoke(self, ctx: click.Context) -> int:
        """Run the command that the arguments name, and return its exit code."""
        code: int = super().invoke(ctx)
        return code

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse arguments up to the command; raise :class:`UsageError` if there is none."""
        rest = super().parse_args(ctx, args)
        if not args:
            raise UsageError(f"{self.noun.upper()} is missing: {self._listing()}")
        return rest

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands, without loading any."""
        with formatter.section(f"{self.noun}s".capitalize()):
            if any(self.summaries.values()):
                formatter.write_dl(list(self.summaries.items()))
            else:
                formatter.write_text(self._listing())

    def _listing(self) -> str:
        *others, last = self.summaries
        return f"{', '.join(others)} or {last}"


def _help_all() -> Option:
    """Return the option that shows the help with every option in it."""

    def show(context: click.Context, _option: object, is_asked: bool) -> None:
        if is_asked:
            context.meta[HELP_ALL] = True
            click.echo(context.get_help())
            context.exit()

    flag: dict[str, Any] = {
        "is_flag": True,
        "is_eager": True,
        "expose_value": False,
        "hidden": True,
    }
    return Option(HELP_ALL, "describe every option", callback=show, **flag)


def sentence_of(error: click.ClickException) -> str:
    """Return the sentence that a refusal by click becomes."""
    match error:
        case click.NoSuchOption(ctx=ctx) if ctx is not None:
            return _describe_unknown(ctx, error.option_name)
        case click.MissingParameter(param=param) if param is not None:
            return f"{param.human_readable_name} is missing"
        case click.BadParameter(param=param) if param is not None:
            return f"{param.opts[0]}: {error.message.removesuffix('.')}"
        case _:
            said = error.format_message()
            return said[:1].lower() + said[1:]


def _context_settings() -> dict[str, Any]:
    width = None if sys.stdout.isatty() else WIDTH
    return {
        "help_option_names": ["-h", "--help"],
        "max_content_width": WIDTH,
        "terminal_width": width,
    }


def examples_of(name: str, examples: str) -> str:
    """Return the examples of one command of a group, each with the lines that continue it."""
    kept, is_kept = [], False
    for line in examples.splitlines():
        if not line.startswith("   "):
            is_kept = line.startswith("  straggler ") and line.split()[2] == name
        if is_kept:
            kept.append(line)
    return "\n".join(["examples:", *kept]) if kept else ""


def _repeat_flags(args: Sequence[str], several: Iterable[str]) -> Iterator[str]:
    """Yield arguments with the flag of ``several`` repeated before each of its values."""
    flag = ""
    for before, word in zip(["", *args], args, strict=False):
        if word.startswith("-"):
            flag = word if word in several else ""
        elif flag and before != flag:
            yield flag
        yield word


def _describe_unknown(ctx: click.Context, word: str) -> str:
    """Return the sentence on an argument that a command does not have."""
    flag = word.partition("=")[0]
    command = ctx.command
    if isinstance(command, Command) and flag.startswith("--") and (said := command.owners(flag)):
        return said
    hint = nearest(flag, [each for param in command.get_params(ctx) for each in param.opts])
    if not hint and isinstance(command, Group) and flag != word.lstrip("-"):
        hint = f"; options follow the {command.noun}"
    return f"unknown argument {word!r}{hint}"


# ------------------------------------------------------------------------- a command for each room


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
