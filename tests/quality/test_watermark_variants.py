"""Every planted bug and the literal reading are caught; the reference passes the same input."""

import pytest

from model.checking.claims import Outcome
from model.checking.diff import compare
from model.checking.explorer import explore as search
from model.checking.shrink import smallest
from model.vocabulary import Event, Trace, Workload
from model.vocabulary.watermark import WORDS
from model.vocabulary.windows import Late
from model.watermark import run
from model.watermark import variants as module
from model.watermark.claims import CLAIMS, check
from model.watermark.evidence import IDENTITY
from model.watermark.scopes import LESS_FOR_MORE, SCOPES, claims_of, explore, machine_of
from model.watermark.variants import VARIANTS

EXPLORED = {
    "literal": ("small", 1, "the wait is that of the reading"),
    "ties_reversed": ("small", 2, "pairs out of order are counted"),
    "cluster_per_batch": ("small", 3, "pairs out of order are counted"),
    "cluster_one_too_many": ("small", 4, "pairs out of order are counted"),
    "pairs_left_behind": ("small", 4, "pairs out of order are counted"),
    "watermark_falls": ("small", 3, "never: the watermark went back"),
    "wait_in_floats": ("small", 3, "the wait is that of the reading"),
    "no_warm_up": ("small", 1, "the wait is that of the reading"),
    "closes_early": (
        "small",
        2,
        "never: a tuple was late for a window that the watermark had not reached",
    ),
    "closes_late": ("small", 2, "nothing stays open behind the watermark"),
    "mixed_tuple_lost": ("small", 2, "each pair once"),
    "reopens": ("small", 2, "nothing stays open behind the watermark"),
    "counts_twice": ("redelivery", 3, "each pair once"),
}
"""Scope, length of the shortest path and claim, by variant."""
STORM = tuple(
    Event(seq, seq, "a", event_time_us, 1.0, 100 + seq)
    for seq, event_time_us in enumerate((38, 5, 2, 4, 50, 16))
)


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


def test_a_late_pair_out_of_nothing_is_refuted() -> None:
    case = VARIANTS["ties_reversed"].example
    right = run(case)
    observed = Trace("foreign", [*right.steps(), Late(0, 0, "a", 77, 5, 0)])
    broken = {v.claim: v.sentence for v in check(case, observed) if v.outcome is Outcome.BROKEN}
    assert broken["late means closed"].endswith("and was not accepted then.")


@pytest.mark.parametrize("name", sorted(VARIANTS))
def test_a_variant_differs_from_the_reference(name: str) -> None:
    variant = VARIANTS[name]
    expected, observed = run(variant.example), variant.make_system()(variant.example)
    assert compare(expected, observed, WORDS, identity=IDENTITY).mismatches


@pytest.mark.parametrize("name", sorted(EXPLORED))
def test_the_explorer_finds_the_shortest_path_to_a_variant(name: str) -> None:
    scope, length, claim = EXPLORED[name]
    found = explore(scope, name)
    broken = [verdict for verdict in found.verdicts if verdict.outcome is Outcome.BROKEN]
    assert claim in {verdict.claim for verdict in broken}
    assert len(found.paths[claim].steps) == length
    assert broken[0].witness[0] == "0. Initially nothing has arrived."


def test_every_variant_is_explored_unless_scopes_lack_what_it_is_about() -> None:
    others = {
        name
        for name in set(VARIANTS) - set(EXPLORED)
        # The scopes have tasks with watermarks of their own.
        if "upstreams" not in VARIANTS[name].example.config
    }
    about_corrections = {"clears_first", "gamma_only", "ignores_flushes"}
    # No tuple of a scope is rejected.
    assert others == {*about_corrections, "rejected_rows_do_not_matter"}
    assert all(VARIANTS[name].example.config["corrections"] for name in about_corrections)


def test_every_claim_is_broken_by_something() -> None:
    broken: set[str] = set()
    for variant in VARIANTS.values():
        corrects = "upstreams" not in variant.example.config
        config = {**variant.example.config, "corrections": corrects}
        for example in (variant.example, Workload("watermark", STORM, config, (3,))):
            verdicts = check(example, variant.make_system()(example))
            broken |= {v.claim for v in verdicts if v.outcome is Outcome.BROKEN}
    assert broken == {claim.name for claim in CLAIMS.claims}


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


def test_every_variant_can_be_named_on_the_command_line() -> None:
    for name, variant in VARIANTS.items():
        assert getattr(module, name) == variant.make_system


def test_the_literal_reading_needs_three_arrivals() -> None:
    variant = VARIANTS["literal"]
    assert len(variant.example.arrivals) == 3
    literal = variant.make_system()
    for pair in ((1, 2), (2, 1), (1, 1)):
        events = tuple(
            event._replace(event_time_us=time_us)
            for event, time_us in zip(variant.example.arrivals, pair, strict=False)
        )
        shorter = Workload("watermark", events, variant.example.config)
        broken = {v.claim for v in check(shorter, literal(shorter)) if v.outcome is Outcome.BROKEN}
        assert variant.promise not in broken


def test_the_literal_reading_as_a_setting_is_the_literal_variant() -> None:
    variant = VARIANTS["literal"]
    config = {**variant.example.config, "reading": "literal"}
    as_setting = run(variant.example.with_(config=config))
    assert as_setting.digest() == variant.make_system()(variant.example).digest()


def test_the_explorer_finds_that_the_literal_reading_is_not_monotone() -> None:
    small = SCOPES["small"]
    found = search(machine_of(small, "literal"), claims_of(small))
    assert len(found.paths[f"never: {LESS_FOR_MORE}"].steps) == 3
