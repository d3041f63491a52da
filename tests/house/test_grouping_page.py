"""The speed on Spark in docs/grouping.md is the last one measured."""

import json
import re

from benchmarks.__main__ import RESULTS, readable
from tests.house.repository import ROOT


def test_figures_are_those_of_the_benchmark() -> None:
    figures = json.loads((RESULTS / "grouping.json").read_text(encoding="utf-8"))["figures"]
    page = (ROOT / "docs" / "grouping.md").read_text(encoding="utf-8")
    told = dict(re.findall(r"^\| ([^|]+) \| ([\d.,]+) \|$", page, re.MULTILINE))
    assert len(told) >= 10
    assert told == {label: readable(figures[label]) for label in told}
