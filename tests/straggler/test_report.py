"""``straggler report``: a page of results, and published claims with their evidence."""

import ast
import json
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from sim.sweep.engine import Judged, Sweep
from sim.sweep.experiment import Reproduction
from sim.sweep.jobs import perform
from sim.sweep.reading import catalogue, find
from sim.sweep.store import Store
from straggler.pages.evidence import PROMISES
from straggler.pages.reproduction import read_summary
from straggler.rooms import find_rooms
from straggler.sweeps.files import read_report
from tests.sim import made_up
from tests.straggler.command import Straggler

STEM = "watermark-alone-quick"


def store(folder: Path, *stored: tuple[made_up.Record, made_up.Columns]) -> Path:
    """Write the files that a sweep would leave for these records, and return their folder."""
    folder.mkdir()
    for record, columns in stored or made_up.ALL:
        stem = f"{record['experiment']['name']}-{record['effort']}"
        (folder / f"{stem}.json").write_text(json.dumps(record), encoding="utf-8")
        parquet.write_table(pa.table(columns), folder / f"{stem}.parquet")
    return folder


@pytest.fixture
def sweeps(tmp_path: Path) -> Path:
    """Return the default folder of results, with results."""
    return store(tmp_path / "sweeps")


def test_all_results_are_on_the_page(straggler: Straggler, sweeps: Path, tmp_path: Path) -> None:
    for name in ("report.html", "again.html"):
        done = straggler("report", "--output", name)
        assert (done.code, done.err) == (0, "")
        assert done.out.startswith(f"{name}: 6 experiments, 168 runs: 1 reproduced, ")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert page.count("<article") == 6
    assert (tmp_path / "again.html").read_text(encoding="utf-8") == page
    assert {path.name for path in tmp_path.iterdir()} == {"sweeps", "report.html", "again.html"}


def test_a_full_sweep_goes_before_a_quick_one(straggler: Straggler, sweeps: Path) -> None:
    record, _ = made_up.ALONE
    for old in sweeps.glob(f"{STEM}.*"):
        name = old.name.replace("quick", "full")
        (sweeps / name).write_bytes(old.read_bytes())
    full = {**record, "effort": "full", "again": "straggler sweep watermark-alone --full"}
    (sweeps / "watermark-alone-full.json").write_text(json.dumps(full), encoding="utf-8")
    entries = {entry.name: entry for entry in read_report(sweeps)}
    assert len(entries) == 6
    assert entries["watermark-alone"].effort == "full"
    assert {entry.effort for entry in read_report(sweeps, ["quick"])} == {"quick"}
    done = straggler("report", "--effort", "full")
    assert done.out.startswith("report.html: 1 experiment, 3 runs: 1 reproduced.")


ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
QUICKEST = ("slack-streams", "join-batches", "grouping-three", "watermark-tasks", "script-panes")
"""A quick experiment of each room."""


@pytest.mark.parametrize(
    "name",
    [QUICKEST[0], *(pytest.param(name, marks=pytest.mark.long) for name in QUICKEST[1:])],
)
def test_a_stored_verdict_comes_out_again(name: str, tmp_path: Path) -> None:
    stored = {entry.name: entry for entry in read_summary(DOCS / "reproduction.json")}[name]
    sweep = Sweep([find(name)], "quick", Store(tmp_path), partial(map, perform))
    (found,) = [each.results for each in sweep.events() if isinstance(each, Judged)]
    assert (found.verdict, found.outcome) == (stored.verdict, stored.outcome)
    always = {each.says for each in find(name).expectations if not each.only}
    expected = {(e.says, e.verdict, e.outcome) for e in stored.findings if e.says in always}
    judged = [(each.expectation, each.outcome) for each in found.findings]
    again = {(asked.says, asked.verdict, out) for asked, out in judged if asked.says in always}
    assert len(again) == len(always) > 0
    assert expected == again


def test_every_promise_has_tests_that_exist() -> None:
    for promise in PROMISES:
        assert promise.tests
        for test in promise.tests:
            path, name = test.split("::")
            module = ast.parse((ROOT / path).read_text(encoding="utf-8"))
            assert name in {n.name for n in module.body if isinstance(n, ast.FunctionDef)}, test


def test_readings_that_do_not_hold_are_errata_of_the_room() -> None:
    known = {room.name: {erratum.name for erratum in room.errata} for room in find_rooms("all")}
    for promise in PROMISES:
        assert set(promise.errata) <= known[promise.room], promise.claim
        # A promise that is reproduced as written has no erratum; every other one has.
        assert bool(promise.errata) == (promise.verdict is not Reproduction.REPRODUCED)


def test_experiments_are_on_the_page_as_they_are_in_the_catalogue() -> None:
    stored = {entry.name: entry for entry in read_summary(DOCS / "reproduction.json")}
    assert set(stored) <= set(catalogue())
    for experiment in map(find, stored):
        entry = stored[experiment.name]
        assert (entry.room, entry.title) == (experiment.room, experiment.title)
        assert entry.claim == experiment.claim
        assert entry.published == (experiment.published.says if experiment.published else "")
        judged = ("", entry.effort)
        expected = {each.says for each in experiment.expectations if each.only in judged}
        assert {finding.says for finding in entry.findings} == expected
