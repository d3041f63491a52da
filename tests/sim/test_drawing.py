"""Figures of runs: the same bytes every time, faults in force, and any number of workers."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from model.vocabulary import Trace, Workload
from sim.kernel.distributions import FloatArray
from sim.kernel.faults import schedule_of
from sim.kernel.plan import Plan
from sim.kernel.run import TimedRun
from sim.kernel.source import Source
from sim.report.drawing import FORMATS, draw_timed_run, save
from sim.slack import from_settings, simulate
from sim.slack.plots import plot_controls
from sim.slack.room import TIMED_ROOM as SLACK
from sim.timed_figures import ENDINGS, Panel
from tests.sim.test_slack import QUERY

SECOND_US = 1e6
FAULTS = schedule_of(
    "pause relay-0 1000000 2000000; slow worker-1 2000000 1000000 4; fail worker-0 3000000 500000;"
    "congest log>worker-1 1000000 500000 0.25; lose log>worker-0 7; replay log>worker-0 8 5;"
    "duplicate source-0 9 5; pause worker-0 60000000 5"
)


def made_up(workers: int, *faults: Any, **columns: Any) -> TimedRun:
    """Return a run of ten seconds, whose columns are whatever is given."""
    time_us = np.arange(1.0, 11.0) * SECOND_US
    series = {
        "time_us": time_us,
        **{f"queue_{n}": np.full(10, float(n)) for n in range(workers)},
        **{f"utilisation_{n}": np.full(10, 0.5) for n in range(workers)},
        **columns,
    }
    plan = Plan((Source(10),), faults=faults)
    return TimedRun(plan, Workload("slack", (), {}), Trace("sim", ()), series, {})


def words_of(run: TimedRun, tmp_path: Path, *own: Panel, **columns: Mapping[str, str]) -> str:
    path = tmp_path / "run.svg"
    save(lambda: draw_timed_run(run, "made up", own, **columns), (), path)
    root = ElementTree.fromstring(path.read_text(encoding="utf-8"))
    return " | ".join(
        "".join(element.itertext()) for element in root.iter() if element.tag.endswith("text")
    )


@pytest.mark.parametrize(("name", "start"), [("run.svg", b"<?xml"), ("run.PNG", b"\x89PNG")])
def test_the_ending_of_a_file_is_its_format(tmp_path: Path, name: str, start: bytes) -> None:
    first, again = tmp_path / name, tmp_path / f"again-{name}"
    for path in (first, again):
        save(draw_timed_run, (made_up(9, *FAULTS), "made up", ()), path)
    assert first.read_bytes().startswith(start)
    assert again.read_bytes() == first.read_bytes()
    assert set(FORMATS) == set(ENDINGS)


def spans(run: TimedRun, panel: int) -> list[tuple[float, float]]:
    """Return from where to where a panel is shaded, in seconds."""
    figure = draw_timed_run(run, "made up", ())
    boxes = [patch.get_extents() for patch in figure.axes[panel].patches]
    inverse = figure.axes[panel].transData.inverted()
    ends = [inverse.transform(box)[:, 0] for box in boxes]
    return [(round(low, 6), round(high, 6)) for low, high in ends]


def test_faults_are_shaded_when_they_are_in_force() -> None:
    # The one after the end of the run is left out.
    assert spans(made_up(2, *FAULTS), 1) == [(1, 3), (2, 3), (3, 3.5), (1, 1.5)]
    assert spans(made_up(2), 0) == []


def test_few_workers_are_lines_and_many_are_rows_of_a_map() -> None:
    few = draw_timed_run(made_up(4), "made up", ())
    assert [len(axes.lines) for axes in few.axes] == [4, 4]
    many = draw_timed_run(made_up(40, utilisation_corrector=np.ones(10)), "made up", ())
    queues, utilisation = many.axes[:2]
    assert [len(axes.lines) for axes in (queues, utilisation)] == [0, 0]
    assert all(axes.get_title(loc="left") or axes.get_title() for axes in (queues, utilisation))
    (shown,) = queues.collections
    cells: FloatArray = np.asarray(shown.get_array())
    assert cells.shape == (40, 10)
    assert cells[:, 0].tolist() == list(range(40))
    labels = [label.get_text() for label in utilisation.get_yticklabels()]
    assert labels == [*map(str, range(0, 40, 3)), "corrector"]


def test_a_run_without_anything_can_be_drawn(tmp_path: Path) -> None:
    nothing = made_up(2, latency_us=np.full(10, np.nan))
    assert "Latency" in words_of(nothing, tmp_path)
    no_time = replace(nothing, series={"time_us": np.zeros(1), "queue_0": np.zeros(1)})
    assert "worker 0" in words_of(no_time, tmp_path)


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
