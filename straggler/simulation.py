"""Timed runs of every room, for programs that simulate without the command line."""

from importlib import import_module

from model.vocabulary.durations import in_durations, resolve_times
from sim.kernel.run import TimedRun
from straggler.errors import UsageError
from straggler.rooms import find_room


def simulate(room: str, seed: int = 0, **settings: object) -> TimedRun:
    """Simulate one timed run of a room.

    Raise ``ValueError`` with one sentence for an unknown or impossible setting, and
    :class:`straggler.errors.UsageError` for an unknown room or a setting above its limit.

    Args:
        room: ``"slack"``, ``"join"``, ``"grouping"``, ``"watermark"`` or ``"script"``.
        seed: whole number of at least 0; the same seed gives the same run.
        **settings: settings of ``straggler sim ROOM --set`` (docs/settings.md, with defaults), a
            list for several values. A time such as ``size_us`` may be given as ``size``, a text
            with a unit or a ``timedelta``.

    Examples:
        >>> run = simulate("slack", seed=1, size="10 seconds", messages=500, speeds=[1.0, 0.5])
        >>> len(run.workload.arrivals)  # from eight phones
        4000
    """
    found = find_room(room)
    known = import_module(f"sim.{room}").SETTINGS
    texts = {
        name: known[name].write(value) if name in known else str(value)
        for name, value in resolve_times(settings, known).items()
    }
    try:
        return found.simulate(texts, seed)
    except (UsageError, ValueError) as error:
        kind = UsageError if isinstance(error, UsageError) else ValueError
        times = {f"{name}_us": name for name in settings if name not in known}
        raise kind(in_durations(str(error), times)) from error
