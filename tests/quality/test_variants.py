"""Each variant of a room breaks its promise on a smallest workload; the right rules keep it."""

from functools import cache
from importlib import import_module
from typing import Any

import pytest

from model.checking.claims import Outcome
from model.checking.explorer import explore as search
from model.checking.shrink import smallest
from model.checking.variants import PLANTED
from model.grouping.variants import AGREEMENT
from model.join import scopes as chains
from model.join.run import run as run_chain
from model.join.state_claims import (
    COMPLETE,
    COPIES,
    CROSSED,
    LOST,
    ONE_PLACE,
    STUCK,
    TWICE,
    claims_of,
)
from model.join.variants import VARIANTS as OF_CHAINS
from model.vocabulary import Trace, Workload
from straggler.rooms import find_room, room_names
from tests.quality.claims import broken

CASES = [(room, name) for room in room_names() for name in find_room(room).explorer.variants]
ALONE = [(room, name) for room, name in CASES if room != "join"]
"""Variants that read a workload; those of a chain are behaviours of a small scope."""


def variant_of(room: str, name: str) -> Any:
    return find_room(room).explorer.variants[name]


def right(room: str, workload: Workload) -> Trace:
    return run_chain(workload) if room == "join" else find_room(room).reference()(workload)


def is_wrong(room: str, name: str, workload: Workload) -> bool:
    """Return whether a variant breaks its promise on a workload."""
    variant = variant_of(room, name)
    trace = variant.make_system()(workload)
    if variant.promise == AGREEMENT:  # no claim notices it
        found = find_room(room)
        return bool(
            found.compare(workload, right(room, workload), trace, found.step_types).sentences
        )
    # A chain that is stuck owes pairs, which is all that can be seen in what came out of it.
    promise = LOST if variant.promise == STUCK else variant.promise
    return promise in broken(room, workload, trace)


@pytest.mark.parametrize(("room", "name"), CASES)
def test_a_variant_breaks_its_promise_and_the_right_rules_keep_it(room: str, name: str) -> None:
    example = variant_of(room, name).example
    arrivals_us = [event.arrival_us for event in example.arrivals]
    assert arrivals_us == sorted(arrivals_us)
    assert is_wrong(room, name, example)
    assert broken(room, example, right(room, example)) == set()


@pytest.mark.parametrize(("room", "name"), ALONE)
def test_an_example_is_as_small_as_it_can_be(room: str, name: str) -> None:
    example = variant_of(room, name).example
    found = smallest(example, lambda workload: is_wrong(room, name, workload))
    assert len(found.arrivals) == len(example.arrivals)


@pytest.mark.parametrize("room", room_names())
def test_variants_are_named_as_on_the_command_line_and_some_are_published(room: str) -> None:
    module = import_module(f"model.{room}.variants")
    variants = find_room(room).explorer.variants
    for name, variant in variants.items():
        assert getattr(variant, "name", "") == name
        if room != "join":
            own, named = variant.make_system(), getattr(module, name)()
            assert own(variant.example).digest() == named(variant.example).digest()
    assert any(getattr(variant, "source", PLANTED) != PLANTED for variant in variants.values())


# ------------------------------------------------------------------------------------- the explorer

SHORTEST: dict[str, dict[str, tuple[str, int | None, str]]] = {
    "slack": {
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
    },
    "watermark": {
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
    },
}
"""Scope, length of a shortest path (None: it is never reached) and claim, by variant."""
OF_A_CHAIN: dict[str, tuple[str, int]] = {
    "no_copy": (LOST, 5),
    "both_visible": (TWICE, 6),
    "deleted_early": (LOST, 6),
    "acknowledged_first": (LOST, 9),
    "acknowledged_later": (TWICE, 6),
    "channel_for_acks": (TWICE, 6),
    "no_numbers": (TWICE, 6),
    "seen_ignored": (TWICE, 6),
    "released_at_once": (LOST, 7),
    "seen_renewed": (LOST, 7),
    "blocking_send": (STUCK, 8),
    "balance_alone": (STUCK, 15),
    "local_timer": (LOST, 4),
    "source_watermark": (LOST, 5),
    "copies_dropped": (LOST, 9),
    "silent_merge": (LOST, 3),
    "halves": (TWICE, 8),
    "opened_at_once": (LOST, 5),
    "redirected_at_once": (LOST, 7),
    "end_ignored": (LOST, 8),
    "floor_within_an_epoch": (LOST, 6),
    "restored_alone": (TWICE, 9),
}
"""Broken promise and length of a shortest behaviour, by variant of a chain."""


@pytest.mark.parametrize(
    ("room", "name"), [(room, name) for room in SHORTEST for name in SHORTEST[room]]
)
def test_the_explorer_finds_the_shortest_path_to_a_variant(room: str, name: str) -> None:
    scope, length, claim = SHORTEST[room][name]
    found = import_module(f"model.{room}.scopes").explore(scope, name)
    verdict = next(verdict for verdict in found.verdicts if verdict.claim == claim)
    assert verdict.outcome is Outcome.BROKEN
    if length is not None:
        assert len(found.paths[claim].steps) == length
        assert verdict.witness[0] == "0. Initially nothing has arrived."


@pytest.mark.parametrize("name", OF_CHAINS)
def test_the_explorer_finds_a_shortest_behaviour_of_a_chain(name: str) -> None:
    promise, length = OF_A_CHAIN[name]
    found = import_module("model.join.variants").explore(OF_CHAINS[name].home, name)
    assert OF_CHAINS[name].promise == promise
    verdict = next(verdict for verdict in found.verdicts if verdict.claim == promise)
    assert verdict.outcome is Outcome.BROKEN
    assert verdict.witness[0] == "0. Initially no pair came out."
    assert len(found.paths[promise].steps) == length


@cache
def broken_in_scope(name: str) -> set[str]:
    found = search(
        chains.machine_of(OF_CHAINS[name].scope), claims_of(OF_CHAINS[name].scope), max_states=3_000
    )
    return {v.claim for v in found.verdicts if v.outcome is Outcome.BROKEN}


@pytest.mark.parametrize(
    ("claim", "name"),
    [
        (ONE_PLACE, "restored_alone"),
        (COPIES, "deleted_early"),
        (CROSSED, "no_copy"),
        (COMPLETE, "silent_merge"),
    ],
)
def test_every_invariant_of_a_chain_can_fail(claim: str, name: str) -> None:
    assert claim in broken_in_scope(name)
