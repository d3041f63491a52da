"""Damage to the files of a store, drawn by Hypothesis, and a judgement of how a query takes it.

Rules of this file:

* A damaged store gives right answers or one sentence of ours. It gives no other error, no wrong
  answer, and leaves no half-written file of ours behind.
* One damage is not drawn: a flipped byte in a Parquet file. Its rows have checksums, its footer has
  none (``tests/spark_impl/test_stores.py``).
* Results are a DataFrame of Spark, so its error for a file that it cannot read may reach the user.
* A store is one of ``tests/golden``, half way through its stream. The query goes on to its end.
"""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from hypothesis import strategies as st
from pyspark.sql import SparkSession

from tests.golden.__main__ import FOLDER, PRESENT
from tests.golden.archive import unpack
from tests.soak.driver import Desk
from tests.soak.oracles import ORACLES, Arrival

KINDS = ("flip", "truncate", "remove", "duplicate", "swap", "empty")
OURS = re.compile(r"failed (\w+Problem: \S|\w+: \[FAILED_READ_FILE)")
LONGEST_SENTENCE = 1_000
FLUSHED = "flush"


class Damage(NamedTuple):
    """One damage to a store."""

    room: str
    kind: str
    place: float
    """Position of the damaged file among those of its kind, from 0 to below 1."""
    depth: float
    """Position of the damage in the file, from 0 to below 1."""


def damages(room: str) -> st.SearchStrategy[Damage]:
    """Draw a damage to the store of a room."""
    share = st.floats(0, 1, exclude_max=True)
    return st.builds(Damage, st.just(room), st.sampled_from(KINDS), share, share)


def apply_damage(damage: Damage, store: Path) -> Path:
    """Damage a file of a store; return the file."""
    files = sorted(path for path in store.rglob("*") if path.is_file())
    if damage.kind == "empty":
        files = [path for path in files if path.suffix == ".json"]
    if damage.kind == "flip":
        files = [path for path in files if path.suffix != ".parquet"]
    path = files[int(damage.place * len(files))]
    content = path.read_bytes()
    at = int(damage.depth * len(content))
    match damage.kind:
        case "flip":
            flipped = bytes([content[at] ^ 0xFF]) if content else b"\xff"
            path.write_bytes(content[:at] + flipped + content[at + 1 :])
        case "truncate":
            path.write_bytes(content[:at])
        case "remove":
            path.unlink()
        case "duplicate":
            shutil.copy(path, path.with_name(f"{path.stem}-copy{path.suffix}"))
        case "swap":
            other = files[int(damage.depth * len(files))]
            path.write_bytes(other.read_bytes())
            other.write_bytes(content)
        case _:
            path.write_bytes(b"")
    return path


def go_on(spark: SparkSession, damage: Damage, folder: Path) -> list[str]:
    """Unpack a store, damage it, and run its query to its end; return what was wrong."""
    unpack(FOLDER / PRESENT / f"store-{damage.room}.zip", folder)
    file = apply_damage(damage, folder / "disk" / "store")
    for path in sorted((folder / "later").iterdir()):
        shutil.move(path, folder / "disk" / "in" / path.name)
    given = {"room": damage.room, "folder": str(folder), "workers": 2}
    said = Desk(spark).carry_out({"do": FLUSHED, **given})
    return list(_problems(damage, folder, file, said))


def _problems(damage: Damage, folder: Path, file: Path, said: str) -> Iterator[str]:
    if said != FLUSHED:
        if not OURS.match(said) or "Traceback" in said or len(said) > LONGEST_SENTENCE:
            yield f"not one sentence of ours: {said[:LONGEST_SENTENCE]}"
    else:
        rows = json.loads((folder / "arrivals.json").read_text(encoding="utf-8"))
        observed = json.loads((folder / "observed.json").read_text(encoding="utf-8"))
        arrivals = [Arrival(*row) for row in rows]
        findings = ORACLES[damage.room](damage.room).check(arrivals, observed, ended=True)
        yield from (f"{each.kind}: {each.what}" for each in findings[:3])
    for path in (folder / "disk" / "store").rglob("*.json"):
        if path != file and damage.kind != "swap":
            try:
                for action in path.read_bytes().splitlines() or [b""]:  # of a version of the table
                    json.loads(action)
            except ValueError:
                yield f"{path} is half-written"
