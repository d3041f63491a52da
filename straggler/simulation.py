"""Timed runs of every room, for programs that simulate without the command line."""

from importlib import import_module

from model.vocabulary.durations import resolve_times
from sim.kernel.run import TimedRun
from straggler.rooms import find_room


def simulate(room: str, seed: int = 0, **settings: object) -> TimedRun:
    """Simulate one timed run of a room, with defaults for all settings that are not given.

    The settings are those of ``straggler sim ROOM --set`` (docs/settings.md), several values as a
    list: ``speeds=[1.0, 0.5]``. A time ``size_us`` may be given as ``size``, such as
    ``"10 seconds"`` or a ``timedelta``. The same seed gives the same run. Raise ``ValueError`` with
    one sentence for an unknown or impossible setting, and :class:`straggler.errors.UsageError` for
    an unknown room or a run that would not end.
    """
    found = find_room(room)
    known = import_module(f"sim.{room}").SETTINGS
    texts = {
        name: known[name].write(value) if name in known else str(value)
        for name, value in resolve_times(settings, known).items()
    }
    return found.simulate(texts, seed)
