"""Settings of timed runs, as ``--set KEY=VALUE`` and ``simulate(key=value)`` give them.

Rules of this file:

1. A time may have a unit, and then its name needs no ``_us``: ``size=5s`` is ``size_us=5000000``.
2. Given settings are laid over the example of a room. What cannot stand beside them is left out:
   a fault of the example on a worker that the run lacks, and settings in :data:`EXCLUDED`. If a
   ``scenario`` is given, the example is fitted to it.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest

from model.vocabulary.durations import in_durations, parse_duration_us
from model.vocabulary.settings import Setting
from sim.kernel.faults import KINDS
from sim.sweep.measurable import Measurable
from straggler.errors import UsageError

NUMBERS_OF_WORKERS = ("tasks", "workers", "instances")
"""Settings, one in each room, that say how many workers a run has."""

EXCLUDED = {"corrections": "upstreams"}
"""Settings of examples, each with a setting beside which it must have its default."""


def parse_settings(texts: Iterable[str], known: Mapping[str, Setting]) -> dict[str, str]:
    """Return settings by name, with times in microseconds; the last one of a name counts.

    Raise :class:`UsageError` with one sentence for any other text.
    """
    found: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"--set is {text!r}; it must be KEY=VALUE")
        try:
            found |= setting_in_us(key, value, known)
        except ValueError as error:
            raise UsageError(f"--set {error}") from error
    return found


def setting_in_us(key: str, value: str, known: Mapping[str, Setting]) -> dict[str, str]:
    """Return a setting under its own name, with times in microseconds.

    Raise ``ValueError`` with one sentence for a time that is no duration.
    """
    try:
        if key == "faults":
            return {key: ";".join(map(_fault_in_us, value.split(";")))}
        if key.endswith("_us"):
            return {key: _in_us(value)}
        in_us = f"{key}_us"
        if key in known or in_us not in known:
            return {key: value}
        is_none = known[in_us].is_optional and value == known[in_us].none
        return {in_us: value if is_none else str(parse_duration_us(value))}
    except ValueError as error:
        raise ValueError(f"{key}: {error}") from error


def in_units(sentence: str, texts: Iterable[str]) -> str:
    """Return a refusal of settings with a unit at a time that was given with one."""
    name = sentence.partition(" ")[0]
    if not name.endswith("_us"):
        return sentence
    given = [text.partition("=") for text in texts]
    names = ("faults",) if "." in name else (name, name.removesuffix("_us"))
    own = [(key, value) for key, _, value in given if key in names][-1:]
    for key, value in own:
        if (key != name and key != "faults") or setting_in_us(key, value, {})[key] not in value:
            return in_durations(sentence, {name: name if key == "faults" else key})
    return sentence


# -------------------------------------------------------------------------- example of a room


def example_of(run: Measurable, given: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of a run's example that hold beside the given ones, as texts."""
    found = {
        name: text
        for name, text in run.fit(run.example, given.get("scenario", "")).items()
        if name not in given and EXCLUDED.get(name) not in given
    }
    if "faults" in found:
        workers = _number_of_workers(given, run.settings)
        faults = [each for each in found["faults"].split("; ") if _worker_of(each) < workers]
        found["faults"] = "; ".join(faults) or "none"
    return found


def over_example(run: Measurable, given: Mapping[str, str]) -> dict[str, str]:
    """Return the given settings, laid over the example of a run; times are in microseconds."""
    found: dict[str, str] = {}
    for name, text in example_of(run, given).items():
        found |= setting_in_us(name, text, run.settings)
    return found | dict(given)


def _number_of_workers(given: Mapping[str, str], known: Mapping[str, Setting]) -> int:
    """Return the number of workers; a text that is no number counts as the default."""
    name = next(name for name in NUMBERS_OF_WORKERS if name in known)
    default: int = known[name].default
    text = given.get(name, "").strip()
    return int(text) if text.isascii() and text.isdecimal() else default


def _worker_of(fault: str) -> int:
    """Return the number of the worker that a fault hits; 0 for other targets."""
    number = fault.split()[1].removeprefix("worker-")
    return int(number) if number.isdecimal() else 0


# ---------------------------------------------------------------------------------- units


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
