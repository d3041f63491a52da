"""Options of the command line; those of a query follow from its settings.

Rules of this file:

1. The option of a setting is its name without the unit: ``fixed_slack_us`` is ``--fixed-slack``.
   Times are durations with a unit there.
2. A refusal names the option and what the user wrote, not the setting.
3. An option that is not given is ``None``; one that may be repeated is then empty.
"""

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeAlias

import click

from model.vocabulary.durations import in_durations, parse_duration_us, write_duration
from model.vocabulary.settings import PlainData, Setting
from straggler.errors import UsageError

Arguments: TypeAlias = SimpleNamespace
"""Values of the options and other arguments of a command, by name."""

PATH = click.Path(path_type=Path)
STDIO = Path("-")
"""Standard input or output, in the place of a file; then people read standard error."""
QUERY = "query"
"""Section of the help with the options of a query."""

_NO_OPTION = re.compile(r"-?(\.?\d|$)|[^-]")
"""Beginning of a value that is no option; a negative duration is a value that can be refused."""
_SIZE = re.compile(r"([1-9]\d{0,9}) ?(MB|GB|MiB|GiB)")
_UNITS = {"MB": 10**6, "GB": 10**9, "MiB": 1 << 20, "GiB": 1 << 30}
_METAVARS = {int: "N", float: "X"}


def duration(text: str) -> int:
    """Return a duration with a unit in microseconds; the type of an option."""
    try:
        return parse_duration_us(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


def size(text: str) -> int:
    """Return an amount of memory with a unit in bytes; the type of an option."""
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        message = f"{text!r} is no amount of memory; write a number and a unit, like 512MB"
        raise click.BadParameter(message)
    return int(found[1]) * _UNITS[found[2]]


class Option(click.Option):
    """An option, and the section of the help that lists it."""

    def __init__(self, flag: str, help: str, name: str = "", **more: Any) -> None:
        """Declare an option; ``name`` is that of its value, ``more`` is what click takes.

        ``--help`` only names an option that ``is_rare``; ``--help-all`` describes it.
        """
        self.section: str = more.pop("section", "options")
        self.is_rare: bool = more.pop("is_rare", False)
        self.takes_several: bool = more.pop("takes_several", False)
        super().__init__([flag, *([name] if name else [])], help=help, **more)

    def type_cast_value(self, ctx: click.Context, value: Any) -> Any:
        """Read the value; raise :class:`UsageError` if another option stands in its place."""
        for text in value if self.multiple and value else [value]:
            if isinstance(text, str) and not self.is_flag and not _NO_OPTION.match(text):
                raise UsageError(f"{self.opts[0]} needs a value, and {text!r} is an option")
        return super().type_cast_value(ctx, value)


def _hear_spark(_context: object, _option: object, is_asked: bool) -> None:
    if is_asked:
        # Imported here because pyspark takes a second.
        from spark_impl.runtime.session import VERBOSE as VARIABLE

        os.environ[VARIABLE] = "1"


VERBOSE = Option(
    "--verbose",
    "show the log of Spark, like STRAGGLER_VERBOSE=1",
    is_flag=True,
    is_rare=True,
    expose_value=False,
    callback=_hear_spark,
)
"""Option of every command that starts Spark."""

LATENESS = Option(
    "--lateness",
    "how far a tuple may lie behind the latest of its stream or sensor (by input)",
    "lateness_us",
    type=duration,
    section=QUERY,
)


def option_of(name: str) -> str:
    """Return the option of a setting."""
    return "--" + name.removesuffix("_us").replace("_", "-")


def setting_options(
    known: Mapping[str, Setting],
    usual: Mapping[str, str] | None = None,
    everyday: Collection[str] | None = None,
) -> Iterator[Option]:
    """Yield an option for each of these settings.

    ``usual`` describes the value without the option, if it is not the default of the setting.
    ``everyday`` settings are described by ``--help`` (``None``: all of them).
    """
    for name, setting in known.items():
        words = [setting.help]
        if setting.choices:
            words.append(f": {', '.join(setting.choices)}")
        is_in_help = setting.default is None or setting.kind is bool
        usually = (usual or {}).get(name, "" if is_in_help else default_in_words(setting))
        words.append(f" ({usually})" if usually else "")
        is_rare = everyday is not None and name not in everyday
        common: dict[str, Any] = {"name": name, "section": QUERY, "is_rare": is_rare}
        if setting.kind is bool:
            common |= {"is_flag": True, "flag_value": True, "default": None}
        elif name.endswith("_us"):
            common["type"] = duration
        else:
            common |= {"type": setting.kind, "metavar": _METAVARS.get(setting.kind, "NAME")}
        yield Option(option_of(name), "".join(words), **common)


def default_in_words(setting: Setting) -> str:
    """Return the default of a setting as a user writes it."""
    is_time = setting.name.endswith("_us") and isinstance(setting.default, int)
    return write_duration(setting.default) if is_time else setting.write(setting.default)


def given(args: Arguments, names: Iterable[str]) -> dict[str, PlainData]:
    """Return the settings that the user gave."""
    return {name: value for name in names if (value := getattr(args, name)) is not None}


def in_options(sentence: str, names: Iterable[str], others: Mapping[str, str] | None = None) -> str:
    """Return a refusal of a setting in the words of the command line.

    ``names`` are settings whose option has the same name. ``others`` maps the first words of a
    refusal to another option. Microseconds become a duration.
    """
    options = {name: option_of(name) for name in names} | dict(others or {})
    for name, option in options.items():
        if sentence.startswith((f"{name} ", f"{name}: ")):
            told = option + sentence.removeprefix(name)
            if name.endswith("_us"):
                told = in_durations(sentence, {name: option})
            return _others_in_options(told, options)
    return sentence


def _others_in_options(told: str, options: Mapping[str, str]) -> str:
    """Return a refusal with the options of other settings that it names."""
    for name, option in options.items():
        told = re.sub(rf"; with {name}\b", f"; with {option}", told)
        told = told.replace(f"; without {name} it must be None", f"; it needs {option}")
    return re.sub(r"; with (\S+ \S+) it must be None$", r"; it has no meaning with \1", told)
