"""The page of results and published claims with their evidence."""

import ast
import json
import re
from functools import partial
from pathlib import Path

import pytest

from sim.sweep.engine import Judged, Sweep
from sim.sweep.jobs import perform
from sim.sweep.reading import catalogue, find
from sim.sweep.store import Store
from straggler.cli import sweep as command
from straggler.pages.reproduction import read_summary
from straggler.sweeps.files import read_report
from tests.sim.experiments import SMALL as EXPERIMENT
from tests.straggler.command import Straggler, assert_refused

PUBLISHED = """
[source]
paper = "A paper about slow workers"
where = "Figure 7"

[published]
says = "A tenth more than DAG; the gap grows."
"""
SLOWER = '[factors.slower]\n"3" = { faults = "explode worker-0 1 2" }'
EXPERIMENTS = {
    "small": EXPERIMENT + PUBLISHED,
    "failing": EXPERIMENT.replace("[factors.slower]", SLOWER),
    "missed": EXPERIMENT.replace("-1000", "1000"),
    "unsure": EXPERIMENT.replace("share = served_hz", "share = served"),
}
"""Experiments by name, of every outcome; one has failed runs."""


@pytest.fixture
def sweeps(straggler: Straggler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Sweep the experiments; return the default folder of results."""
    monkeypatch.setattr(command, "run_on_processes", lambda jobs, processes: map(perform, jobs))
    for name, text in EXPERIMENTS.items():
        path = tmp_path / f"{name}.toml"
        path.write_text(text.replace('name = "small"', f'name = "{name}"'), encoding="utf-8")
        assert straggler("sweep", path.name).code in (0, 1, 3)
    return tmp_path / "sweeps"


def test_all_results_are_on_the_page(straggler: Straggler, sweeps: Path, tmp_path: Path) -> None:
    before = {path.name for path in tmp_path.iterdir()}
    assert_refused(straggler("report"), "failing is incomplete: 4 runs failed")
    assert {path.name for path in tmp_path.iterdir()} == before
    (sweeps / "failing-quick.json").unlink()
    for name, source in (("report.md", "sweeps"), ("again.md", "report.json")):
        done = straggler("report", source, "--output", name)
        assert (done.code, done.err) == (0, "")
        assert done.out.startswith(f"{name}: 3 experiments, 24 runs: 1 reproduced, ")
    assert (tmp_path / "again.md").read_bytes() == (tmp_path / "report.md").read_bytes()
    written = {f"{name}.{ending}" for name in ("report", "again") for ending in ("md", "json")}
    assert {path.name for path in tmp_path.iterdir()} == before | written


def test_a_full_sweep_goes_before_a_quick_one(straggler: Straggler, sweeps: Path) -> None:
    for old in sweeps.glob("small-quick.*"):
        (sweeps / old.name.replace("quick", "full")).write_bytes(old.read_bytes())
    record = json.loads((sweeps / "small-quick.json").read_text(encoding="utf-8"))
    full = {**record, "effort": "full", "again": "straggler sweep small.toml --full"}
    (sweeps / "small-full.json").write_text(json.dumps(full), encoding="utf-8")
    entries = {entry.name: entry for entry in read_report(sweeps)}
    assert len(entries) == 4
    assert entries["small"].effort == "full"
    assert {entry.effort for entry in read_report(sweeps, ["quick"])} == {"quick"}
    done = straggler("report", "--effort", "full")
    assert done.out.startswith("report.md: 1 experiment, 8 runs: 1 reproduced.")


ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
QUICKEST = ("grouping-three", "join-batches", "slack-streams", "watermark-tasks", "script-panes")
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


def test_promises_without_a_figure_have_tests_that_exist() -> None:
    page = (DOCS / "published.md").read_text(encoding="utf-8").partition("\n## Promises without")[2]
    named = re.findall(r"`([\w/]+\.py)::(\w+)`", page)
    assert len(named) > 10
    for path, name in named:
        module = ast.parse((ROOT / path).read_text(encoding="utf-8"))
        assert name in {n.name for n in module.body if isinstance(n, ast.FunctionDef)}, name


def test_experiments_are_on_the_page_as_they_are_in_the_catalogue() -> None:
    stored = {entry.name: entry for entry in read_summary(DOCS / "reproduction.json")}
    assert set(stored) <= set(catalogue())
    for experiment in map(find, stored):
        entry = stored[experiment.name]
        assert (entry.room, entry.title) == (experiment.room, experiment.title)
        assert entry.claim == experiment.claim
        assert entry.published == experiment.published
        judged = ("", entry.effort)
        expected = {each.says for each in experiment.expectations if each.only in judged}
        assert {finding.says for finding in entry.findings} == expected
