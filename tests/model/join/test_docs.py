"""What docs/join.md shows is what the model does."""

import re
from pathlib import Path

from model.join.chart import chart
from model.join.diagram import arrows, mermaid
from model.join.exploration import explore, scope_of
from model.join.network import UNORDERED
from model.join.protocol import Scope
from model.join.variants import VARIANTS

PAGE = (Path(__file__).parents[3] / "docs" / "join.md").read_text(encoding="utf-8")


def test_the_state_diagram_is_drawn_from_the_table() -> None:
    scope = Scope("diagram", (0, 0), (0, 0), network=UNORDERED)
    assert "\n".join(mermaid(arrows(scope, 1))) in PAGE


def test_the_chart_is_the_shortest_path_to_the_bug() -> None:
    path = explore("fifo", "no_numbers").paths["no pair twice"]
    assert "\n".join(chart(scope_of("fifo", "no_numbers"), path)) in PAGE


def test_every_planted_bug_is_listed() -> None:
    assert re.findall(r"^\| `(\w+)`: ", PAGE, flags=re.M) == list(VARIANTS)
