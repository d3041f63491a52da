"""Promises of docs/script.md on the model, or on what ``--system`` names.

Workflows are drawn as trees, written as scripts, read again and run; arrivals come from simulated
networks, see ``straggler/strategies/script.py``.
"""

from dataclasses import replace
from fractions import Fraction
from functools import cache

from hypothesis import given
from hypothesis import strategies as st

from model.checking.claims import Judgement, Outcome
from model.script.claims import (
    CASES,
    RESULTS,
    against_placement,
    assignments,
    judge,
    over_all,
)
from model.script.graph import compile_graph
from model.script.meaning import meaning
from model.script.placement import HASHED, LARGE_SPLIT, WHOLE, load_cap, place, units
from model.script.rules import RULES
from model.vocabulary import ScriptConfig, System, Trace, Workload
from model.vocabulary.script.config import Rejected, Result
from properties.stream_packs import collect
from straggler.judging.judge import broken_sentences
from straggler.rooms.script.formatter import unparse
from straggler.rooms.script.language import parse
from straggler.strategies.script import SENSORS, cases, configs

CASES_FOR_GUARDS = 200
PLACED = 300
"""Number of sets of workflows that are placed."""


def written_and_read(case: Workload) -> Workload:
    """Return the workload with its workflows written as scripts and read again."""
    config = ScriptConfig.from_json(case.config)
    read = tuple(parse(unparse(each), each.name, SENSORS) for each in config.workflows)
    assert read == config.workflows
    return case.with_(config=replace(config, workflows=read).to_json())


# -------------------------------------------------------------------------- promises 1, 2, 3, 5


@given(case=cases())
def test_no_claim_is_broken(system: System, case: Workload) -> None:
    case = written_and_read(case)
    broken = broken_sentences(judge(case, system(case)).verdicts)
    assert not broken, "\n".join(broken)


@cache
def drawn(seed: int) -> tuple[Workload, ...]:
    return tuple(collect(cases(), CASES_FOR_GUARDS, seed))


def test_every_claim_is_put_to_the_test(system: System, seed: int) -> None:
    evidence: list[Judgement] = [judge(case, system(case)) for case in drawn(seed)]
    for guard in CASES:
        assert sum(each.guards[guard] for each in evidence), f"there were no {guard}"
    for verdict in over_all(evidence):
        assert verdict.outcome is Outcome.HOLDS, (verdict.claim, verdict.sentence, verdict.witness)


@given(case=cases(), seed=st.integers(0, 99))
def test_other_scripts_change_no_result(system: System, case: Workload, seed: int) -> None:
    config = ScriptConfig.from_json(case.config)
    together = system(case)
    # The scripts come in another order, so that nodes have other numbers.
    flows = config.workflows
    turned = replace(config, workflows=(*flows[seed % len(flows) :], *flows[: seed % len(flows)]))
    assert system(case.with_(config=turned.to_json())).of(Result) == together.of(Result)
    # One alone, on one worker, in one micro-batch.
    flow = flows[seed % len(flows)]
    alone = replace(config, workflows=(flow,), workers=1)
    trace = system(case.with_(config=alone.to_json(), cuts=()))
    expected = [each for each in together.of(Result) if each.workflow == flow.name]
    assert list(trace.of(Result)) == expected
    assert set(trace.of(Rejected)) <= set(together.of(Rejected))


@given(case=cases())
def test_results_of_a_part_stay_when_more_arrives(system: System, case: Workload) -> None:
    whole = set(system(case.with_(flush=True)).of(Result))
    part = system(case.with_(flush=False))
    assert set(part.of(Result)) <= whole
    begun = case.with_(arrivals=case.arrivals[: len(case.arrivals) // 2], cuts=(), flush=False)
    assert set(system(begun).of(Result)) <= set(part.of(Result))


# ------------------------------------------------------------------------------------ promise 4


def test_placements_keep_their_bounds(seed: int) -> None:
    seen: dict[str, int] = {}
    for config in collect(configs(), PLACED, seed):
        graph = compile_graph(config)
        if graph.computed:
            placed = place(graph, config.workers, config.cap_percent, RULES)
            assert not list(against_placement(config, placed))
            seen[placed.way] = seen.get(placed.way, 0) + 1
    assert min(seen.get(way, 0) for way in (WHOLE, LARGE_SPLIT, HASHED)) > 0, seen


@given(config=configs())
def test_a_split_is_compared_with_the_best(config: ScriptConfig) -> None:
    # For sensors alone: the least number of sent tuples if no worker exceeds the cap.
    graph = compile_graph(config)
    cap = load_cap(graph, config.workers, config.cap_percent)
    pieces = units(graph)
    if not pieces or len(pieces) > 6:
        return
    placed = place(graph, config.workers, config.cap_percent, RULES)
    costs = []
    for given_to in assignments(len(pieces), config.workers):
        at: list[set[int]] = [set() for _ in range(config.workers)]
        for piece, worker in zip(pieces, given_to, strict=True):
            at[worker] |= piece.sensors
        loads = [sum((graph.per_hour[each] for each in hosts), Fraction()) for hosts in at]
        if max(loads) <= cap:
            costs.append(sum(loads, Fraction()))
    if max(placed.loads) <= cap:
        assert sum(placed.loads, Fraction()) >= min(costs)
    if not costs:
        assert max(placed.loads) > cap


def test_the_meaning_satisfies_the_claim_on_results(seed: int) -> None:
    case = drawn(seed)[0]
    trace = Trace("meaning", meaning(case))
    assert not [v for v in judge(case, trace).verdicts if v.claim == RESULTS and v.witness]
