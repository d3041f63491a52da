"""Counterexamples as small files that people read and ``straggler replay`` runs again."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from model.vocabulary import Workload, stable_hash
from properties.errors import UsageError

VERSION = 1
FOLDER = Path("counterexamples")


@dataclass(frozen=True, slots=True)
class Counterexample:
    """A workload on which a system did not do what was promised."""

    system: str
    """``spark``, or ``MODULE:FACTORY`` of a foreign system."""
    workload: Workload
    kinds: tuple[str, ...]
    """Kinds of steps that were compared."""
    broken: tuple[str, ...]
    """What was expected and what was observed instead, one sentence an element."""

    def store(self, folder: Path) -> Path:
        """Write it into ``folder`` under a name made from its content, and return the path."""
        data = self.workload.to_json()
        digest = stable_hash(json.dumps(data, sort_keys=True)) & 0xFFFFFFFF
        path = folder / f"{self.workload.room}-{digest:08x}.json"
        head = {"counterexample": VERSION, "room": self.workload.room, "system": self.system}
        found = {"kinds": list(self.kinds), "broken": list(self.broken)}
        record = {**head, **found, "workload": data}
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(_layout(record) + "\n", encoding="utf-8")
        return path

    @classmethod
    def load(cls, path: Path) -> "Counterexample":
        """Read what :meth:`store` wrote; :class:`UsageError` when it is not that."""
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError as error:
            raise UsageError(f"there is no file {str(path)!r}") from error
        except (OSError, ValueError) as error:
            raise UsageError(f"{path.name} is not a counterexample: {error}") from error
        if not isinstance(record, dict) or record.get("counterexample") != VERSION:
            raise UsageError(f"{path.name} is not a counterexample of version {VERSION}")
        try:
            workload = Workload.from_json(record["workload"])
            kinds, broken = tuple(record["kinds"]), tuple(record["broken"])
            return cls(str(record["system"]), workload, kinds, broken)
        except (KeyError, TypeError, ValueError) as error:
            raise UsageError(f"{path.name} is not a counterexample: {error}") from error


def _layout(value: Any, indent: str = "") -> str:
    """JSON with one line for each sentence and each arrival."""
    deeper = indent + " "
    if isinstance(value, dict) and value:
        lines = [f"{json.dumps(key)}: {_layout(item, deeper)}" for key, item in value.items()]
        return "{\n" + ",\n".join(deeper + line for line in lines) + f"\n{indent}}}"
    if isinstance(value, list) and any(isinstance(item, list | str) for item in value):
        lines = [json.dumps(item, ensure_ascii=False) for item in value]
        return "[\n" + ",\n".join(deeper + line for line in lines) + f"\n{indent}]"
    return json.dumps(value, ensure_ascii=False)
