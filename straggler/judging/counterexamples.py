"""Counterexamples as small files that people read and ``straggler replay`` runs again."""

import json
import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from model.vocabulary import Workload, stable_hash
from model.vocabulary.settings import JsonObject, PlainData, one_of, require
from straggler.errors import UsageError
from straggler.inputs.protocol import parse_workload
from straggler.inputs.text_files import read_json, write_output
from straggler.judging.judge import MODEL, REFERENCES
from straggler.judging.levels import LEVELS, STEPS
from straggler.judging.processes import PREFIX

RECORDED, JOB = 1, 3
"""Versions of the file: a workload, or rows for a Spark job."""
FOLDER = Path("counterexamples")
_SLUG_MAX = 40


@dataclass(frozen=True, slots=True)
class Counterexample:
    """A workload on which a system broke a promise."""

    system: str
    """``spark``, or ``MODULE:FACTORY`` of a foreign system."""
    workload: Workload
    kinds: tuple[str, ...]
    """Kinds of steps that were compared."""
    broken: tuple[str, ...]
    """Differences between expected and observed behaviour, one sentence an element."""
    reference: str = MODEL
    """``model`` or ``both``."""
    level: str = STEPS
    """``answers`` or ``steps``."""
    trouble: tuple[JsonObject, ...] = ()
    """Trouble on the connections of a chain on Spark, in which it broke the promise: fields of
    :class:`straggler.judging.trouble.Trouble`."""

    @property
    def room(self) -> str:
        """Name of the room."""
        return self.workload.room

    def store(self, folder: Path) -> Path:
        """Write the counterexample into ``folder``, and return the path.

        The name tells room, system and claim, and ends with a digest of the whole file: another
        counterexample has another name, so that no file is replaced by a different one.

        Raise :class:`UsageError` if it cannot be written.
        """
        head = {"counterexample": RECORDED, "room": self.room, "system": self.system}
        head["reference"] = self.reference
        if self.level != STEPS:
            head["level"] = self.level
        found: dict[str, PlainData] = {"kinds": list(self.kinds), "broken": list(self.broken)}
        if self.trouble:
            found["trouble"] = [dict(each) for each in self.trouble]
        text = layout({**head, **found, "workload": self.workload.to_json()}) + "\n"
        claim = self.broken[0].partition(":")[0] if self.broken else ""
        words = "-".join(filter(None, (slug(self.system), slug(claim))))
        path = folder / f"{self.room}-{words}-{stable_hash(text) & 0xFFFFFFFF:08x}.json"
        write_output(path, text)
        return path

    @classmethod
    def load(cls, path: Path) -> "Counterexample":
        """Read a file of :meth:`store`; raise :class:`UsageError` for any other file."""
        return cls.of(path, read_record(path))

    @classmethod
    def of(cls, path: Path, record: JsonObject) -> "Counterexample":
        """Return the counterexample that a file holds; raise as :meth:`load`."""
        try:
            workload = parse_workload(record["workload"])
            kinds, broken = _texts(record, "kinds"), _texts(record, "broken")
            reference = _one_of(REFERENCES, record, "reference", MODEL)  # old files have neither
            level = _one_of(LEVELS, record, "level", STEPS)
            trouble = _troubles(record, workload.room)
            return cls(str(record["system"]), workload, kinds, broken, reference, level, trouble)
        except KeyError as error:
            raise UsageError(f"{path.name} is not a counterexample: no {error}") from error
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise UsageError(f"{path.name} is not a counterexample: {error}") from error


def read_record(path: Path) -> JsonObject:
    """Read a counterexample of any version; raise :class:`UsageError` for any other file."""
    try:
        record = read_json(path)
    except ValueError as error:
        raise UsageError(f"{path.name} is not a counterexample: {error}") from error
    version = record.get("counterexample") if isinstance(record, dict) else None
    if not isinstance(record, dict) or version not in (RECORDED, JOB):
        known = f"{RECORDED} or {JOB}"
        raise UsageError(f"{path.name} is not a counterexample of version {known}")
    return record


def slug(text: str) -> str:
    """Return a text as a short part of a file name."""
    return re.sub(r"[^a-z0-9]+", "-", text.removeprefix(PREFIX).lower()).strip("-")[:_SLUG_MAX]


def _one_of(known: Collection[str], record: JsonObject, name: str, default: str) -> str:
    found = record.get(name, default)
    require(found in known, f"its {name}", found, one_of(known))
    return str(found)


def _texts(record: JsonObject, name: str) -> tuple[str, ...]:
    value = record[name]
    good = isinstance(value, list) and all(isinstance(item, str) for item in value)
    require(good, name, value, "a list of texts")
    return tuple(value)


def _troubles(record: JsonObject, room: str) -> tuple[JsonObject, ...]:
    value = record.get("trouble", [])  # old files have none
    good = isinstance(value, list) and all(isinstance(item, dict) for item in value)
    require(good, "its trouble", value, "a list of objects")
    if value and room != "join":
        msg = f"its room is {room!r}, but only chains of 'join' have trouble on their connections"
        raise ValueError(msg)
    if value:
        # Imported here: other counterexamples need no Spark.
        from straggler.judging.trouble import Trouble

        for each in value:
            Trouble.from_json(each)
    return tuple(value)


def layout(value: PlainData, indent: str = "") -> str:
    """Write JSON with one line for each sentence and each arrival."""
    deeper = indent + " "
    if isinstance(value, dict) and value:
        lines = [f"{json.dumps(key)}: {layout(item, deeper)}" for key, item in value.items()]
        return "{\n" + ",\n".join(deeper + line for line in lines) + f"\n{indent}}}"
    if isinstance(value, list) and any(isinstance(item, list | str) for item in value):
        lines = [json.dumps(item, ensure_ascii=False) for item in value]
        return "[\n" + ",\n".join(deeper + line for line in lines) + f"\n{indent}]"
    return json.dumps(value, ensure_ascii=False)
