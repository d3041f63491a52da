"""Every planted bug and literal reading is caught; the reference passes the same input."""

import pytest

from model.checking.claims import Outcome
from model.checking.diff import compare
from model.checking.shrink import smallest
from model.checking.variants import PLANTED
from model.slack import run
from model.slack import variants as module
from model.slack.claims import check
from model.slack.evidence import IDENTITY
from model.slack.scopes import explore
from model.slack.variants import VARIANTS
from model.vocabulary import Workload
from model.vocabulary.slack import WORDS
from tests.model.slack.trace_validation import validate_task

EXPLORED = {
    "early_closing": (
        "small",
        1,
        "never: a tuple was late for a window that the watermark had not reached",
    ),
    "mixed_tuple_lost": ("small", 2, "each pair once"),
    "gamma_only": ("small", None, "a correction is due because of age"),
    "slack_winds_up": ("pd", 3, "slack within 0 and the largest delay"),
    "lost_update": (
        "small",
        3,
        "never: the stream wrote a window that it had answered or called late before",
    ),
    "closed_by_state": ("small", 2, "wrong answers are pending"),
    "no_flush": ("redelivery", 4, "exact in the end"),
    "watermark_falls": ("small", 2, "never: the watermark went back"),
    "counts_twice": ("redelivery", 3, "wrong answers are pending"),
    "alpha_unclamped": ("conformal", 3, "alpha within 0 and 1"),
    "clears_everything": ("redelivery", 7, "wrong answers are pending"),
    "clears_first": ("small", 4, "wrong answers are pending"),
}
"""Scope, length of the shortest path (None: the claim is never reached) and claim, by variant."""


@pytest.mark.parametrize("name", sorted(VARIANTS))
def test_a_variant_breaks_its_promise_and_the_reference_does_not(name: str) -> None:
    variant = VARIANTS[name]
    observed = variant.make_system()(variant.example)
    broken = {v.claim: v for v in check(variant.example, observed) if v.outcome is Outcome.BROKEN}
    assert variant.promise in broken
    assert broken[variant.promise].sentence
    right = check(variant.example, run(variant.example))
    assert not [verdict for verdict in right if verdict.outcome is Outcome.BROKEN]
    assert variant.promise in {v.claim for v in right if v.outcome is Outcome.HOLDS}


@pytest.mark.parametrize("name", sorted(VARIANTS))
def test_a_variant_differs_from_the_reference(name: str) -> None:
    variant = VARIANTS[name]
    expected, observed = run(variant.example), variant.make_system()(variant.example)
    assert compare(expected, observed, WORDS, identity=IDENTITY).mismatches


@pytest.mark.parametrize("name", sorted(VARIANTS))
def test_an_example_is_as_small_as_it_can_be(name: str) -> None:
    variant = VARIANTS[name]

    def fails(workload: Workload) -> bool:
        return variant.promise in {
            verdict.claim
            for verdict in check(workload, variant.make_system()(workload))
            if verdict.outcome is Outcome.BROKEN
        }

    assert len(smallest(variant.example, fails).arrivals) == len(variant.example.arrivals)


@pytest.mark.parametrize("name", sorted(EXPLORED))
def test_the_explorer_finds_the_shortest_path_to_a_variant(name: str) -> None:
    scope, length, claim = EXPLORED[name]
    found = explore(scope, name)
    verdict = next(verdict for verdict in found.verdicts if verdict.claim == claim)
    assert verdict.outcome is Outcome.BROKEN
    if length is not None:
        assert len(found.paths[claim].steps) == length
        assert verdict.witness[0] == "0. Initially nothing has arrived."


def test_every_variant_is_explored_unless_scopes_lack_what_it_is_about() -> None:
    about_slack = {"never_waits", "half_the_delay"}
    # No tuple of a scope is rejected.
    others = {"smaller_root", "normal_quantile", "rejected_rows_do_not_matter", *about_slack}
    assert set(VARIANTS) - set(EXPLORED) == others


@pytest.mark.parametrize("name", ["early_closing", "mixed_tuple_lost", "lost_update"])
def test_a_recording_of_a_variant_is_no_behaviour_of_the_model(name: str) -> None:
    variant = VARIANTS[name]
    verdict = validate_task(variant.example, variant.make_system()(variant.example), 0)
    assert verdict.outcome is Outcome.BROKEN


def test_every_variant_has_a_factory_of_its_name() -> None:
    for name, variant in VARIANTS.items():
        observed = getattr(module, name)()(variant.example)
        assert observed.digest() == variant.make_system()(variant.example).digest()
        assert variant.name == name
    assert any(variant.source != PLANTED for variant in VARIANTS.values())
