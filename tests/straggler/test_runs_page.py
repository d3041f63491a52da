"""``--html``: a timed run, or comparisons with the reference, as one page."""

import re
from collections import Counter
from pathlib import Path

import pytest

from sim.report.page import POLICY
from straggler.rooms import room_names
from tests.sim.test_report import Reader
from tests.straggler.browser import look
from tests.straggler.command import Straggler, assert_refused

FAULTS = "slow worker-1 1s 2s 4; fail worker-0 4s 1s; duplicate source-0 9 5"
SMALL = ("--set", "messages=200", "--set", "tasks=6", "--set", f"faults={FAULTS}")
SHORTER = {
    "grouping": ("--set", "policies=tag"),
    "join": ("--set", "seconds=10"),
    "script": ("--set", "seconds=10"),
}
"""Settings of rooms whose usual run takes seconds."""
MODEL, BUGGY = "model.slack:make_system", "model.slack.variants:lost_update"
UMTS = ("diff", "slack", "--input", "umts", "--per", "task")


def read(folder: Path, name: str = "run.html") -> str:
    """Return a page, which is whole and needs nothing."""
    text = (folder / name).read_text(encoding="utf-8")
    reader = Reader(text)
    names = reader.values("id")
    assert not {name: n for name, n in Counter(names).items() if n > 1}
    assert {link for link in reader.values("href") if link[1:] not in names} == set()
    assert reader.count("meta", content=POLICY) == 1
    assert not re.search(r"https?:|@import|javascript:|data:", text)
    assert reader.count("script") == reader.count("img") == reader.count("image") == 0
    return text


def test_a_timed_run_is_on_its_page(straggler: Straggler, tmp_path: Path) -> None:
    done = straggler("sim", "slack", *SMALL, "--html", "run.html")
    assert done.code == 0
    page = read(tmp_path)
    assert "A timed run of room slack" in page
    assert done.out.splitlines()[-1] in page
    assert "</span>holds</span>" in page
    for said in ("faults=slow worker-1 1s 2s 4", "<dt>tasks</dt><dd>6</dd>", "Eventual exactness"):
        assert said in page
    assert "slow worker-1, factor 4: from 1s, for 2s" in page
    assert "duplicate tuple 9 of source-0" in page
    for heading in ("Latency", "Error, mean over all windows answered so far", "Workers"):
        assert f">{heading}<" in page
    (rows,) = re.findall(r"longest queue</th></tr></thead><tbody>(.*?)</tbody>", page, re.DOTALL)
    assert rows.count("<tr>") == 7  # with the corrector
    assert straggler("sim", "slack", *SMALL, "--html", "again.html").code == 0
    assert read(tmp_path, "again.html") == page.replace("run.html", "again.html")


@pytest.mark.parametrize("room", room_names())
def test_every_room_has_latency_and_load_of_each_worker(
    straggler: Straggler, tmp_path: Path, room: str
) -> None:
    assert straggler("sim", room, *SHORTER.get(room, ()), "--html", "run.html").code == 0
    headings = Reader(read(tmp_path)).texts["h4"]
    for heading in ("Tuples and messages at each worker", "Time in which each worker works"):
        assert heading in headings
    assert "Latency" in headings
    assert ("Error, mean over all windows answered so far" in headings) == (
        room in ("slack", "watermark")
    )


def test_each_comparison_is_a_section(straggler: Straggler, tmp_path: Path) -> None:
    done = straggler(*UMTS, "--system", MODEL, "--html", "run.html")
    assert done.code == 0
    page = read(tmp_path)
    assert f"{MODEL} against the reference" in page
    assert page.count("<article") == 2
    assert re.findall(r'<a href="#(.*?)"', page) == ["slack-0", "slack-1"]
    for title in ("sum per task, 5s/1s", "count per task, 5s/1s"):
        assert page.count(f">{title}<") == 2
    assert page.count("<svg") == 12
    for heading in ("Workers", "All figures"):
        assert page.count(f"<summary>{heading} of the simulation<") == 2
    assert "values exchangeable and independent of delay: untested" in page


def test_a_broken_comparison_shows_its_counterexample(straggler: Straggler, tmp_path: Path) -> None:
    chosen = ("--aggregate", "sum", "--system", BUGGY, "--reference", "model", "--level", "steps")
    done = straggler(*UMTS, *chosen, "--html", "run.html")
    assert done.code == 1
    page = read(tmp_path)
    assert "</span>broken</span>" in page
    assert "One writer: The stream wrote the window" in page
    assert "run it again with: straggler replay counterexamples" in page
    assert "<details open><summary>Promises" in page
    assert "the reference was the untimed model, without a simulation" in page
    assert "<svg" not in page


def test_an_undetermined_run_says_why(straggler: Straggler, tmp_path: Path) -> None:
    settings = ("--set", "tuples=2000", "--set", "policies=none")
    assert straggler("sim", "grouping", *settings, "--html", "run.html").code == 3
    page = read(tmp_path)
    assert "</span>undetermined</span>" in page
    assert "After 0 times it was not put to the test." in page
    assert "the cases that matter never came up" in page


def test_a_promise_whose_case_never_occurred_has_no_tick(
    straggler: Straggler, tmp_path: Path
) -> None:
    in_order = "event_time,value\n" + "".join(f"{second},1\n" for second in range(30))
    (tmp_path / "calm.csv").write_text(in_order, encoding="utf-8")
    ask = ("--input", "calm.csv", "--time-unit", "s", "--per", "task", "--aggregate", "sum")
    chosen = ("--system", MODEL, "--reference", "model", "--level", "steps")
    straggler("diff", "slack", *ask, *chosen, "--html", "run.html")
    page = read(tmp_path)
    items = re.findall(r"<li><span class=\"mark (\w+)\".*?</li>", page, re.DOTALL)
    assert {"met", "unsure"} <= set(items)
    untested = re.findall(r"<li><span class=\"mark (\w+)\"[^<]*<[^<]*<[^<]*<[^(]*\(did not", page)
    assert set(untested) == {"unsure"}
    for item in page.split("<li>"):
        assert ("did not occur" in item) == (": 0)" in item)


def test_a_page_on_standard_output_leaves_the_rest_to_standard_error(
    straggler: Straggler, tmp_path: Path
) -> None:
    done = straggler("sim", "slack", *SMALL, "--html", "-")
    assert done.out.startswith("<!DOCTYPE html>")
    assert done.out.endswith("</html>\n")
    assert "Seed 0, digest " in done.err
    assert not list(tmp_path.iterdir())
    twice = straggler("sim", "slack", "--html", "-", "--json", "-")
    assert_refused(twice, "is named twice")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no file that is always full")
@pytest.mark.parametrize("option", ["--html", "--json"])
def test_a_full_disk_is_named_in_one_sentence(straggler: Straggler, option: str) -> None:
    done = straggler("sim", "slack", *SMALL, option, "/dev/full")
    assert done.code == 2
    assert done.err == "straggler: '/dev/full' cannot be written: No space left on device.\n"


def test_names_with_signs_of_html_are_text_on_the_page(
    straggler: Straggler, tmp_path: Path
) -> None:
    name = "<img src=x>&\"'.csv"
    rows = [f"{time},{number},<b>key" for number, time in enumerate((1, 9, 2, 12, 30, 11, 40))]
    text = "\n".join(["event_time,value,key", *rows])
    (tmp_path / name).write_text(f"{text}\n", encoding="utf-8")
    options = ("--time-unit", "s", "--per", "key", "--aggregate", "sum", "--system", BUGGY)
    done = straggler("diff", "slack", "--input", name, *options, "--html", "run.html")
    assert done.code == 1
    page = read(tmp_path)
    assert "slack: &lt;img src=x&gt;&amp;&#34;&#39;.csv" in page
    assert "&lt;b&gt;key" in page
    assert "<b>" not in page


# -------------------------------------------------------------------------------------- a browser


@pytest.mark.parametrize(
    "command",
    [
        ("sim", "slack", *SMALL),
        ("sim", "grouping", "--set", "policies=tag,key"),
        (*UMTS, "--system", BUGGY),
    ],
)
def test_a_browser_shows_every_plot_of_a_run_and_fetches_nothing(
    straggler: Straggler, tmp_path: Path, command: tuple[str, ...]
) -> None:
    assert straggler(*command, "--html", "run.html").code in (0, 1)
    page = read(tmp_path)
    phone, desk = look(page, tmp_path, 320, dark=True), look(page, tmp_path, 1280)
    for seen in (phone, desk):
        assert seen.plots == page.count("<svg") >= 6
        assert seen.fetched == []
        assert seen.refused == []
        assert seen.needed <= seen.width
        assert seen.letters >= 8
    assert phone.ground != desk.ground
