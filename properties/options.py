"""Settings of a query as options of the command line, from their declarations.

Rules of this file:

1. The option of a setting is its name without the unit: ``max_future_us`` is ``--max-future``.
   Times are durations with a unit there.
2. A refusal names the option and what the user wrote, not the setting.
"""

import argparse
import re
from collections.abc import Iterable, Mapping

from model.vocabulary.settings import TOO_LONG_US, PlainData, Setting
from properties.data.durations import duration, write_duration


def option_of(name: str) -> str:
    """Return the option of a setting."""
    return "--" + name.removesuffix("_us").replace("_", "-")


def add_setting_options(
    group: argparse._ActionsContainer,
    known: Mapping[str, Setting],
    usual: Mapping[str, str] | None = None,
) -> None:
    """Add an option for each of these settings.

    ``usual`` describes the value without the option, if it is not the default of the setting.
    Options that are not given are ``None``.
    """
    for name, setting in known.items():
        words = [setting.help]
        if setting.choices:
            words.append(f": {', '.join(setting.choices)}")
        is_in_help = setting.default is None or setting.kind is bool
        usually = (usual or {}).get(name, "" if is_in_help else default_in_words(setting))
        words.append(f" ({usually})" if usually else "")
        common: dict[str, PlainData] = {"dest": name, "help": "".join(words)}
        if setting.kind is bool:
            group.add_argument(option_of(name), action="store_true", default=None, **common)
        else:
            is_time = name.endswith("_us")
            read = duration if is_time else setting.kind
            metavar = "DURATION" if is_time else option_of(name)[2:].upper()
            group.add_argument(option_of(name), type=read, metavar=metavar, **common)


def default_in_words(setting: Setting) -> str:
    """Return the default of a setting as a user writes it."""
    is_time = setting.name.endswith("_us") and isinstance(setting.default, int)
    return write_duration(setting.default) if is_time else setting.write(setting.default)


def given(args: argparse.Namespace, names: Iterable[str]) -> dict[str, PlainData]:
    """Return the settings that the user gave."""
    return {name: value for name in names if (value := getattr(args, name)) is not None}


def in_options(sentence: str, names: Iterable[str], others: Mapping[str, str] | None = None) -> str:
    """Return a refusal of a setting in the words of the command line.

    ``names`` are settings whose option has the same name. ``others`` maps the first words of a
    refusal to another option. Microseconds become a duration.
    """
    options = {name: option_of(name) for name in names} | dict(others or {})
    for name, option in options.items():
        if sentence.startswith(f"{name} "):
            rest = sentence.removeprefix(name)
            if name.endswith("_us"):
                rest = re.sub(r"^ is (-?\d+)\b", _with_unit, rest)
                rest = rest.replace("must be an integer", "must be a duration")
                rest = rest.replace("less than 2^61", f"less than {write_duration(TOO_LONG_US)}")
            return option + rest
    return sentence


def _with_unit(number_us: re.Match[str]) -> str:
    return f" is {write_duration(int(number_us[1]))}"
