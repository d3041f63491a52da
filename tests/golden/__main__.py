"""Writes the archives of the present version: ``python -m tests.golden [NAME ...]``.

A store is that of a soak's room in the middle of its stream: some files have been processed, and
others lie beside the input for the version that goes on. A command has its words and files.
"""

import json
import shutil
import sys
import tempfile
from contextlib import chdir
from pathlib import Path
from random import Random

from pyspark.sql import SparkSession

from spark_impl.runtime.session import session
from tests.golden.archive import pack
from tests.harness.fuzzed_commands import Form, call, make_forms
from tests.soak.driver import Desk
from tests.soak.oracles import ORACLES
from tests.soak.rooms import Feeder

FOLDER = Path(__file__).parent
PRESENT = "unreleased"
BEFORE, AFTER = 4, 3
"""Files of the input that the store has processed, and that come after it."""
FORMS = ("judge ", "replay ", "report", "conformance")
"""Beginnings of the names of commands that read what earlier versions wrote."""


def main(*names: str) -> None:
    """Write the archives of some names anew, or all: ``commands``, ``store-slack``, ..."""
    folder = FOLDER / PRESENT
    folder.mkdir(exist_ok=True)
    stores = {f"store-{room}": room for room in ORACLES}
    with tempfile.TemporaryDirectory(prefix="straggler-golden-") as scratch:
        for name in names or ("commands", *stores):
            place = Path(scratch) / name
            if name == "commands":
                write_forms(place)
            else:
                with session("local[8]") as spark:
                    begin_store(spark, stores[name], place)
            pack(place, folder / f"{name}.zip")


def write_forms(folder: Path) -> None:
    """Write every command that reads what earlier versions wrote."""
    for name, form in make_forms().items():
        if name.startswith(FORMS):
            write_form(form, folder / name.replace(" ", "-"))


def begin_store(spark: SparkSession, room: str, folder: Path) -> None:
    """Run the queries of a room over the first files, check them, and stop."""
    feeder = Feeder(room, folder / "disk" / "in", Random(f"golden/{room}"))
    for number in range(BEFORE):
        feeder.feed(again=number == 2)
    desk = Desk(spark)
    given = {"room": room, "folder": str(folder), "workers": 2}
    for command in ("start", "settle", "stop"):
        said = desk.carry_out({"do": command, **given})
        assert said == command, said
    observed = json.loads((folder / "observed.json").read_text(encoding="utf-8"))
    findings = ORACLES[room](room).check(feeder.arrivals, observed, ended=False)
    assert not findings, findings
    (folder / "observed.json").unlink()
    begun = folder / "disk" / "in"
    known = set(begun.iterdir())
    for number in range(AFTER):
        feeder.feed(again=number == 1)
    later = folder / "later"
    later.mkdir()
    for path in sorted(set(begun.iterdir()) - known):
        shutil.move(path, later / path.name)
    (folder / "arrivals.json").write_text(json.dumps(feeder.arrivals), encoding="utf-8")


def write_form(form: Form, folder: Path) -> None:
    """Write the words and the files of a command, and the exit code with which it ends."""
    for name, content in form.files.items():
        path = folder / "files" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    given = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    with chdir(folder / "files"):
        code = call(form.words)
    for path in folder.rglob("*"):
        if path.is_file() and path not in given:
            path.unlink()
    assert given == {path: path.read_bytes() for path in given}
    command = json.dumps({"words": [*form.words], "code": code})
    (folder / "command.json").write_text(command, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
