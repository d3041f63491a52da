"""What docs/architecture.md says of the speed of simulations is what was measured last."""

import json
from collections.abc import Mapping

from benchmarks.__main__ import RESULTS, readable
from tests.house.repository import ROOT

PAGE = ROOT / "docs" / "architecture.md"
ROWS = {
    "`slack`, default settings": ("slack", "standard_"),
    "`watermark`, default settings": ("watermark", "standard_"),
    "`grouping`, default settings": ("grouping", "standard_"),
    "`join`, standard scenario": ("join", "standard_"),
    "`slack`, 100,000 tuples in five windows each": ("slack", ""),
    "`watermark`, sliding windows": ("watermark", "sliding_"),
    "`grouping`, 60,000 tuples": ("grouping", ""),
    "`join`, standard scenario in blocks of 20": ("join", "blocks_of_20_"),
    "`join`, default settings": ("join", "default_"),
    "`script`, default settings": ("script", "standard_"),
    "`script`, 54,400 tuples, each sensor 20 a second": ("script", "longer_"),
}
"""Room, and with what the names of the figures begin."""
COLUMNS = (
    "tuples_per_s",
    "timed_tuples_per_s",
    "bare_events_a_tuple",
    "timed_bare_events_a_tuple",
    "peak_bytes_a_tuple",
)
"""A figure that was not measured is an empty cell."""


def figures_of(name: str) -> Mapping[str, float]:
    figures: Mapping[str, float] = json.loads(
        (RESULTS / f"{name}.json").read_text(encoding="utf-8")
    )["figures"]
    return figures


def row(label: str, figures: Mapping[str, float], prefix: str) -> str:
    found = [figures.get(prefix + name) for name in COLUMNS]
    cells = ["" if figure is None else f" {readable(figure)}" for figure in found]
    return " |".join([f"| {label}", *cells, ""])


def test_the_table_is_that_of_the_benchmarks() -> None:
    page = PAGE.read_text(encoding="utf-8")
    rows = [row(label, figures_of(f"sim_{room}"), prefix) for label, (room, prefix) in ROWS.items()]
    assert [each for each in rows if each not in page] == []


def test_the_sentences_are_those_of_the_benchmarks() -> None:
    page = PAGE.read_text(encoding="utf-8").replace("\n", " ")
    network, slack, join = (figures_of(name) for name in ("network", "sim_slack", "sim_join"))
    messages = [join[f"{run}_messages_per_s"] for run in ("standard", "blocks_of_20", "default")]
    assert "{}, {} and {} messages a second".format(*map(readable, messages)) in page
    assert f"alone goes through {readable(slack['model_tuples_per_s'])} tuples/s" in page
    assert f"pass on {readable(network['messages_per_s'])} messages/s" in page
    assert f"workers in a row {readable(network['tuples_per_s'])} tuples/s" in page
