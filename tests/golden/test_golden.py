"""Files of earlier versions are gone on with, or refused in one sentence."""

import json
import re
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from spark_impl.runtime.accounts import ledger
from spark_impl.runtime.tables import IDENTITY
from tests.golden.__main__ import FOLDER, FORMS, PRESENT
from tests.golden.archive import unpack
from tests.harness.fuzzed_commands import call, make_forms
from tests.soak.driver import Desk
from tests.soak.oracles import ORACLES, Arrival
from tests.soak.rooms import PLACES

VERSIONS = sorted(path.parent.name for path in FOLDER.glob("*/commands.zip"))
STORES = [path for name in VERSIONS for path in sorted((FOLDER / name).glob("store-*.zip"))]


def named(path: Path) -> str:
    return f"{path.parent.name}-{path.stem}"


def room_of(path: Path) -> str:
    return path.stem.removeprefix("store-")


def carry_out(desk: Desk, folder: Path, room: str, *commands: str) -> dict[str, Any]:
    """Carry out commands on the queries of a room; return what users then read."""
    for command in commands:
        given = {"room": room, "folder": str(folder), "workers": 2}
        assert desk.carry_out({"do": command, **given}) == command
    found: dict[str, Any] = json.loads((folder / "observed.json").read_text(encoding="utf-8"))
    return found


def test_the_present_version_is_among_them() -> None:
    assert {room_of(path) for path in STORES if path.parent.name == PRESENT} == set(PLACES)


@pytest.mark.long
@pytest.mark.parametrize("archive", STORES, ids=named)
def test_a_store_goes_on(archive: Path, spark: SparkSession, tmp_path: Path) -> None:
    room = room_of(archive)
    unpack(archive, tmp_path)
    rows = json.loads((tmp_path / "arrivals.json").read_text(encoding="utf-8"))
    arrivals = [Arrival(*row) for row in rows]
    files = sorted((tmp_path / "later").iterdir())
    before = set((tmp_path / "disk" / "handed").rglob("*.json"))
    assert before, "the store has answers already"
    for file in files:
        shutil.move(file, tmp_path / "disk" / "in" / file.name)
    desk, oracle = Desk(spark), ORACLES[room](room)
    observed = carry_out(desk, tmp_path, room, "start", "settle", "stop")
    checked = oracle.check(arrivals, observed, ended=False), oracle.checked
    assert checked[0] == []
    assert set((tmp_path / "disk" / "handed").rglob("*.json")) > before, "it has new ones"
    observed = carry_out(desk, tmp_path, room, "flush")
    assert oracle.check(arrivals, observed, ended=True) == []
    assert oracle.checked >= checked[1] > 0
    assert ledger(tmp_path / "disk" / "store").balances


@pytest.mark.parametrize("room", PLACES)
def test_a_store_of_an_unknown_version_is_refused(
    room: str, spark: SparkSession, tmp_path: Path
) -> None:
    unpack(FOLDER / PRESENT / f"store-{room}.zip", tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    store = tmp_path / "disk" / "store"
    table = DeltaTable(str(store))
    identity = json.loads(table.metadata().configuration[IDENTITY])
    changed = {IDENTITY: json.dumps({**identity, "version": 99})}
    table.alter.set_table_properties(changed, raise_if_not_exists=False)
    given = {"room": room, "folder": str(tmp_path), "workers": 2}
    said = Desk(spark).carry_out({"do": "start", **given})
    wanted = r"failed InputProblem: \S+ was written by version 99 of the store, not \d+"
    assert re.fullmatch(wanted, said), said
    assert {path: path.read_bytes() for path in before} == before


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("commands")
    for name in VERSIONS:
        unpack(FOLDER / name / "commands.zip", folder / name)
    return folder


def stored_commands() -> list[tuple[str, str]]:
    """Return the version and the name of each stored command."""
    found: list[tuple[str, str]] = []
    for name in VERSIONS:
        with zipfile.ZipFile(FOLDER / name / "commands.zip") as archive:
            files = map(Path, archive.namelist())
            found += [(name, file.parent.name) for file in files if file.name == "command.json"]
    return found


@pytest.mark.parametrize(("name", "command"), stored_commands())
def test_a_command_reads_what_was_written(
    name: str, command: str, commands: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = commands / name / command
    monkeypatch.chdir(folder / "files")
    stored = json.loads((folder / "command.json").read_text(encoding="utf-8"))
    name, *others = stored["words"]
    trusts = ["--trust"] * (name == "replay")  # earlier versions ran what a file names unasked
    assert call([name, *trusts, *others]) == stored["code"] != 2


def test_every_form_that_reads_stored_files_is_there(commands: Path) -> None:
    wanted = {name.replace(" ", "-") for name in make_forms() if name.startswith(FORMS)}
    assert wanted == {path.name for path in (commands / PRESENT).iterdir()}
