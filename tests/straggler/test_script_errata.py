"""Errata of room ``script``: their counterexamples by hand, and rules that are not corrected."""

from collections.abc import Sequence
from fractions import Fraction

import pytest

from model.checking.claims import Outcome
from model.script.slices import Choice, Span, choose, edges, panes
from model.script.variants import VARIANTS
from straggler.rooms.script import errata
from straggler.rooms.script.errata import ERRATA, Crew, Stream


def test_the_errata_are_complete() -> None:
    assert [each.name for each in ERRATA] == ["load-not-added", "half-updated", "gcd-panes"]


# ---------------------------------------------------------------------------------------- placing


def test_two_sensors_on_two_workers_are_the_smallest_crew() -> None:
    findings = errata.uncharged()
    sensors, workers, tried = findings.counterexample
    assert sensors.startswith("2 sensors, each with a script of its own, on 2 workers;")
    assert workers == "By the rule as read worker 0 gets s0 and s1, worker 1 gets nothing."
    # One sensor, of four rates, on 2, 3 and 4 workers.
    assert tried.endswith("12 of 12 tried.")
    # The best is one each; LPT may take 4/3 - 1/6 times that.
    assert findings.literal.sentence.endswith(f"more than {4 / 3 - 1 / 6:.6g}.")


def test_crews_are_placed_before_anything_arrives() -> None:
    workload = Crew((1, 2), 2).workload()
    assert workload.arrivals == ()
    assert workload.config["cap_percent"] == 200


# --------------------------------------------------------------------------------------- updating


def test_the_greatest_less_the_least_of_one_value_is_zero() -> None:
    findings = errata.half_updated()
    script, *sent, results, _ = findings.counterexample
    assert script == 'The script x = max("a", 2, 2) - min("a", 2, 2).'
    assert [line[3:] for line in sent] == ["a sends 1, stamped 0 ms.", "a sends 5, stamped 2 ms."]
    # Each window has one value, so there is 0 twice; 5 - 1 mixes two windows.
    assert results.endswith("0 at 1 ms, 0 at 3 ms, 4 at 3 ms.")
    assert findings.is_confirmed


def test_a_rule_that_is_not_corrected_is_not_confirmed(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = VARIANTS["at_every_change"].make_system
    monkeypatch.setattr(errata, "make_system", wrong)
    findings = errata.half_updated()
    assert findings.same.outcome is Outcome.BROKEN
    assert not findings.is_confirmed


# ---------------------------------------------------------------------------------------- slicing


@pytest.mark.parametrize(
    ("spans", "every_ms", "by_panes", "by_edges"),
    [
        # Two tuples are looked up, and a window has two panes of 2 ms.
        ([(4, 2)], 1, 2 + 2, 2 + 2),
        # In 3 ms: three tuples, each in two combs at the edges; [e-4, e-3), [e-3, e-1), [e-1, e).
        ([(4, 3)], 1, 3 + 4, 6 + 3),
        # One tuple every 5 ms: a window of 10 ms has two of them, in panes of 1 ms or not.
        ([(10, 1)], 5, 1 + 5 * 2, 1 + 5 * 2),
        # In 12 ms: panes of 1 ms; or cuts at 0 3 4 6 8 9, so windows have 2, 2, 2 and 2, 1, 1, 2.
        ([(4, 4), (3, 3)], 1, 12 + 3 * 4 + 4 * 3, 24 + 6 + 6),
    ],
)
def test_steps_are_those_counted_by_hand(
    spans: list[tuple[int, int]], every_ms: int, by_panes: int, by_edges: int
) -> None:
    windows = tuple(Span(*each) for each in spans)
    stream = Stream(windows, every_ms)
    assert stream.steps(panes(windows)) == by_panes
    assert stream.steps(edges(windows)) == by_edges


def test_nothing_shorter_loses_as_much() -> None:
    streams = list(errata._streams())
    findings = errata.panes_that_lose()
    assert findings.counterexample[0].startswith("A window of 47 ms every 8 ms,")
    first = next(n for n, each in enumerate(streams) if each.spans == (Span(47, 8),))
    assert findings.counterexample[-1].endswith(f"{first} of {first} tried.")
    # 8 tuples and 47 panes, or 8 tuples in 2 combs and 11 slices.
    assert " 55 steps, with cuts at the edges of windows 27." in findings.counterexample[1]
    assert findings.is_confirmed


def test_always_panes_is_not_confirmed(monkeypatch: pytest.MonkeyPatch) -> None:
    def always_panes(spans: Sequence[Span], per_hour: Fraction) -> Choice:
        return choose(spans, per_hour)._replace(cutting=panes(spans))

    monkeypatch.setattr(errata, "choose", always_panes)
    assert errata.panes_that_lose().scope.outcome is Outcome.BROKEN
