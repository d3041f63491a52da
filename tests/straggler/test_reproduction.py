"""docs/reproduction.md: written from what is stored, and no verdict without evidence."""

import ast
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from model.checking.claims import Outcome
from model.vocabulary.settings import PlainData
from sim.report.contents import Report
from sim.report.entries import entry_of
from sim.sweep.engine import Judged, Sweep
from sim.sweep.experiment import Reproduction
from sim.sweep.jobs import perform
from sim.sweep.reading import catalogue, find
from sim.sweep.store import Store
from straggler.errors import UsageError
from straggler.pages.evidence import MEASURED, PROMISES
from straggler.pages.reproduction import figures, page, read_summary, summary_of
from straggler.rooms import find_rooms
from tests.sim import made_up
from tests.straggler.command import Straggler, assert_refused
from tests.straggler.test_report import store

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
RESULTS = ROOT / "benchmarks" / "results"
QUICKEST = ("slack-streams", "join-batches", "grouping-three", "watermark-tasks", "script-panes")
"""A quick experiment of each room."""
WHOLE = tuple(each for each in made_up.ALL if not each[0]["failed"])


def report() -> Report:
    return tuple(entry_of(*each) for each in WHOLE)


# ------------------------------------------------------------------------- what is behind verdicts


@pytest.mark.parametrize("name", QUICKEST)
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


def test_sources_are_named_as_experiments_name_them() -> None:
    papers: dict[str, set[str]] = {}
    for experiment in map(find, catalogue()):
        if experiment.source:
            papers.setdefault(experiment.room, set()).add(experiment.source.paper)
    assert papers
    for promise in PROMISES:
        assert papers.get(promise.room, {promise.source}) == {promise.source}


def test_every_figure_of_a_benchmark_is_stored() -> None:
    known = figures(RESULTS)
    named = {(each.benchmark, each.figure) for several in MEASURED.values() for each in several}
    assert set(known) == named


def test_a_figure_that_is_not_stored_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"\.json' has no figure '.*`make bench NAME=\w+`"):
        figures(tmp_path)


# ---------------------------------------------------------------------------------------- the page


def test_every_experiment_states_its_claim_and_its_figures() -> None:
    text = page(report(), figures(RESULTS))
    for entry in report():
        start = text.index(f"\n#### {entry.name}\n")
        part = text[start : text.find("\n####", start + 1)]
        assert entry.claim in part or entry.title in part
        assert f"`{entry.again}`" in part
        for finding in entry.findings:
            seen = f"{finding.says}: {finding.sentence}."
            if finding.outcome is Outcome.HOLDS:
                assert f"- {seen} *{finding.verdict.value}*\n" in part
            else:  # its verdict on the claim would count only if it were met
                assert f"- **{finding.outcome.value}**: {seen}\n" in part
    assert "**Assumed.** Weights are a stand-in.\n" in text
    assert "| slack | 0 | 1 | 2 | 0 | 0 |\n" in text


def test_a_line_of_a_table_is_one_line() -> None:
    text = page((report()[0]._replace(claim="It is | so.\n\n# Really"),), figures(RESULTS))
    assert "| It is \\| so. # Really |" in text


def test_figures_on_spark_stand_beside_their_experiment() -> None:
    name, several = next(iter(MEASURED.items()))
    named = report()[0]._replace(name=name)
    known = dict.fromkeys(figures(RESULTS), 1.25)
    text = page((named,), known)
    for each in several:
        behind = f"`make bench NAME={each.benchmark}`, *{each.figure}*"
        assert f"- {each.says}: 1.25 ({behind})." in text
    assert "On Spark" not in page(report(), known)


def test_the_page_is_current() -> None:
    written = page(read_summary(DOCS / "reproduction.json"), figures(RESULTS))
    command = (
        "straggler report docs/reproduction.json --reproduction docs/reproduction.md"
        " --measured benchmarks/results"
    )
    assert (DOCS / "reproduction.md").read_text(encoding="utf-8") == written, command


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


# ------------------------------------------------------------------------------------- the command


def test_the_page_is_written_and_written_again_from_its_summary(
    straggler: Straggler, tmp_path: Path
) -> None:
    store(tmp_path / "sweeps", *WHOLE)
    measured = ("--measured", str(RESULTS))
    done = straggler("report", "--reproduction", "claims.md", *measured)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("claims.md: 5 experiments, ")
    text = (tmp_path / "claims.md").read_text(encoding="utf-8")
    assert text == page(report(), figures(RESULTS))
    again = straggler("report", "claims.json", "--reproduction", "again.md", *measured)
    assert again.code == 0
    for kind in ("md", "json"):
        first, second = (tmp_path / f"{name}.{kind}" for name in ("claims", "again"))
        assert first.read_bytes() == second.read_bytes()
    assert not (tmp_path / "report.html").exists()


def test_unwritable_and_unreadable_paths_are_refused(straggler: Straggler, tmp_path: Path) -> None:
    assert_refused(straggler("report", "--reproduction", "claims.html"), "must end in .md")
    store(tmp_path / "sweeps", *WHOLE)
    refused = straggler("report", "--reproduction", "claims.md")
    assert_refused(refused, "--reproduction needs --measured DIR")
    refused = straggler("report", "--reproduction", "claims.md", "--measured", "nowhere")
    assert_refused(refused, "nowhere", "`make bench NAME=")
    assert not (tmp_path / "claims.json").exists()


def test_results_with_failed_runs_are_refused(straggler: Straggler, tmp_path: Path) -> None:
    store(tmp_path / "sweeps")
    refused = straggler("report", "--reproduction", "claims.md", "--measured", str(RESULTS))
    assert_refused(refused, "join-latency", "1 run failed")
    assert not (tmp_path / "claims.md").exists()


@pytest.mark.parametrize(
    "spoil",
    [
        lambda record: record.pop("experiments"),
        lambda record: record["experiments"][0].pop("claim"),
        lambda record: record["experiments"][0].update(verdict="proved"),
        lambda record: record["experiments"][0].update(findings=None),
    ],
)
def test_an_invalid_summary_is_refused(
    tmp_path: Path, spoil: Callable[[dict[str, PlainData]], object]
) -> None:
    path = tmp_path / "claims.json"
    path.write_text(summary_of(report()), encoding="utf-8")
    assert len(read_summary(path)) == len(WHOLE)
    record = json.loads(path.read_text(encoding="utf-8"))
    spoil(record)
    path.write_text(json.dumps(record), encoding="utf-8")
    with pytest.raises(UsageError, match=r"claims\.json' is not a summary"):
        read_summary(path)
