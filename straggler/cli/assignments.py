"""Settings of timed runs as ``--set KEY=VALUE``; times may have a unit."""

from collections.abc import Iterable, Sequence
from itertools import zip_longest

from model.vocabulary.durations import in_durations, parse_duration_us
from sim.kernel.faults import KINDS
from straggler.errors import UsageError


def parse_settings(texts: Iterable[str]) -> dict[str, str]:
    """Return settings by name, with times in microseconds; the last one of a name counts.

    Raise :class:`UsageError` with one sentence for any other text.
    """
    return dict(_setting(text) for text in texts)


def in_units(sentence: str, texts: Iterable[str]) -> str:
    """Return a refusal of settings with a unit at a time that was given with one."""
    name = sentence.partition(" ")[0]
    key = "faults" if "." in name else name
    own = [text for text in texts if text.startswith(f"{key}=")][-1:]
    has_unit = name.endswith("_us") and any(parse_settings([text])[key] not in text for text in own)
    return in_durations(sentence, {name: name}) if has_unit else sentence


def _setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"--set is {text!r}; it must be KEY=VALUE")
    try:
        if key.endswith("_us"):
            value = _in_us(value)
        elif key == "faults":
            value = ";".join(map(_fault_in_us, value.split(";")))
    except ValueError as error:
        raise UsageError(f"--set {key}: {error}") from error
    return key, value


def _in_us(text: str) -> str:
    """Convert a duration with a unit to microseconds; return any other text unchanged."""
    if text[-1:].isalpha() and not text.isalpha():
        return str(parse_duration_us(text))
    return text


def _fault_in_us(text: str) -> str:
    """Convert the times of a fault to microseconds (:func:`sim.kernel.faults.schedule_of`)."""
    kind, *words = text.split() or [""]
    names: Sequence[str] = getattr(KINDS.get(kind), "_fields", ())
    # The run refuses words without a name: they are too many.
    named = zip_longest(names[: len(words)], words, fillvalue="")
    given = [_in_us(word) if name.endswith("_us") else word for name, word in named]
    return " ".join([kind, *given])
