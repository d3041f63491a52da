"""The plots of one run on a page: what is drawn, and what is left out."""

import re

import numpy as np
import pytest

from sim.report.plot import SERIES, VARIABLES
from sim.report.run_plots import SHADES, draw_panel, draw_pictures
from sim.timed_figures import Panel, PanelLine, RunPlot, run_panels
from tests.sim.test_drawing import FAULTS, made_up

PLOT = RunPlot(lambda _: "made up", (Panel("Own", "%", (PanelLine("own", "kept"),)),))
OWN = {"own": np.ones(10)}


def headings(**columns: object) -> list[str]:
    return [each.heading for each in draw_pictures(made_up(2, **columns).course, PLOT, "run")]


def test_each_panel_is_a_picture_in_the_colours_of_the_page() -> None:
    pictures = list(draw_pictures(made_up(2, *FAULTS, **OWN).course, PLOT, "run"))
    assert [each.heading for each in pictures] == [
        "Tuples and messages at each worker",
        "Time in which each worker works",
        "Own",
    ]
    names = [name for each in pictures for name in re.findall(r'\bid="([^"]+)"', each.svg)]
    assert len(names) == len(set(names)) > 0
    for each in pictures:
        assert not re.search(r"#[0-9a-f]{6}\b|<image|data:", each.svg)
        assert "var(--ink)" in each.svg
    assert "worker 1" in pictures[0].svg
    again = draw_pictures(made_up(2, *FAULTS, **OWN).course, PLOT, "run")
    assert [each.svg for each in again] == [each.svg for each in pictures]


def test_a_panel_without_a_value_is_left_out() -> None:
    assert "Latency" in headings(latency_us=np.append(np.full(9, np.nan), 1.0), **OWN)
    assert "Latency" not in headings(latency_us=np.full(10, np.nan), **OWN)


def test_a_legend_has_room_for_its_longest_label() -> None:
    columns = {name: np.ones(10) for name in "abcd"}
    course = made_up(2, **columns).course
    heights = []
    for longest in ("d", "d" * 70):
        lines = [PanelLine(name, name) for name in "abc"]
        panel = Panel("Own", "%", (*lines, PanelLine("d", longest)))
        heights.append(draw_panel(course, panel).get_figheight())
    assert heights[0] < heights[1]


def test_many_workers_are_rows_whose_shade_grows_with_the_value() -> None:
    course = made_up(9, *FAULTS, utilisation_corrector=np.ones(10), **OWN).course
    queues, works, _ = run_panels(course.series, PLOT.panels)
    (axes,) = draw_panel(course, queues).axes
    assert len(axes.lines) == 0
    assert axes.get_title() == queues.ylabel
    found = {each.get_alpha(): len(each.get_paths()) for each in axes.collections}
    # Lengths 1 to 8 in five shades of the longest; a worker without a queue has none.
    assert found == {0.2: 1, 0.4: 2, 0.6: 1, 0.8: 2, 1.0: 2}
    assert len(axes.patches) == 4  # a frame for each fault of a worker, or of the link to it
    labels = [text.get_text() for text in axes.get_yticklabels()]
    assert labels[0] == "0"
    (legend,) = draw_panel(course, works).legends
    assert len(legend.get_texts()) == SHADES
    assert legend.get_texts()[-1].get_text() == "80–100"
    assert SERIES[0] in VARIABLES


@pytest.mark.parametrize(("hours", "label"), [(0.001, "time (seconds)"), (50, "time (hours)")])
def test_time_has_a_unit_in_which_it_can_be_read(hours: float, label: str) -> None:
    course = made_up(1, **OWN).course
    course = course._replace(
        series={**course.series, "time_us": np.arange(1.0, 11.0) * hours * 3.6e8}
    )
    (axes,) = draw_panel(course, PLOT.panels[0]).axes
    assert axes.get_xlabel() == label
    assert axes.get_xlim()[1] == pytest.approx(hours if hours > 1 else hours * 3600)
