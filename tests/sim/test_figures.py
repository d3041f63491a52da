"""Plots of runs: the same bytes every time, labelled, on a background of their own."""

from pathlib import Path
from xml.etree import ElementTree

from sim.join import from_settings as run_chain
from sim.join.room import TIMED_ROOM as JOIN
from sim.kernel.plan import Plan
from sim.kernel.source import Source
from sim.slack import from_settings, simulate
from sim.slack.plots import plot_controls
from sim.slack.room import TIMED_ROOM as SLACK
from tests.sim.test_slack import QUERY


def test_a_plot_is_the_same_every_time(tmp_path: Path) -> None:
    settings = {"scenario": "bursts", "messages": "500"}
    for name in ("one.svg", "two.svg"):
        SLACK.draw(from_settings(settings, 1), tmp_path / name)
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()


def test_a_plot_says_what_it_shows(tmp_path: Path) -> None:
    SLACK.draw(from_settings({"messages": "100"}, 1), tmp_path / "run.svg")
    text = (tmp_path / "run.svg").read_text(encoding="utf-8")
    words = " ".join("".join(element.itertext()) for element in ElementTree.fromstring(text).iter())
    for label in (
        "umts, simulated",
        "control conformal, 2 tasks, seed 1",
        "time since the start of the run (s)",
        "seconds",
        "relative error (%)",
        "% of the window's tuples",
        "slack K",
    ):
        assert label in words
    SLACK.draw(from_settings({"messages": "100", "tasks": "1"}, 1), tmp_path / "one.svg")
    assert "1 task, seed 1" in (tmp_path / "one.svg").read_text(encoding="utf-8")
    assert "fill: #ffffff" in text
    assert "<dc:date>" not in text


def test_a_run_without_answers_can_be_plotted(tmp_path: Path) -> None:
    SLACK.draw(simulate(Plan((Source(events=0),)), QUERY, 0), tmp_path / "nothing.svg")
    assert (tmp_path / "nothing.svg").stat().st_size > 0


def test_controls_side_by_side(tmp_path: Path) -> None:
    runs = [
        from_settings({"messages": "100", "control": control}, 1)
        for control in ("conformal", "pd", "max")
    ]
    for name in ("one.svg", "two.svg"):
        plot_controls(runs, tmp_path / name, unit="s", time_unit="min")
    text = (tmp_path / "one.svg").read_text(encoding="utf-8")
    assert text == (tmp_path / "two.svg").read_text(encoding="utf-8")
    words = " ".join("".join(element.itertext()) for element in ElementTree.fromstring(text).iter())
    for label in ("conformal", "pd", "max", "required", "corrected", "of the run (min)", "seed 1"):
        assert label in words


def test_a_chain_is_plotted_the_same_every_time(tmp_path: Path) -> None:
    timed = run_chain({"seconds": "3", "scale": "yes"}, 1)
    for name in ("one.svg", "two.svg"):
        JOIN.draw(timed, tmp_path / name)
    text = (tmp_path / "one.svg").read_text(encoding="utf-8")
    assert text == (tmp_path / "two.svg").read_text(encoding="utf-8")
    words = " ".join("".join(element.itertext()) for element in ElementTree.fromstring(text).iter())
    for label in (
        "bursts, simulated",
        "4 workers at the start, seed 1",
        "fullest worker",
        "waiting",
        "shed (%)",
        "Time in which each worker works",
        "later tuple's arrival",
        "time since the start of the run (s)",
    ):
        assert label in words
