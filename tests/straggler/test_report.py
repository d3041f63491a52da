"""Pages: results and published claims with their evidence, runs and comparisons as one file.

At night a browser looks at the pages.
"""

import ast
import html
import json
import re
import shutil
import subprocess
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from sim.report.run_page import POLICY
from sim.sweep.engine import Judged, Sweep
from sim.sweep.experiment import Reproduction
from sim.sweep.jobs import perform
from sim.sweep.reading import catalogue, find
from sim.sweep.store import Store
from straggler.cli import sweep as command
from straggler.pages.evidence import PROMISES
from straggler.pages.reproduction import read_summary
from straggler.rooms import find_rooms
from straggler.sweeps.files import read_report
from tests.sim.experiments import SMALL as EXPERIMENT
from tests.straggler.command import Straggler, assert_refused

PUBLISHED = """
[source]
paper = "A paper about slow workers"
where = "Figure 7"

[published]
says = "A tenth more than DAG; the gap grows."
values = { share = 0.95 }
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
    page = (tmp_path / "report.md").read_text(encoding="utf-8")
    for name in ("small", "missed", "unsure"):
        assert f"#### {name}\n" in page
    assert "**Published.** A tenth more than DAG; the gap grows. As numbers: share 0.95." in page
    assert (tmp_path / "again.md").read_text(encoding="utf-8") == page
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


FAULTS = "slow worker-1 1s 2s 4; fail worker-0 4s 1s; duplicate source-0 9 5"
SMALL = ("--set", "messages=200", "--set", "tasks=6", "--set", f"faults={FAULTS}")
BUGGY = "model.slack.variants:lost_update"
STREAM = "event_time,value,key\n" + "".join(f"{at},1,k\n" for at in (1, 9, 2, 12, 30, 11, 40))
ASK = ("diff", "slack", "--time-unit", "s", "--per", "key", "--control", "fixed", "--system", BUGGY)


PICTURE = re.compile(r'<img class="plot" alt="[^"<]*" src="data:image/svg\+xml;base64,[\w+/=]*">')


def read(folder: Path, name: str = "run.html") -> str:
    """Return a page, which is whole and needs nothing."""
    page = (folder / name).read_text(encoding="utf-8")
    names = re.findall(r'\bid="([^"]*)"', page)
    assert len(set(names)) == len(names)
    assert {link for link in re.findall(r'href="([^"]*)"', page) if link[1:] not in names} == set()
    assert html.unescape(page).count(POLICY) == 1
    rest = re.sub(PICTURE, "", page)
    assert not re.search(r'https?:|@import|javascript:|src="|<script|<img|<image', rest)
    return page


def test_a_broken_comparison_shows_its_counterexample_and_escapes_names(
    straggler: Straggler, tmp_path: Path
) -> None:
    name = "<img src=x>&\"'.csv"
    (tmp_path / name).write_text(STREAM.replace(",k\n", ",<b>key\n"), encoding="utf-8")
    chosen = ("--aggregate", "sum", "--reference", "model", "--level", "steps")
    assert straggler(*ASK, "--input", name, *chosen, "--html", "run.html").code == 1
    page = read(tmp_path)
    for said in ("straggler replay counterexamples", "&lt;img src=x&gt;&amp;&#34;", "&lt;b&gt;key"):
        assert said in page


# ------------------------------------------------------------------------------------ in a browser

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--hide-scrollbars", "--enable-logging=stderr", "--virtual-time-budget=5000"),
    "--host-resolver-rules=MAP * ~NOTFOUND",  # whatever is asked for, nothing leaves the machine
    "--allow-file-access-from-files",  # so that the frame may look into the page
)
FRAME = """\
<!DOCTYPE html>
<iframe src="page.html" style="width: %dpx; height: 844px; border: 0"></iframe>
<script>
const height = each => each.getBoundingClientRect().height;
// This page is loaded when the one in the frame is.
window.addEventListener("load", () => {
  const frame = document.querySelector("iframe");
  const page = frame.contentDocument, root = page.documentElement;
  page.querySelectorAll("details").forEach(each => { each.open = true; });
  document.body.textContent = JSON.stringify({
    fits: root.scrollWidth <= root.clientWidth,
    plots: [...page.querySelectorAll("img")].filter(each => height(each) > 100).length,
    fetched: frame.contentWindow.performance.getEntriesByType("resource").map(each => each.name),
  });
});
</script>
"""


def look(page: str, folder: Path, width: int) -> dict[str, Any]:
    """Open a page with everything unfolded, or skip the test where there is no browser."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip(f"NOBODY HAS LOOKED AT THE PAGE: none of {', '.join(BROWSERS)} is installed")
    (folder / "page.html").write_text(page, encoding="utf-8")
    frame = folder / "frame.html"
    frame.write_text(FRAME % width, encoding="utf-8")
    profile = f"--user-data-dir={folder / 'profile'}"
    done = subprocess.run(
        [found, *FLAGS, profile, "--dump-dom", frame.as_uri()],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    said = re.search(r"<body>(.*)</body>", done.stdout, re.DOTALL)
    assert said, done.stderr[-2000:]
    assert "Content Security Policy" not in done.stderr
    seen: dict[str, Any] = json.loads(html.unescape(said[1]))
    return seen


@pytest.mark.long
@pytest.mark.parametrize(
    "command",
    [
        ("sim", "slack", *SMALL, "--html"),
        (*ASK, "--input", "s.csv", "--aggregate", "sum", "--html"),
    ],
)
def test_a_browser_shows_every_plot_and_fetches_nothing(
    straggler: Straggler, tmp_path: Path, command: tuple[str, ...]
) -> None:
    (tmp_path / "s.csv").write_text(STREAM, encoding="utf-8")
    assert straggler(*command, "run.html").code in (0, 1)
    page = read(tmp_path)
    plots = len(PICTURE.findall(page))
    assert plots == 1
    for width in (320, 1280):
        seen = look(page, tmp_path, width)
        assert seen == {"fits": True, "plots": plots, "fetched": []}
