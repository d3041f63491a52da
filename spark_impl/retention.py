"""Removes files of a history that nobody needs any more.

A history is shortened from its lowest number upwards, while it is being landed and read.
"""

from collections.abc import Sequence
from typing import TypeAlias

from spark_impl.runtime.accounts import offsets_of
from spark_impl.runtime.histories import files_below, numbers
from spark_impl.runtime.provenance import require_history
from spark_impl.runtime.queries import last_logged
from spark_impl.runtime.storage import Address, InputProblem, Location, locate
from spark_impl.runtime.stores import CHECKPOINT, require_view
from spark_impl.runtime.tables import View
from spark_impl.slack import SLACK
from spark_impl.watermark import WATERMARK
from spark_impl.windows.room import AnyRoom
from spark_impl.windows.row_groups import Footers, TimeRange
from spark_impl.windows.store import PENDING, load_store

Reader: TypeAlias = Address | tuple[Address, Address]
"""A store; or a store, and Spark's checkpoint if the query has it elsewhere."""
_LAST = (1 << 63) - 1
_CORRECTED: dict[str, AnyRoom] = {room.name: room for room in (SLACK, WATERMARK)}
"""Rooms whose queries read a history again to correct windows."""


def drop_before(history: Address, number: int, *, readers: Sequence[Reader]) -> int:
    """Remove the files of a history below a number; return the lowest number that is left.

    Raise :class:`InputProblem` with one sentence, and remove nothing, if a reader reads another
    history, or has not read one of the files yet, if late pairs of a reader wait for a correction
    that reads one of them, or if no file would be left. Nobody knows which tuples still come late:
    keep the files as long as some may come for the times in them.

    Args:
        history: folder of the history.
        number: lowest number of a file that is kept.
        readers: stores of all queries that read the history; pairs of a store and Spark's
            checkpoint if that is elsewhere.

    Examples:
        >>> drop_before(f"{folder}/history", 1, readers=[store])
        1
    """
    folder = locate(history)
    below = files_below(folder, number)
    for reader in readers if below else ():
        store, checkpoint = reader if isinstance(reader, tuple) else (reader, None)
        place = locate(store)
        own = place / CHECKPOINT if checkpoint is None else locate(checkpoint)
        view = require_view(place)
        require_history(view, folder)
        following = _next_number(place, own)
        if number > following:
            msg = (
                f"number is {number}; it can be at most {following}, because {place} has read no"
                f" more of {folder}"
            )
            raise InputProblem(msg)
        # Behind the number: what was late until then is pending by now, or has been corrected.
        times = _pending_us(view)
        footers = Footers()
        for file in below if times else ():
            footers.add(file)
        if needed := footers.overlapping(times, _LAST):
            msg = (
                f"{needed[0].file} cannot be removed: late pairs in {place} wait for a correction"
                " that reads it"
            )
            raise InputProblem(msg)
    for file in below:
        file.remove()
    return numbers(folder).start


def _next_number(store: Location, checkpoint: Location) -> int:
    """Return the number of the first file that a query may still read, also if Spark repeats.

    Raise :class:`InputProblem` if its checkpoint does not say.
    """
    last = last_logged(checkpoint, "commits")
    if last < 0:
        msg = f"{store} has read nothing yet: {checkpoint} has no complete micro-batch"
        raise InputProblem(msg)
    following = [int(each["next"]) for each in offsets_of(checkpoint, last)]
    if not following:
        msg = f"{checkpoint} is not the checkpoint of a query that reads a history"
        raise InputProblem(msg)
    return max(min(following), 0)


def _pending_us(view: View) -> list[TimeRange]:
    """Return the times of all rows that the pending corrections of a query need."""
    room = _CORRECTED.get(str(view.identity.get("room")))
    if room is None:
        return []
    config, opened = load_store(view.root, room)
    size_us = room.settings(config).size_us
    windows = opened.read_kind(PENDING).group_by("start_us")
    rows = windows.aggregate([("event_time_us", "max")]).to_pylist()
    # The last window of a tuple begins at its own time at the latest.
    return [(each["start_us"], each["event_time_us_max"] + size_us) for each in rows]
