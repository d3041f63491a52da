"""Panels that the figures of all rooms share: faults, queues, utilisation, watermark, latency."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.patches import Rectangle

from model.vocabulary import Trace, Workload
from sim.kernel.distributions import FloatArray
from sim.kernel.faults import schedule_of
from sim.kernel.plan import Plan
from sim.kernel.run import TimedRun
from sim.kernel.source import Source
from sim.report.drawing import FORMATS, draw_timed_run, save
from sim.slack.room import TIMED_ROOM as SLACK
from sim.timed_figures import ENDINGS, Panel, PanelLine
from sim.watermark.room import TIMED_ROOM as WATERMARK
from tests.sim.test_windows_faults import run as run_windows

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


def test_every_fault_has_its_name(tmp_path: Path) -> None:
    words = words_of(made_up(2, *FAULTS), tmp_path)
    for name in (
        "Faults",
        "pause relay-0",
        "slow worker-1, factor 4",
        "fail worker-0",
        "congest log>worker-1, 25% left",
        "lose message 7 of log>worker-0",
        "replay message 8 of log>worker-0",
        "duplicate tuple 9 of source-0",
        "pause worker-0, after the end",
    ):
        assert name in words
    assert "Faults" not in words_of(made_up(2), tmp_path)


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


def test_on_a_map_faults_frame_the_row_of_their_worker() -> None:
    figure = draw_timed_run(made_up(9, *FAULTS[:-1]), "made up", ())
    frames = [each for each in figure.axes[1].patches if not each.get_fill()]
    assert all(isinstance(frame, Rectangle) for frame in frames)
    found = [(frame.get_x(), frame.get_width(), frame.get_y()) for frame in frames]  # type: ignore[attr-defined]  # it is of that kind here
    # Of a worker, or of the link to it; the relay has no row.
    assert found == [(2, 1, 0.5), (3, 0.5, -0.5), (1, 0.5, 0.5)]


def test_few_workers_are_lines_and_many_are_rows_of_a_map(tmp_path: Path) -> None:
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
    assert "corrector" in words_of(made_up(3, utilisation_corrector=np.ones(10)), tmp_path)


def test_columns_that_are_no_workers_are_left_alone() -> None:
    run = made_up(2, queue=np.ones(10), queue_delay_us=np.ones(10), utilisation=np.ones(10))
    figure = draw_timed_run(run, "made up", ())
    assert [len(axes.lines) for axes in figure.axes] == [2, 2]


@pytest.mark.parametrize(
    ("longest_us", "unit", "drawn"),
    [(2e10, "hours", 20 / 3.6), (8e6, "seconds", 8.0), (9e3, "milliseconds", 9.0)],
)
def test_times_have_a_unit_in_which_they_can_be_read(
    longest_us: float, unit: str, drawn: float
) -> None:
    column = np.linspace(0.0, longest_us, 10)
    column[3] = np.nan
    figure = draw_timed_run(made_up(1, latency_us=column), "made up", ())
    axes = figure.axes[2]
    assert (axes.get_title(loc="left") or axes.get_title()) == "Latency"
    assert axes.get_ylabel() == unit
    (line,) = axes.lines
    assert max(np.asarray(line.get_ydata())) == pytest.approx(drawn)
    assert len(np.asarray(line.get_ydata())) == 9


def test_a_room_adds_panels_and_names_lines(tmp_path: Path) -> None:
    seen = {"latency_us": np.ones(10), "watermark_lag_us": np.ones(10), "wait_us": np.ones(10)}
    panel = Panel("Own", "%", (PanelLine("share", "kept", 0.01),), is_from_0=False)
    words = words_of(
        made_up(1, **seen, share=np.ones(10)),
        tmp_path,
        panel,
        latency={"latency_us": "mean", "not_there_us": "nothing"},
        lag={"watermark_lag_us": "lag", "wait_us": "wait K"},
    )
    for word in ("made up", "Own", "kept", "mean", "wait K", "Watermark behind the time"):
        assert word in words
    assert "nothing" not in words


def test_a_run_without_anything_can_be_drawn(tmp_path: Path) -> None:
    nothing = made_up(2, latency_us=np.full(10, np.nan))
    assert "Latency" in words_of(nothing, tmp_path)
    no_time = replace(nothing, series={"time_us": np.zeros(1), "queue_0": np.zeros(1)})
    assert "worker 0" in words_of(no_time, tmp_path)


@pytest.mark.parametrize(("queue", "top"), [(0.0, 1.0), (0.1, 0.105)])
def test_an_axis_on_which_everything_is_0_ends_at_1(queue: float, top: float) -> None:
    figure = draw_timed_run(made_up(1, queue_0=np.linspace(0.0, queue, 10)), "made up", ())
    assert figure.axes[0].get_ylim() == pytest.approx((0.0, top))


@pytest.mark.parametrize(("name", "plot"), [("slack", SLACK.draw), ("watermark", WATERMARK.draw)])
def test_a_run_with_faults_is_plotted_the_same_every_time(
    name: str, plot: Any, tmp_path: Path
) -> None:
    run = run_windows(name, ("faults", "fail worker-0 5400000 1000000"))
    many = run_windows(name, ("faults", "slow worker-1 4000000 6000000 5"), ("tasks", "3"))
    for number, each in enumerate((run, many)):
        for again in ("one", "two"):
            plot(each, tmp_path / f"{again}-{number}.svg")
        one, two = ((tmp_path / f"{again}-{number}.svg").read_bytes() for again in ("one", "two"))
        assert one == two
        assert b"Faults" in one
        assert b"<dc:date>" not in one
