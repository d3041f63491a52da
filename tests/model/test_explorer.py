"""The explorer against a naive search of drawn graphs, and machines made by hand."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from operator import eq

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.checking.claims import Outcome
from model.checking.explorer import (
    Machine,
    StateClaim,
    always,
    explore,
    no_deadlock,
    sometimes,
)

Graph = dict[int, list[int]]


def graph(edges: Graph, *initial: int) -> Machine[int, str]:
    """Return a machine from a literal graph; the actions are named after their ends."""

    def actions(node: int) -> Iterator[tuple[str, int]]:
        return ((f"{node} to {target}", target) for target in edges.get(node, []))

    return Machine(initial, actions, describe_state=lambda node: f"at {node}")


def differs(unwanted: int) -> Callable[[int], bool]:
    return lambda node: node != unwanted


def anything(_: int) -> bool:
    return True


MOVED: StateClaim[int] = sometimes("moved", differs(0))
CYCLE: Graph = {0: [1], 1: [2], 2: [3], 3: [0]}


# ----------------------------------------------------------------------------------- any graph

NODES = range(6)
GRAPHS: st.SearchStrategy[Graph] = st.fixed_dictionaries(
    {node: st.lists(st.sampled_from(NODES), max_size=3) for node in NODES}
)
STARTS = st.lists(st.sampled_from(NODES), min_size=1, max_size=2)
SOME = st.sets(st.sampled_from(NODES), max_size=3)


def distances(edges: Graph, initial: list[int]) -> dict[int, int]:
    """Return the distance of each reachable node, by relaxing all edges until none helps."""
    best = dict.fromkeys(initial, 0)
    for _ in NODES:
        for source, targets in edges.items():
            for target in targets:
                if source in best and best[source] + 1 < best.get(target, len(NODES)):
                    best[target] = best[source] + 1
    return best


@given(edges=GRAPHS, initial=STARTS, bad=SOME, last=SOME, seen=SOME)
def test_a_claim_breaks_at_the_nearest_state_and_holds_only_if_its_guard_occurred(
    edges: Graph, initial: list[int], bad: set[int], last: set[int], seen: set[int]
) -> None:
    best = distances(edges, initial)
    claims: list[StateClaim[int]] = [
        sometimes("guard", lambda node: node in seen),
        always("good", lambda node: node not in bad, guards=("guard",), explain=str),
        no_deadlock("lively", lambda node: node in last),
        *(sometimes(str(node), partial(eq, node)) for node in NODES),
    ]
    result = explore(graph(edges, *initial), claims)
    assert (result.unique_states, result.depth) == (len(best), max(best.values()))
    assert result.transitions == sum(len(edges[node]) for node in best)
    for node in NODES:
        assert (str(node) in result.paths) == (node in best)
        if node in best:
            assert len(result.paths[str(node)].steps) == best[node]
    outcomes = {each.claim: each for each in result.verdicts}
    occurred = bool(seen & best.keys())
    dead = {node for node in best if not edges[node] and node not in last}
    for claim, broken, is_met in (("good", bad & best.keys(), occurred), ("lively", dead, True)):
        verdict = outcomes[claim]
        if not broken:
            assert verdict.outcome is (Outcome.HOLDS if is_met else Outcome.UNDETERMINED)
            continue
        assert verdict.outcome is Outcome.BROKEN
        path = result.paths[claim]
        assert path.last in broken
        assert len(path.steps) == min(best[node] for node in broken)
        nodes = [path.initial, *(node for _, node in path.steps)]
        assert nodes[0] in initial
        assert all(after in edges[before] for before, after in pairwise(nodes))
        moves = [
            f"{n}. {before} to {after}: at {after}."
            for n, (before, after) in enumerate(pairwise(nodes), start=1)
        ]
        assert [*verdict.witness[:-1]] == [f"0. Initially at {nodes[0]}.", *moves]
        assert claim != "good" or verdict.witness[-1] == f"{nodes[-1]}."


def test_what_a_broken_claim_left_unseen_is_undetermined() -> None:
    claims: list[StateClaim[int]] = [
        MOVED,
        always("never 1", differs(1), guards=("moved",)),
        sometimes("three", partial(eq, 3)),
    ]
    result = explore(graph(CYCLE, 0), claims, promise="never 1")
    assert (result.unique_states, result.cut) == (2, "the first broken claim")
    holds, broken, *unseen = result.verdicts
    assert (holds.outcome, broken.outcome) == (Outcome.HOLDS, Outcome.BROKEN)
    assert {each.outcome for each in unseen} == {Outcome.UNDETERMINED}


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
