"""``--html``: a timed run, or comparisons with the reference, as one page that needs nothing."""

import re
from html import unescape
from pathlib import Path

import pytest

from sim.report.page import POLICY
from straggler.rooms import room_names
from tests.straggler.browser import look
from tests.straggler.command import Straggler

FAULTS = "slow worker-1 1s 2s 4; fail worker-0 4s 1s; duplicate source-0 9 5"
SMALL = ("--set", "messages=200", "--set", "tasks=6", "--set", f"faults={FAULTS}")
SHORTER = {
    "grouping": ("--set", "policies=tag"),
    "join": ("--set", "seconds=10"),
    "script": ("--set", "seconds=10"),
    "slack": SMALL,
}
"""Settings of rooms whose usual run takes seconds."""
MODEL, BUGGY = "model.slack:make_system", "model.slack.variants:lost_update"
STREAM = "event_time,value,key\n" + "".join(f"{at},1,k\n" for at in (1, 9, 2, 12, 30, 11, 40))
ASK = ("diff", "slack", "--input", "s.csv", "--time-unit", "s", "--per", "key")
SUM = ("--control", "fixed", "--aggregate", "sum")


def read(folder: Path) -> str:
    """Return a page, which is whole and needs nothing."""
    page = (folder / "run.html").read_text(encoding="utf-8")
    names = re.findall(r'\bid="([^"]*)"', page)
    assert len(set(names)) == len(names)
    assert {link for link in re.findall(r'href="([^"]*)"', page) if link[1:] not in names} == set()
    assert unescape(page).count(POLICY) == 1
    assert not re.search(r"https?:|@import|javascript:|data:|<script|<img|<image", page)
    return page


@pytest.fixture
def stream(tmp_path: Path) -> Path:
    (tmp_path / "s.csv").write_text(STREAM, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("room", room_names())
def test_a_run_of_every_room_has_its_verdict_settings_latency_and_load(
    straggler: Straggler, tmp_path: Path, room: str
) -> None:
    done = straggler("sim", room, *SHORTER.get(room, ()), "--html", "run.html")
    page = read(tmp_path)
    assert "</span>holds</span>" in page
    for heading in (
        *("Latency", "Tuples and messages at each worker", "Time in which each worker works"),
        *(("Error, mean over all windows answered so far",) if room == "slack" else ()),
    ):
        assert f">{heading}<" in page
    if room == "slack":
        assert done.out.splitlines()[-1] in page
        assert "faults=slow worker-1 1s 2s 4" in page
        assert "slow worker-1, factor 4: from 1s, for 2s" in page
        (rows,) = re.findall(r"longest queue</th></tr></thead><tbody>(.*?)</tbody>", page, re.S)
        assert rows.count("<tr>") == 7  # with the corrector
        assert straggler("sim", room, *SMALL, "--html", "-").out.startswith("<!DOCTYPE html>")


def test_a_broken_comparison_shows_its_counterexample_and_escapes_names(
    straggler: Straggler, tmp_path: Path
) -> None:
    name = "<img src=x>&\"'.csv"
    (tmp_path / name).write_text(STREAM.replace(",k\n", ",<b>key\n"), encoding="utf-8")
    chosen = (*SUM, "--system", BUGGY, "--reference", "model", "--level", "steps")
    ask = (*ASK[:3], name, *ASK[4:])
    assert straggler(*ask, *chosen, "--html", "run.html").code == 1
    page = read(tmp_path)
    for said in (
        "</span>broken</span>",
        "One writer: The stream wrote the window",
        "run it again with: straggler replay counterexamples",
        "slack: &lt;img src=x&gt;&amp;&#34;&#39;.csv",
        "&lt;b&gt;key",
    ):
        assert said in page
    assert "<svg" not in page, "the reference was the untimed model"


@pytest.mark.long
@pytest.mark.parametrize(
    "command",
    [
        ("sim", "slack", *SMALL),
        ("sim", "grouping", "--set", "policies=tag,key"),
        (*ASK, *SUM, "--system", BUGGY),
    ],
)
def test_a_browser_shows_every_plot_of_a_run_and_fetches_nothing(
    straggler: Straggler, stream: Path, command: tuple[str, ...]
) -> None:
    assert straggler(*command, "--html", "run.html").code in (0, 1)
    page = read(stream)
    phone, desk = look(page, stream, 320, dark=True), look(page, stream, 1280)
    for seen in (phone, desk):
        assert seen.plots == page.count("<svg") >= 6
        assert (seen.fetched, seen.refused) == ([], [])
        assert seen.needed <= seen.width
        assert seen.letters >= 8
    assert phone.ground != desk.ground
