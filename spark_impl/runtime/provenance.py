"""Identity of a history, to which its landing and the stores computed from it are bound.

The id of a history depends on neither its address nor its files. A landing writes it into
``_landing.json``, with its settings; for any other history, the first query writes it into
``_history.json``.
"""

import json
import uuid
from contextlib import suppress

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)

from model.vocabulary.settings import JsonObject
from spark_impl.runtime.histories import numbers
from spark_impl.runtime.storage import InputProblem, Location, locate
from spark_impl.runtime.tables import TableWriter, View

_NOTE, _LANDING = "_history.json", "_landing.json"
_NOTES = ((_NOTE, "history"), (_LANDING, "landing"))
"""Files that may hold the id of a history, each with the field that holds it."""
_MARK = "straggler.history"
"""Name in the metadata of columns for the address of the history that they come from."""


def identity_of(history: Location) -> str | None:
    """Return the id of a history, ``None`` if it has none yet."""
    for name, field in _NOTES:
        with suppress(FileNotFoundError, ValueError, TypeError, KeyError):
            found = json.loads((history / name).read_bytes())[field]
            if isinstance(found, str):
                return found
    return None


def require_history(view: View, history: Location) -> None:
    """Raise :class:`InputProblem` if a store was computed from another history.

    A store that has read nothing accepts every history; a history without id and files fits all.
    """
    noted, found = view.history, identity_of(history)
    if noted is None or found == noted["id"] or (found is None and not numbers(history)):
        return
    msg = (
        f"{view.root} belongs to the history {noted['id']} at {noted['address']}, not to {history},"
        f" which is {found or f'a history without {_NOTE} and {_LANDING}, which may have the id'}:"
        " give it its own history, or begin a new store"
    )
    raise InputProblem(msg)


def note_history(writer: TableWriter) -> None:
    """Check the history of a store, and note it in a store that has no note.

    This is done once in a run: by the first micro-batch that finds files or an id. Raise
    :class:`InputProblem` if the store was computed from another history.
    """
    history = writer.source
    if history is None:
        return
    require_history(writer.view, history)
    found = identity_of(history)
    if found is None and not numbers(history):
        return
    if writer.view.history is None and (found := found or _identify(history)):
        writer.note_history({"id": found, "address": str(history)})
    writer.source = None


def _identify(history: Location) -> str | None:
    """Give a history an id unless it has one; return it, or ``None`` if it cannot be written."""
    with suppress(InputProblem):  # another query was quicker, or may not write
        text = json.dumps({"history": uuid.uuid4().hex})
        (history / _NOTE).write_bytes(text.encode("utf-8"), is_new=True)
    return identity_of(history)


def open_history(
    history: Location, checkpoint: Location, settings: JsonObject, *, is_planned: bool
) -> None:
    """Begin a history, or check that its landing can be resumed.

    ``is_planned`` says whether Spark has planned a micro-batch in the checkpoint. Raise
    :class:`InputProblem` if the history was landed with another checkpoint or other settings, or if
    its files are not those of a landing.
    """
    there, here = read_note(checkpoint), read_note(history)
    if here is None and not is_planned:
        if not numbers(history):
            note = json.dumps({"landing": uuid.uuid4().hex, **settings}).encode()
            (checkpoint / _LANDING).write_bytes(note)
            # A history with a note has begun: of two landings, one stops here.
            (history / _LANDING).write_bytes(note, is_new=True)
            return
        msg = f"{history} holds files that were not written by a landing"
    elif here is None or here != there:
        msg = f"{history} was not landed with the checkpoint {checkpoint}"
    else:
        name = next((name for name in settings if here.get(name) != settings[name]), None)
        if name is None:
            return
        msg = f"{history} was landed with {name} = {here.get(name)!r}, not {settings[name]!r}"
    raise InputProblem(msg)


def read_note(folder: Location) -> JsonObject | None:
    """Return the note of a landing in a history or a checkpoint, ``None`` if there is none."""
    with suppress(FileNotFoundError):
        found: JsonObject = json.loads((folder / _LANDING).read_bytes())
        return found
    return None


def mark_rows(rows: DataFrame, history: Location) -> DataFrame:
    """Return the rows with the address of their history in the metadata of every column."""
    mark = {_MARK: str(history)}
    return rows.select(*(F.col(name).alias(name, metadata=mark) for name in rows.columns))


def history_of(rows: DataFrame) -> Location | None:
    """Return the history that :func:`mark_rows` noted on rows, or ``None``."""
    marks = (field.metadata.get(_MARK) for field in rows.schema.fields)
    return next((locate(each) for each in marks if each), None)
