"""Timed runs of every room, for programs that simulate without the command line."""

from collections.abc import Mapping

from model.vocabulary.durations import in_durations, in_unit_of_name, resolve_times
from model.vocabulary.settings import Setting, require
from sim.kernel.run import TimedRun
from sim.sweep.measurable import measurable
from straggler.assignments import over_example, setting_in_us
from straggler.errors import UsageError
from straggler.rooms import find_room


def simulate(room: str, seed: int = 0, **settings: object) -> TimedRun:
    """Simulate one timed run of a room.

    The settings are laid over the example of the room (docs/settings.md), in which unequal workers,
    bursts and faults matter, fitted to the ``scenario`` if there is one among them.

    Raise ``ValueError`` with one sentence for an unknown or impossible setting, and
    :class:`straggler.errors.UsageError` for an unknown room or a setting above its limit.

    Args:
        room: ``"slack"``, ``"join"``, ``"grouping"``, ``"watermark"`` or ``"script"``.
        seed: whole number of at least 0; the same seed gives the same run.
        **settings: settings of ``straggler sim ROOM --set`` (docs/settings.md, with defaults), a
            list for several values. A time such as ``size_us`` may be given as ``size``, a
            duration with its unit.

    Examples:
        >>> run = simulate("slack", seed=1, size="10 seconds", messages=500, speeds=[1.0, 0.5])
        >>> len(run.workload.arrivals)  # from four sources, in bursts
        2000
        >>> len(simulate("slack", seed=1, scenario="umts", faults="none").plan.faults)
        0
    """
    require(isinstance(room, str), "room", room, "a text such as 'slack'")
    is_whole = hasattr(seed, "__index__") and not isinstance(seed, bool)  # also one of NumPy's
    require(is_whole and seed >= 0, "seed", seed, "an integer >= 0")
    found = find_room(room)
    timed = measurable(room, "sim")
    known = timed.settings
    texts: dict[str, str] = {}
    for name, value in resolve_times(settings, known).items():
        number = value if isinstance(value, str) else in_unit_of_name(name, value)
        text = known[name].write(number) if name in known else str(value)
        texts |= setting_in_us(name, text, known)
    try:
        return found.simulate(over_example(timed, texts), int(seed))
    except (UsageError, ValueError) as error:
        kind = UsageError if isinstance(error, UsageError) else ValueError
        raise kind(_as_given(str(error), settings, known)) from error


def _as_given(sentence: str, given: Mapping[str, object], known: Mapping[str, Setting]) -> str:
    """Return a refusal with the name and the value of the setting as they were given."""
    times = {f"{name}_us": name for name in given if name not in known}
    name = sentence.partition(" ")[0]
    value = given.get(name, "")
    if not isinstance(value, str) and name in known:
        sentence = sentence.replace(f"is {known[name].write(value)!r};", f"is {value!r};", 1)
    return in_durations(sentence, times)
