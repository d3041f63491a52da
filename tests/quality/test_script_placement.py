"""Placements with a mistake in them are caught, and so is a script that is written wrongly."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache

import pytest

from model.script import placement
from model.script.claims import against_placement
from model.script.graph import compile_graph
from model.script.placement import Placement, place
from model.script.rules import RULES
from model.vocabulary import ScriptConfig
from model.vocabulary.script.tree import Arithmetic, Expression, Sensor, Statement, Workflow
from properties.stream_packs import collect
from straggler.rooms.script import formatter
from straggler.rooms.script.formatter import text_of, unparse
from straggler.rooms.script.language import parse
from straggler.strategies.script import configs

DRAWN = 300


@cache
def drawn() -> tuple[ScriptConfig, ...]:
    return tuple(collect(configs(), DRAWN, 0))


CHAIN = """
w = "a" + "c"
x = "c" + "b"
y = "b" + "e"
"""
"""One component that is too large for one of two workers.

The hash of their names puts ``a`` and ``c`` at one of two workers, ``b`` and ``e`` at the other.
"""


def chain() -> ScriptConfig:
    sensors = tuple((each, 1_000) for each in "abce")
    return ScriptConfig((parse(CHAIN, "chain"),), sensors, workers=2, cap_percent=150)


def found() -> str:
    """Return all counterexamples to some placements, one per line."""
    sentences: list[str] = []
    for config in (chain(), *drawn()):
        graph = compile_graph(config)
        if graph.computed:
            placed = place(graph, config.workers, config.cap_percent, RULES)
            sentences += against_placement(config, placed)
    return "\n".join(sentences)


def test_the_right_placement_has_no_counterexample() -> None:
    assert found() == ""


def _last(placements: Sequence[Placement], _cap: Fraction) -> Placement:
    return placements[-1]


def _sends_least(placements: Sequence[Placement], _cap: Fraction) -> Placement:
    return min(placements, key=lambda each: each.communication)


def _to_everybody(placements: Sequence[Placement], _cap: Fraction) -> Placement:
    everything = frozenset().union(*placements[0].hosts)
    return replace(placements[0], hosts=tuple(everything for _ in placements[0].hosts))


def _to_nobody(placements: Sequence[Placement], _cap: Fraction) -> Placement:
    return replace(placements[0], hosts=tuple(frozenset() for _ in placements[0].hosts))


@pytest.mark.parametrize(
    ("instead", "words"),
    [
        (_last, "more than"),
        (_sends_least, "which hashing keeps"),
        (_to_everybody, "by hash it would be"),
        (_to_nobody, "is not sent all"),
    ],
)
def test_a_mistake_in_choosing_is_found(
    monkeypatch: pytest.MonkeyPatch,
    instead: Callable[[Sequence[Placement], Fraction], Placement],
    words: str,
) -> None:
    monkeypatch.setattr(placement, "choose_best", instead)
    assert words in found()


# ---------------------------------------------------------------------------------------- language


def _one_too_weak(expression: Expression, least: int) -> str:
    text = text_of(expression)
    return text if formatter._strength(expression) >= least - 1 else f"({text})"


def test_a_parenthesis_too_few_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    a = Sensor("a")
    statement = Statement("x", Arithmetic("-", a, Arithmetic("-", a, a)))
    flow = Workflow("w", (statement,))
    assert parse(unparse(flow), "w") == flow
    monkeypatch.setattr(formatter, "_within", _one_too_weak)
    assert parse(unparse(flow), "w") != flow
    flows = [each for config in drawn() for each in config.workflows]
    wrong = [each for each in flows if parse(unparse(each), each.name) != each]
    assert wrong
