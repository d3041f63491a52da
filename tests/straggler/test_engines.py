"""The folders of judged engines keep to their layout, and the page is what was judged."""

import ast
import sys
from contextlib import closing
from itertools import product
from pathlib import Path

import pytest

from model.vocabulary import Workload
from straggler.conformance.engines import Engine, engine_names, load_engine
from straggler.conformance.page import Row, write_page
from straggler.conformance.results import REPRODUCED, Results, read_results
from straggler.conformance.trials import (
    follow_trail,
    open_engine,
    try_workload,
)
from straggler.errors import UsageError
from tests.house.repository import CODE, ROOT

FOLDER = ROOT / "engines"
ENVIRONMENTS = ROOT / ".engines"
ENGINES = [load_engine(FOLDER, name, ENVIRONMENTS) for name in engine_names(FOLDER)]
ADAPTER_LINES, TRAIL_LINES = 150, 40
STREAMS = 100
"""Number of different streams of a case."""

each_engine = pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.name)


def imported(path: Path) -> set[str]:
    """Return the packages that a script imports."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(str(node.module).split(".")[0])
    return found


def lines_of(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def present(engine: Engine) -> Engine:
    """Return the engine; skip the test if it is not installed."""
    try:
        engine.refuse_absent()
    except UsageError as error:
        pytest.skip(str(error))
    return engine


def judged(engine: Engine) -> Results:
    """Return the stored results; skip the test if there are none."""
    results = read_results(engine)
    if results is None:
        pytest.skip(f"{engine.title} was not judged yet")
    return results


# ---------------------------------------------------------------------------------------- layout


@each_engine
def test_an_adapter_is_short_and_imports_nothing_of_ours(engine: Engine) -> None:
    assert lines_of(engine.adapter) <= ADAPTER_LINES
    assert not imported(engine.adapter) & set(CODE)
    assert imported(engine.adapter) - sys.stdlib_module_names


@each_engine
def test_a_script_is_short_and_does_without_the_adapter(engine: Engine) -> None:
    for path in (engine.folder / "trails").iterdir():
        if path.suffix == ".py":
            assert lines_of(path) <= TRAIL_LINES, path.name
            assert not imported(path) & {*CODE, "adapter"}, path.name


@each_engine
def test_versions_are_pinned_and_the_engine_has_the_version_of_its_description(
    engine: Engine,
) -> None:
    text = (engine.folder / "requirements.txt").read_text(encoding="utf-8")
    rows = [line.split("==") for line in text.splitlines() if line and not line.startswith("#")]
    assert all(len(row) == 2 for row in rows), rows
    assert dict(rows)[engine.package] == engine.version


@each_engine
def test_every_finding_has_a_script_and_every_script_a_finding(engine: Engine) -> None:
    scripts = {path.name for path in (engine.folder / "trails").glob("*.py")}
    assert {finding.script for finding in engine.findings} == scripts


# --------------------------------------------------------------------------------------- results


def test_the_page_is_what_the_stored_results_say() -> None:
    page = (ROOT / "docs" / "conformance.md").read_text(encoding="utf-8")
    assert page == write_page([Row(engine, read_results(engine)) for engine in ENGINES]), (
        "straggler conformance --stored --markdown docs/conformance.md"
    )


@each_engine
def test_the_results_are_about_what_the_engine_is_asked_for(engine: Engine) -> None:
    results = judged(engine)
    asked = {(each.promise, each.how) for each in engine.cases}
    assert {(each.promise, each.how) for each in results.cases} <= asked
    assert all(each.counts["workloads"] == STREAMS for each in results.cases)
    found = {(each.sentence, each.script, each.says, each.address) for each in engine.findings}
    tried = {(each.sentence, each.script, each.says, each.address) for each in results.trails}
    assert tried == found


@pytest.mark.timeout(900)
@each_engine
def test_every_script_still_shows_what_it_showed(engine: Engine) -> None:
    results = judged(present(engine))
    for finding, trail in zip(engine.findings, results.trails, strict=True):
        assert follow_trail(engine, finding).outcome == trail.outcome, finding.script


@pytest.mark.timeout(900)
@each_engine
def test_every_stored_counterexample_still_breaks_its_promise(engine: Engine) -> None:
    results = judged(present(engine))
    with closing(open_engine(engine)) as system:
        for asked, case in product(engine.cases, results.cases):
            is_it = (asked.promise, asked.how) == (case.promise, case.how)
            if is_it and case.workload is not None:
                workload = Workload.from_json(case.workload)
                tried = try_workload(asked, system, workload)
                assert tried.judged.broken, case.promise
                assert tried.has_failed == bool(case.failure), tried.judged.broken


def test_a_trail_that_was_reproduced_is_called_so() -> None:
    found = filter(None, map(read_results, ENGINES))
    outcomes = {trail.outcome for results in found for trail in results.trails}
    assert outcomes <= {REPRODUCED, "closed"}
