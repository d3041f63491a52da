"""Searches of behaviours find the nearest ones, and shrunk workloads have no part to spare."""

from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from operator import eq

from hypothesis import given
from hypothesis import strategies as st

from model.checking.claims import Outcome
from model.checking.explorer import (
    Machine,
    StateClaim,
    always,
    explore,
    no_deadlock,
    reachable,
    sometimes,
)
from model.checking.shrink import smallest
from model.vocabulary import Event, Fault, Workload

# ------------------------------------------------------------------------------------ the explorer

NODES = range(6)
Graph = dict[int, list[int]]
GRAPHS: st.SearchStrategy[Graph] = st.fixed_dictionaries(
    {node: st.lists(st.sampled_from(NODES), max_size=3) for node in NODES}
)
STARTS = st.lists(st.sampled_from(NODES), min_size=1, max_size=2)
SOME = st.sets(st.sampled_from(NODES), max_size=3)


def graph(edges: Graph, initial: list[int]) -> Machine[int, str]:
    """Return a machine from a literal graph; the actions are named after their ends."""

    def actions(node: int) -> Iterator[tuple[str, int]]:
        return ((f"{node} to {target}", target) for target in edges[node])

    return Machine(initial, actions, describe_state=lambda node: f"at {node}")


def distances(edges: Graph, initial: list[int]) -> dict[int, int]:
    """Return the distance of each reachable node, by relaxing all edges until none helps."""
    best = dict.fromkeys(initial, 0)
    for _ in NODES:
        for source, targets in edges.items():
            for target in targets:
                if source in best and best[source] + 1 < best.get(target, len(NODES)):
                    best[target] = best[source] + 1
    return best


@given(edges=GRAPHS, initial=STARTS)
def test_paths_are_as_short_as_a_naive_search_says(edges: Graph, initial: list[int]) -> None:
    best = distances(edges, initial)
    claims: list[StateClaim[int]] = [no_deadlock("lively", lambda _: False)]
    claims += [reachable(str(node), partial(eq, node)) for node in NODES]
    result = explore(graph(edges, initial), claims)
    assert result.unique_states == len(best)
    assert result.depth == max(best.values())
    assert result.transitions == sum(len(edges[node]) for node in best)
    dead = [best[node] for node in best if not edges[node]]
    assert ("lively" in result.paths) == bool(dead)
    if dead:
        assert len(result.paths["lively"].steps) == min(dead)
    for node in NODES:
        assert (str(node) in result.paths) == (node in best)
        if node in best:
            assert len(result.paths[str(node)].steps) == best[node]


@given(edges=GRAPHS, initial=STARTS, bad=SOME, last=SOME, seen=SOME)
def test_a_claim_breaks_at_the_nearest_state_and_holds_only_if_its_guard_occurred(
    edges: Graph, initial: list[int], bad: set[int], last: set[int], seen: set[int]
) -> None:
    best = distances(edges, initial)
    claims: list[StateClaim[int]] = [
        sometimes("guard", lambda node: node in seen),
        always("good", lambda node: node not in bad, guards=("guard",), explain=str),
        no_deadlock("lively", lambda node: node in last),
    ]
    result = explore(graph(edges, initial), claims)
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


# ------------------------------------------------------------------------------------ the shrinker


@given(
    st.sets(st.integers(0, 40), min_size=1),
    st.sets(st.integers(1, 40)),
    st.integers(0, 9),
    st.sets(st.integers(0, 9)),
)
def test_nothing_can_be_left_out_of_the_result(
    needed: set[int], cuts: set[int], faults: int, needed_faults: set[int]
) -> None:
    needed_faults = {n for n in needed_faults if n < faults}

    def fails(candidate: Workload) -> bool:
        found = {event.source_id for event in candidate.arrivals}
        return needed <= found and needed_faults <= {fault.at for fault in candidate.faults}

    arrivals = tuple(Event(seq, seq, "a", 100 + seq, 1.0, 200 + seq) for seq in range(41))
    planned = tuple(Fault("kill", n) for n in range(faults))
    large = Workload("any", arrivals, {}, tuple(sorted(cuts)), planned)
    small = smallest(large, fails, runs_max=5_000)
    assert [event.source_id for event in small.arrivals] == sorted(needed)
    assert [event.seq for event in small.arrivals] == list(range(len(needed)))
    assert small.cuts == ()
    assert {fault.at for fault in small.faults} == needed_faults
    assert len(small.faults) == len(needed_faults)
