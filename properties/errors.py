"""Errors of users, and the words of their messages."""

import re
from collections.abc import Iterable

from model.vocabulary.settings import TOO_LONG_US
from properties.data.durations import write_duration


class UsageError(Exception):
    """An error of the user: one sentence that names the offending value; exit code 2."""


def in_options(sentence: str, options: Iterable[tuple[str, str]]) -> str:
    """Return an error about a setting in the words of the command line.

    ``options`` are pairs of an option and its setting. The name of the setting becomes the option,
    and a number of microseconds becomes a duration.
    """
    for option, setting in options:
        if sentence.startswith(f"{setting} "):
            said = sentence.removeprefix(setting)
            if setting.endswith("_us"):
                said = re.sub(r"^ is (-?\d+)\b", _with_unit, said)
                said = said.replace(" it must be an integer", " it must be a duration")
                said = said.replace("less than 2^61", f"less than {write_duration(TOO_LONG_US)}")
            return option + said
    return sentence


def _with_unit(number_us: re.Match[str]) -> str:
    return f" is {write_duration(int(number_us[1]))}"


def counted(n: int, noun: str) -> str:
    """Return a number with its noun: ``1 batch``, ``2 batches``, ``1,000 arrivals``."""
    plural = f"{noun}es" if noun.endswith("ch") else f"{noun}s"
    return f"{n:,} {noun if n == 1 else plural}"
