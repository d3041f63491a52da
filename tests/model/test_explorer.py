"""The explorer against published state counts, and on machines made by hand."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path as FilePath

import pytest

from model.checking.claims import Outcome, Verdict, combine
from model.checking.explorer import (
    Exploration,
    Machine,
    StateClaim,
    always,
    explore,
    no_deadlock,
    reachable,
    sometimes,
)
from tests.model.two_phase_commit import CLAIMS, is_consistent, two_phase_commit

Graph = dict[int, list[int]]


def graph(edges: Graph, *initial: int) -> Machine[int, str]:
    """Return a machine from a literal graph; the actions are named after their ends."""

    def actions(node: int) -> Iterator[tuple[str, int]]:
        return ((f"{node} to {target}", target) for target in edges.get(node, []))

    return Machine(initial, actions, describe_state=lambda node: f"at {node}")


def equals(wanted: int) -> Callable[[int], bool]:
    return lambda node: node == wanted


def differs(unwanted: int) -> Callable[[int], bool]:
    return lambda node: node != unwanted


def anything(_: int) -> bool:
    return True


MOVED: StateClaim[int] = sometimes("moved", differs(0))
CYCLE: Graph = {0: [1], 1: [2], 2: [3], 3: [0]}


def verdict(result: Exploration[int, str], name: str) -> Verdict:
    return next(verdict for verdict in result.verdicts if verdict.claim == name)


# ------------------------------------------------------------------ calibration: two-phase commit


@pytest.mark.parametrize(
    ("managers", "states", "transitions", "depth"),
    [(3, 288, 1_145, 10), (5, 8_832, 58_145, 16)],
)
def test_two_phase_commit_has_the_published_size(
    managers: int, states: int, transitions: int, depth: int
) -> None:
    # The states are published; transitions and depth are pinned so that no change goes unseen.
    result = explore(two_phase_commit(managers), CLAIMS)
    assert (result.unique_states, result.transitions) == (states, transitions)
    assert (result.depth, result.cut) == (depth, None)
    assert [verdict.outcome for verdict in result.verdicts] == [Outcome.HOLDS] * len(CLAIMS)


@pytest.mark.parametrize(("votes_needed", "length"), [(0, 3), (1, 5), (2, 7)])
def test_a_hasty_coordinator_is_caught_by_the_shortest_path(votes_needed: int, length: int) -> None:
    # Each vote costs two actions (prepare, hear it); then commit, one manager obeys, one aborts.
    machine = two_phase_commit(3, votes_needed)
    result = explore(machine, CLAIMS)
    path = result.paths["managers agree"]
    assert combine(result.verdicts) is Outcome.BROKEN
    assert len(path.steps) == length
    assert not is_consistent(path.last)
    states = [path.initial, *(state for _, state in path.steps)]
    for (before, after), (action, _) in zip(pairwise(states), path.steps, strict=True):
        assert (action, after) in list(machine.actions(before))


# ------------------------------------------------------------------------------------ the search


def test_the_search_can_stop_at_the_first_broken_claim() -> None:
    endless = Machine([0], lambda n: [("up", n + 1)])
    claims = [
        sometimes("moved", differs(0)),
        always("below 7", lambda n: n < 7, guards=("moved",)),
        always("not negative", lambda n: n >= 0, guards=("moved",)),
    ]
    result = explore(endless, claims, stop_at_first_broken=True)
    assert (result.unique_states, result.cut) == (8, "the first broken claim")
    assert len(result.paths["below 7"].steps) == 7
    assert [verdict.outcome for verdict in result.verdicts] == [
        Outcome.HOLDS,
        Outcome.BROKEN,
        Outcome.UNDETERMINED,
    ]


# ------------------------------------------------------------------------------------ the limits


@pytest.mark.parametrize(
    ("max_states", "max_depth", "states", "cut"),
    [
        (3, None, 3, "the limit of 3 states"),
        (1, None, 1, "the limit of 1 state"),
        (9, 1, 2, "the limit of 1 action from the start"),
        (9, 0, 1, "the limit of 0 actions from the start"),
    ],
)
def test_a_limit_leaves_claims_undetermined(
    max_states: int, max_depth: int | None, states: int, cut: str
) -> None:
    claims = [
        sometimes("started", equals(0)),
        always("never 9", differs(9), guards=("started",)),
        reachable("three", equals(3)),
        no_deadlock("lively", anything),
    ]
    result = explore(graph(CYCLE, 0), claims, max_states=max_states, max_depth=max_depth)
    assert (result.unique_states, result.cut) == (states, cut)
    assert verdict(result, "started").outcome is Outcome.HOLDS
    for name in ("never 9", "three", "lively"):
        assert verdict(result, name).outcome is Outcome.UNDETERMINED
        assert cut in verdict(result, name).sentence


# ------------------------------------------------------------------------------- wrong arguments


def test_a_safety_claim_needs_a_guard() -> None:
    with pytest.raises(ValueError, match="'safe' names no guard"):
        always("safe", anything, guards=())


@pytest.mark.parametrize(
    ("claims", "message"),
    [
        ([MOVED, MOVED], "two claims have the name 'moved'"),
        ([always("a", anything, guards=("b",))], "the guard 'b' of 'a'"),
        ([always("a", anything, guards=("a",))], "the guard 'a' of 'a'"),
    ],
)
def test_ill_formed_claims_are_named(claims: list[StateClaim[int]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        explore(graph(CYCLE, 0), claims)


def test_a_machine_that_changes_its_mind_is_refused() -> None:
    answers = iter([[("up", 1)], []])
    fickle: Machine[int, str] = Machine([0], lambda _: next(answers, []))
    with pytest.raises(ValueError, match=r"actions\(0\) once led to 1"):
        explore(fickle, [reachable("one", equals(1))])


# ---------------------------------------------------------------- determinism and independent check


def test_two_hash_seeds_give_the_same_exploration() -> None:
    program = (
        "from model.checking.explorer import explore\n"
        "from tests.model.two_phase_commit import CLAIMS, two_phase_commit\n"
        "print(explore(two_phase_commit(3, votes_needed=1), CLAIMS))\n"
    )
    root = FilePath(__file__).parents[2]
    outputs = [
        subprocess.run(
            [sys.executable, "-c", program],
            cwd=root,
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert outputs[0] == outputs[1]
    assert "managers agree" in outputs[0]
