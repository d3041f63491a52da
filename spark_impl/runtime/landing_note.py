"""The note of a landing in its history and checkpoint: whose they are, and how rows are read."""

import json
import uuid

from model.vocabulary.settings import JsonObject
from spark_impl.runtime import histories
from spark_impl.runtime.queries import last_logged
from spark_impl.runtime.storage import InputProblem, Location

NOTE = "_landing.json"


def open_history(history: Location, checkpoint: Location, settings: JsonObject) -> None:
    """Begin a history, or check that its landing can be resumed.

    Raise :class:`InputProblem` if it was landed with another checkpoint or other settings.
    """
    there, here = _read_note(checkpoint), _read_note(history)
    if here is None and last_logged(checkpoint, "offsets") < 0:
        if not histories.numbers(history):
            note = json.dumps({"landing": uuid.uuid4().hex, **settings}).encode()
            # The history's note comes last: a history with a note has begun.
            for folder in (checkpoint, history):
                (folder / NOTE).write_bytes(note)
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


def _read_note(folder: Location) -> JsonObject | None:
    note = folder / NOTE
    if not note.exists():
        return None
    found: JsonObject = json.loads(note.read_bytes())
    return found
