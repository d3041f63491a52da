"""The examples in docs/join.md are what the model does."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from model.join.chain import after, possible_actions
from model.join.rules import initial
from model.join.scopes import SCOPES, Scope, chart
from model.join.state import UNORDERED, Pair
from model.join.variants import VARIANTS, explore, scope_of
from tests.model.join.pictures import changes, mermaid, message_arrows, svg

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "join.md").read_text(encoding="utf-8")


def test_the_state_diagram_is_drawn_from_the_table() -> None:
    scope = Scope("diagram", (0, 0), (0, 0), network=UNORDERED)
    assert "\n".join(mermaid(changes(scope, 1))) in PAGE


def test_the_chart_is_the_shortest_path_to_the_bug() -> None:
    path = explore("fifo", "no_numbers").paths["no pair twice"]
    assert "\n".join(chart(scope_of("fifo", "no_numbers"), path)) in PAGE


def test_the_picture_is_drawn_from_the_same_path() -> None:
    path = explore("fifo", "no_numbers").paths["no pair twice"]
    drawn = svg(scope_of("fifo", "no_numbers"), path)
    assert drawn == (DOCS / "join-no-numbers.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize(("name", "states"), [("fifo", "6,302"), ("three", "14,693")])
def test_the_page_counts_states_with_the_worker_of_each_pair(name: str, states: str) -> None:
    setup = SCOPES[name].setup()
    level = [(initial(setup), frozenset[tuple[Pair, int]]())]
    seen = set(level)
    while level:
        following = []
        for state, found in level:
            for action in possible_actions(setup, state):
                then, pairs = after(setup, state, action)
                reached = then, found | {(pair, action.worker) for pair in pairs}
                if reached not in seen:
                    seen.add(reached)
                    following.append(reached)
        level = following
    assert f"{len(seen):,}" == states
    assert states in PAGE
    assert f"| {explore(name).unique_states:,} |" in PAGE


@pytest.mark.parametrize("name", sorted(VARIANTS))
def test_every_planted_bug_can_be_drawn(name: str) -> None:
    variant = VARIANTS[name]
    path = explore(variant.home, name).paths[variant.promise]
    picture = ElementTree.fromstring(svg(variant.scope, path))
    _, _, width, height = map(int, picture.attrib["viewBox"].split())
    for text in picture.iter("{http://www.w3.org/2000/svg}text"):
        assert 0 < int(text.attrib["x"]) < width
        assert 0 < int(text.attrib["y"]) <= height + 12
    assert len(message_arrows(path)) >= sum(action.what == "forward" for action, _ in path.steps)
    assert chart(variant.scope, path)


def test_every_planted_bug_is_listed() -> None:
    assert re.findall(r"^\| `(\w+)`: ", PAGE, flags=re.M) == list(VARIANTS)
