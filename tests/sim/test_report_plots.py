"""The plots of the page: what is drawn, in which colours, and what is said of the rest."""

import re
from copy import deepcopy
from math import inf
from pathlib import Path
from xml.etree import ElementTree

import pytest

from sim.report.contents import Axis, Chart, Curve, Point, Report
from sim.report.entries import entry_of
from sim.report.page import caption, page
from sim.report.plot import draw, svg
from tests.sim import made_up

STYLE = Path(__file__).parents[2] / "sim" / "report" / "page.css"


@pytest.fixture(scope="module")
def text() -> str:
    return page(tuple(entry_of(*each) for each in (made_up.SPEEDS, made_up.LATENCY)))


# ---------------------------------------------------------------------------------------- charts


def many(levels: int) -> Report:
    """Return an experiment with as many charts as levels."""
    record, columns = made_up.stored(
        "slack-a",
        {"k": (1, 2), "mode": tuple(range(levels))},
        {"n": lambda k, mode, _: 10.0 * mode + k},
        seeds=1,
        plot={"x": "k", "y": "n", "series": None, "log": None},
    )
    return (entry_of(record, columns),)


def test_surplus_charts_are_counted_in_the_caption() -> None:
    (few,), (more,) = many(12), many(14)
    assert (len(few.charts), few.undrawn, len(more.charts), more.undrawn) == (12, 0, 12, 2)
    assert "There is no plot of" not in caption(few)
    assert "There is no plot of 2 more combinations; all are among the numbers" in caption(more)
    assert len(more.table.rows) == 28


def test_a_caption_explains_published_values_if_a_chart_has_some() -> None:
    entry = entry_of(*made_up.LATENCY)
    charts = entry.charts[0], entry.charts[0]._replace(published=())
    for shown in (charts, charts[:1], charts[1:]):
        has_some = "as published" in caption(entry._replace(charts=shown))
        assert has_some == (charts[0] in shown)


def test_a_legend_of_several_rows_takes_nothing_from_the_plot() -> None:
    chart = entry_of(*made_up.LATENCY).charts[0]
    one, other = chart.lines
    long = [other._replace(label=f"{other.label}, {number}") for number in range(5)]
    heights = [
        draw(chart._replace(lines=lines)).get_figheight()
        for lines in ((one._replace(label="a"), other._replace(label="b")), (one, *long))
    ]
    assert heights[0] < heights[1] - 0.3


def test_charts_side_by_side_show_the_same_part_of_the_axis() -> None:
    (entry,) = many(3)
    assert {chart.reach for chart in entry.charts} == {(1.0, 22.0)}
    (alone,) = many(1)
    assert [chart.reach for chart in alone.charts] == [None]
    ticks = [re.findall(r">(\d+)</text>", svg(each, "a", "")) for each in entry.charts]
    # The labels of the axes are the only texts with digits.
    assert ticks[0] == ticks[1] == ticks[2]
    assert "20" in ticks[0]
    assert "20" not in re.findall(r">(\d+)</text>", svg(alone.charts[0], "a", ""))


def test_levels_can_be_left_out_of_a_plot() -> None:
    record, columns = deepcopy(made_up.MISSED)
    record["experiment"]["plot"]["where"] = {"load": [0.9], "control": ["pd"]}
    (chart,) = entry_of(record, columns).charts
    assert chart.title == "load 0.9"
    assert [line.label for line in chart.lines] == ["pd"]
    everything, _ = made_up.MISSED
    assert len(entry_of(everything, columns).table.rows) == 16


def test_a_line_with_missing_points_is_noted_in_the_caption() -> None:
    record, columns = deepcopy(made_up.MISSED)
    silent = "nothing to measure"
    assert silent not in caption(entry_of(record, columns))
    columns["missed"][:3] = [None] * 3
    assert silent in caption(entry_of(record, columns))


# --------------------------------------------------------------------------------------- colours


def _luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _contrast(first: str, second: str) -> float:
    """Return the contrast of two colours as WCAG 2 defines it: from 1 to 21."""
    low, high = sorted(map(_luminance, (first, second)))
    return (high + 0.05) / (low + 0.05)


def schemes() -> list[dict[str, str]]:
    """Return the colour variables of the style sheet: light, then dark."""
    blocks = re.findall(r":root \{(.*?)\}", STYLE.read_text(encoding="utf-8"), re.DOTALL)
    return [dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block)) for block in blocks]


def test_colours_have_enough_contrast_in_both_schemes() -> None:
    assert _contrast("#000000", "#ffffff") == pytest.approx(21)
    light, dark = schemes()
    assert set(light) == set(dark)
    for colours in (light, dark):
        ground = colours["ground"]
        for name in ("ink", "muted", "link", "good", "fair", "open", "bad"):
            assert _contrast(colours[name], ground) >= 4.5, name
        for name in ("good", "fair", "open", "bad"):
            assert _contrast(colours[name], colours[f"{name}-ground"]) >= 4.5, name
        series = [name for name in colours if name.startswith("series-")]
        assert len(series) == 7
        for name in series:
            assert _contrast(colours[name], ground) >= 3, name


def test_plots_have_no_colour_but_those_of_the_page(text: str) -> None:
    known = set(schemes()[0])
    for plot in re.findall(r"<svg.*?</svg>", text, re.DOTALL):
        assert not re.search(r"#[0-9a-fA-F]{3,8}\b(?!-)", re.sub(r'(href|id)="[^"]*"', "", plot))
        assert set(re.findall(r"var\(--([\w-]+)\)", plot)) <= known
        assert "<style" not in plot
        assert "DejaVu" not in plot


def test_nothing_is_wider_than_a_phone(text: str) -> None:
    rules = STYLE.read_text(encoding="utf-8")
    assert "width=device-width" in text
    pixels = {"px": 1, "rem": 17, "em": 17}
    lengths = re.findall(r"(?<![-\w])(?:min-)?width: *([\d.]+)(px|rem|em)", rules)
    lengths += re.findall(r"minmax\(([\d.]+)(px|rem|em)", rules)
    assert all(float(length) * pixels[unit] < 320 for length, unit in lengths)
    # Tables of numbers are moved by themselves.
    assert ".wide { overflow-x: auto" in rules
    assert text.count('<table class="numbers">') == text.count('<div class="wide"')


def test_a_picture_holds_what_is_seen_and_no_more() -> None:
    chart = entry_of(*made_up.SPEEDS).charts[0]
    drawn = svg(chart, "a", "what it shows")
    root = ElementTree.fromstring(drawn)
    assert root.attrib["aria-label"] == "what it shows"
    labels = {element.text for element in root.iter("text")}
    assert {"slower", "share", "published", *made_up.POLICIES} <= labels
    names = [part.attrib["id"] for part in root.iter() if "id" in part.attrib]
    referred = set(re.findall(r'(?:href="#|url\(#)([^")]+)', drawn))
    assert set(names) == referred
    assert all(name.startswith("a-") for name in names)
    assert len(list(root.iter("use"))) >= len(made_up.POLICIES) * 4
    assert not [part for part in root.iter("g") if not part.attrib or not len(part)]


@pytest.mark.parametrize(
    ("reach", "values", "is_log"),
    [
        (None, (0.0, 0.0), True),
        (None, (5.0, 5.0), False),
        (None, (-2.0, 3.0), True),
        ((0.0, 0.0), (0.0, 0.0), True),
        ((0.0, 5.0), (0.0, 0.0), True),
        ((0.0, 5.0), (1e-7, 900.0), False),
    ],
)
def test_any_numbers_can_be_drawn(
    reach: tuple[float, float] | None, values: tuple[float, float], is_log: bool
) -> None:
    line = Curve("here", tuple(Point(x, y, y, y) for x, y in enumerate(values)))
    drawn = svg(Chart("", Axis("x"), Axis("y", is_log), (line,), (), reach), "a", "")
    assert drawn.count("<text") >= 3


def clipped(drawn: str) -> list[str]:
    """Return the texts that do not fit into a picture if letters have their usual width."""
    found = []
    root = ElementTree.fromstring(drawn)
    width, height = map(float, root.attrib["viewBox"].split()[2:])
    for text in root.iter("text"):
        if "transform" in text.attrib:
            continue
        anchor = text.attrib["style"].partition("text-anchor:")[2].partition(";")[0]
        long = 6.6 * len(text.text or "")
        left = float(text.attrib["x"]) - long * {"middle": 0.5, "end": 1.0}.get(anchor, 0.0)
        if not (left > -2 and left + long < width + 2 and 8 < float(text.attrib["y"]) <= height):
            found.append(text.text or "")
    return found


def test_no_text_leaves_its_picture() -> None:
    charts = [chart for each in made_up.ALL for chart in entry_of(*each).charts]
    assert [clipped(svg(chart, "a", "")) for chart in charts] == [[]] * len(charts)
    long = "a measure whose name is a sentence of its own and does not end"
    assert clipped(svg(charts[0]._replace(y=Axis(long)), "a", "")) == [long]


def test_small_powers_of_ten_are_written_as_such() -> None:
    points = tuple(Point(x, y, y, y) for x, y in ((1, 1e-6), (2, 1.0)))
    drawn = svg(Chart("", Axis("x"), Axis("y", is_log=True), (Curve("", points),)), "a", "")
    assert "10⁻⁶" in drawn
    assert "e-06" not in drawn


def test_more_lines_than_colours_look_different() -> None:
    lines = [Curve(f"line {n}", (Point(1, n, n, n), Point(2, n, n, n))) for n in range(13)]
    drawn = svg(Chart("", Axis("x"), Axis("y"), tuple(lines)), "a", "many lines")
    assert drawn.count("line 1") >= 3
    limits = Curve("no limits", (Point(1, 1.0, -inf, inf), Point(2, 1.0, 0.5, 1.5)))
    assert "<svg" in svg(Chart("", Axis("x"), Axis("y"), (limits,)), "b", "one")
