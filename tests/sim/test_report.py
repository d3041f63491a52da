"""The page of results: that it is whole, that it needs nothing, and what it says."""

import os
import re
import subprocess
import sys
from collections import Counter
from copy import deepcopy
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest

from model.vocabulary.settings import PlainData
from sim.report.contents import Report
from sim.report.entries import entry_of, finding_of
from sim.report.page import POLICY, page
from sim.report.words import (
    Unit,
    format_number,
    levels_in_words,
    unit_of,
    values_in_words,
    with_limits,
)
from tests.sim import made_up

VOID = {"meta", "br", "col"}
STYLE = Path(__file__).parents[2] / "sim" / "report" / "page.css"


def report() -> Report:
    return tuple(entry_of(*each) for each in made_up.ALL)


@pytest.fixture(scope="module")
def text() -> str:
    return page(report())


class Reader(HTMLParser):
    """The elements and text of a page; elements not closed in their order are an error."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        """Texts by the element around them."""
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(dict(attrs)) == len(attrs), f"{tag} has an attribute twice"
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        for tag in self._open[-1:]:
            self.texts.setdefault(tag, []).append(data)

    def values(self, attribute: str) -> list[str]:
        """Return all values of an attribute in the page."""
        found = (attributes.get(attribute) for _, attributes in self.elements)
        return [value for value in found if value is not None]

    def count(self, tag: str, **attributes: str) -> int:
        """Count the elements with these attributes."""
        return sum(
            name == tag and all(found.get(key) == value for key, value in attributes.items())
            for name, found in self.elements
        )


# ------------------------------------------------------------------------------ one file by itself


def test_every_element_is_closed_and_every_name_is_there_once(text: str) -> None:
    names = Reader(text).values("id")
    assert len(names) > 50
    assert not {name: n for name, n in Counter(names).items() if n > 1}


def test_every_reference_is_to_a_part_of_the_page(text: str) -> None:
    reader = Reader(text)
    names = set(reader.values("id"))
    links = reader.values("href")
    assert len(links) > 50
    assert {link for link in links if link[1:] not in names or link[0] != "#"} == set()
    inside = re.findall(r"url\(([^)]*)\)", text)
    assert inside
    assert all(each[0] == "#" and each[1:] in names for each in inside)
    labels = [*reader.values("aria-labelledby"), *reader.values("aria-describedby")]
    assert set(labels) <= names


def test_nothing_is_fetched_and_nothing_runs(text: str) -> None:
    reader = Reader(text)
    assert reader.count("meta", content=POLICY) == 1
    assert POLICY.startswith("default-src 'none'")
    assert not re.search(r"https?:|//[a-z]|@import|javascript:|data:", text)
    fetching = {"script", "link", "img", "image", "iframe", "object", "embed", "audio", "video"}
    assert not fetching & {tag for tag, _ in reader.elements}
    assert not [key for _, found in reader.elements for key in found if key.startswith("on")]
    assert reader.values("src") == []


def test_a_planted_reference_is_found(text: str) -> None:
    planted = text.replace("</main>", '<img src="plot.png"></img></main>')
    assert planted != text
    with pytest.raises(AssertionError):
        test_nothing_is_fetched_and_nothing_runs(planted)
    with pytest.raises(AssertionError):
        test_every_reference_is_to_a_part_of_the_page(text.replace('href="#slack', 'href="#slakc'))


def test_the_same_results_make_the_same_page_whatever_the_seed_of_hashes(text: str) -> None:
    code = (
        "from sim.report.page import page; from sim.report.entries import entry_of;"
        "from tests.sim import made_up; import sys;"
        "sys.stdout.write(page(tuple(entry_of(*each) for each in made_up.ALL)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONHASHSEED": "1", "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout == text


# --------------------------------------------------------------------------------- what it says


def test_verdicts_stand_first_then_every_experiment_with_all_that_was_stored(text: str) -> None:
    reader = Reader(text)
    assert reader.count("article") == len(made_up.ALL)
    order = [text.index('id="verdicts"')]
    for record, _ in made_up.ALL:
        name = record["experiment"]["name"]
        start = text.index(f'<article id="{name}"')
        part = text[start : text.index("</article>", start)]
        order.append(start)
        assert f"<code>{record['again']}</code>" in part
        assert record["code"][:12] in part
        for found in record["expectations"]:
            assert f"{found['says']}<" in part
            assert ">ratio of share 1.34" in part
    assert order == sorted(order)


def test_every_verdict_is_a_word(text: str) -> None:
    words = " ".join(Reader(text).texts["span"])
    for each in ("refuted", "reproduced", "reproduced under stated assumptions", "undetermined"):
        assert each in words
    # An expectation that is broken, and an experiment that expects nothing.
    assert "not as expected" in words
    assert "not judged" in words


def test_failed_runs_are_listed_with_the_command_that_repeats_them(text: str) -> None:
    (failure,) = made_up.LATENCY[0]["failed"]
    assert "1 run failed" in text
    assert "A run failed (tier = rack, scale = no, seed 7): ValueError: capacity is 0" in text
    assert f"<code>{failure['again']}</code>" in text
    assert "no run has the figure 'losss'." in unescape(text)


def test_text_of_an_experiment_is_no_markup(text: str) -> None:
    assert "Latency &lt;with&gt; &amp; without shedding" in text
    assert "<with>" not in text


def test_text_is_escaped_once_in_elements_and_attributes() -> None:
    record, columns = deepcopy(made_up.LATENCY)
    record["experiment"]["title"] = 'A "<b>" & more'
    found = Reader(page((entry_of(record, columns),)))
    assert 'A "<b>" & more' in found.texts["a"]
    assert any(label.startswith('A "<b>" & more: ') for label in found.values("aria-label"))
    assert found.count("b") == 0


def test_every_combination_has_a_plot_and_all_have_numbers(text: str) -> None:
    reader = Reader(text)
    assert reader.count("svg", role="img") == reader.count("svg") == 5
    assert all(reader.values("aria-label"))
    # Two of them, for a factor that is neither axis nor series.
    labels = [each for each in reader.values("aria-label") if "Title of slack-missed" in each]
    assert [each.rpartition(". ")[2] for each in labels] == ["load 0.5", "load 0.9"]
    assert {"Load 0.5", "Load 0.9"} <= set(reader.texts["figcaption"])
    assert reader.texts["summary"].count("Numbers") == len(made_up.ALL)


def test_numbers_are_means_with_the_limits_of_student() -> None:
    record, columns = made_up.stored("slack-a", {"k": (1,)}, {"wait_us": lambda k, s: 1e6 * s})
    entry = entry_of(record, columns)
    assert entry.table.header == ("k", "wait (s)", "seeds")
    # Mean 1 and standard deviation 1 of 0, 1, 2; t is 4.3027 with two degrees of freedom.
    assert entry.table.rows == (("1", "1 (-1.484 to 3.484)", "3"),)
    record, columns = made_up.stored(
        "slack-a", {"k_us": (5e5, 3e6)}, {"n": lambda *_: 7.5}, seeds=1
    )
    table = entry_of(record, columns).table
    assert table.header == ("k (s)", "n", "seeds")
    assert table.rows == (("0.5", "7.5", "1"), ("3", "7.5", "1"))


def test_a_measure_that_was_not_seen_leaves_its_place_empty() -> None:
    record, columns = made_up.stored(
        "slack-a",
        {"k": (1, 2)},
        {"n": lambda k, s: float(k)},
        plot={"x": "k", "y": "n", "series": None, "log": None},
    )
    columns["n"] = [None] * 3 + [2.0] * 3
    entry = entry_of(record, columns)
    assert [row[1] for row in entry.table.rows] == ["", "2"]
    assert [point.x for point in entry.charts[0].lines[0].points] == [2]
    columns["n"] = [None] * 6
    assert entry_of(record, columns).charts == ()


def test_a_page_uses_the_labels_of_the_experiment() -> None:
    names = {"missed": "share of tuples missed", "load": "load of workers", "share": "capacity"}
    record, columns = deepcopy(made_up.MISSED)
    record["experiment"]["labels"] = names
    record["experiment"]["published"]["values"] = {"missed": 0.05}
    record["expectations"][0] |= {"measure": "missed", "compare": None}
    record["expectations"][0]["cells"][0]["label"] = "share 0.1, load 0.9"
    entry = entry_of(record, columns)
    assert entry.table.header[:4] == ("capacity", "control", "load of workers", names["missed"])
    chart = entry.charts[0]
    assert (chart.x.label, chart.y.label) == ("capacity", names["missed"])
    assert chart.title == "load of workers 0.5"
    assert entry.numbers == "share of tuples missed 0.05"
    assert entry.findings[0].cells[0].label == "capacity 0.1, load of workers 0.9"
    assert entry.findings[0].sentence.startswith("share of tuples missed 1.34")
    waits = {"wait_us": "longest wait"}
    assert (
        levels_in_words("wait_us 2000000, mode wait_us", waits) == "longest wait 2 s, mode wait us"
    )
    assert unit_of("wait_us", [2e6], waits).label == "longest wait (s)"


def test_a_series_of_numbers_names_its_factor() -> None:
    record, columns = made_up.stored(
        "slack-a",
        {"k": (1, 2), "wait_us": (0, 2e6), "mode": ("a",)},
        {"n": lambda *row: float(row[-1])},
        plot={"x": "k", "y": "n", "series": "wait_us", "log": None},
    )
    (chart,) = entry_of(record, columns).charts
    assert [line.label for line in chart.lines] == ["wait 0 s", "wait 2 s"]
    assert chart.title == "mode a"


def test_published_numbers_are_drawn_in_the_unit_of_ours() -> None:
    speeds, latency = (entry_of(*each) for each in (made_up.SPEEDS, made_up.LATENCY))
    (mark,) = speeds.charts[0].published
    assert (mark.level, mark.points) == (0.95, ())
    (mark,) = latency.charts[0].published
    assert latency.charts[0].y.label == "latency (s)"
    assert mark.points == (("process", 0.19), ("rack", 0.27))


def test_a_record_with_another_table_is_refused() -> None:
    record, columns = deepcopy(made_up.ALONE)
    record["rows"] += 1
    with pytest.raises(ValueError, match="its table has 3 rows and not 4"):
        entry_of(record, columns)


# ------------------------------------------------------------------------------- words and markup


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (0.123456, "0.1235"),
        (-2.34567e-05, "-0.00002346"),
        (2e-9, "2e-09"),
        (12.5, "12.5"),
        (1234.5, "1,234"),
        (-2e6, "-2,000,000"),
    ],
)
def test_numbers_have_the_digits_that_matter(value: float, text: str) -> None:
    assert format_number(value) == text


def test_units_suit_the_longest_time() -> None:
    assert unit_of("mean_latency_us", [10.0, 2_000_000.0]) == ("mean latency (s)", " s", 1e6)
    assert unit_of("mean_latency_us", [2_000.0]) == ("mean latency (ms)", " ms", 1e3)
    assert unit_of("mean_latency_us", []) == ("mean latency (µs)", " µs", 1.0)
    assert unit_of("served_hz", [5.0]) == ("served (1/s)", "/s", 1.0)
    assert unit_of("served_mhz", [5.0]) == ("served (1/s)", "/s", 1e-6)
    assert with_limits(1, 1, 1 + 1e-9, Unit("", " s")) == "1 s"
    assert with_limits(2e3, 1e3, 3e3, Unit("", " ms", 1e3)) == "2 ms (1 to 3)"
    values: dict[str, PlainData] = {
        "wait_us": {"1": 3e5, "2": 2e6},
        "share": [0.5, 1],
        "shape": "flat",
    }
    assert values_in_words(values) == "wait (s) 0.3 at 1, 2 at 2; share 0.5, 1; shape flat"


def test_levels_have_units_too() -> None:
    assert levels_in_words("window_us 500000, tag_literal / x") == "window 500 ms, tag literal / x"
    assert levels_in_words("gamma_us from 0 to 20000000") == "gamma from 0 to 20 s"


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({}, "latency 1.5 s (1.2 to 1.8), tier a"),
        ({"compare": "ratio"}, "ratio of latency 1,500,000 (1,200,000 to 1,800,000), tier a"),
        ({"along": "tier"}, "change of latency 1.5 s (1.2 to 1.8), tier a"),
        ({"cells": 2}, "latency 1.5 to 2.5 s, in 2 of 2 cases"),
        ({"cells": 2, "outcome": "broken"}, "latency 1.5 s (1.2 to 1.8), tier a"),
        ({"estimate": None}, "as the sweep has said"),
    ],
)
def test_observed_figures_are_stated_in_units(changed: dict[str, PlainData], sentence: str) -> None:
    outcome = changed.get("outcome", "holds")
    numbers = {"estimate": 1.5e6, "low": 1.2e6, "high": 1.8e6, **changed}
    cell = {key: numbers[key] for key in ("estimate", "low", "high")}
    cells = [{"label": "tier a", **cell, "outcome": outcome}]
    if changed.get("cells") == 2:
        cells.append(
            {"label": "tier b", "estimate": 2.5e6, "low": 2e6, "high": 3e6, "outcome": outcome}
        )
    record = {
        "says": "It is so",
        "measure": "latency_us",
        "compare": changed.get("compare"),
        "along": changed.get("along"),
        "verdict": "reproduced",
        "assumptions": None,
        "outcome": outcome,
        "sentence": "as the sweep has said",
        "cells": cells,
    }
    assert finding_of(record).sentence == sentence


def test_the_decisive_expectation_is_the_one_that_the_verdict_rests_on() -> None:
    first, second = made_up.expectation("reproduced"), made_up.expectation("refuted")
    record, columns = deepcopy(made_up.ALONE)
    entry = entry_of({**record, "expectations": [first, second], "verdict": "refuted"}, columns)
    assert entry.decisive is entry.findings[1]
    latency = entry_of(*made_up.LATENCY)
    assert latency.decisive is latency.findings[1]
    assert entry_of(*made_up.BARE).decisive is None
