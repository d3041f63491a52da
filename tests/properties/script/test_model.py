"""Promises of docs/script.md on the model.

Workflows are drawn as trees, written as scripts, read again and run; arrivals come from simulated
networks, see ``straggler/strategies/script.py``.
"""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from model.script.claims import against_placement
from model.script.graph import compile_graph
from model.script.placement import HASHED, LARGE_SPLIT, WHOLE, place
from model.script.rules import RULES
from model.vocabulary import ScriptConfig, System, Workload
from model.vocabulary.script.config import Rejected, Result
from properties.promised import Reached, promised
from straggler.strategies.script import cases, configs

# -------------------------------------------------------------------------- promises 1, 2, 3, 5


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


@promised(WHOLE, LARGE_SPLIT, HASHED, examples=60)
@given(config=configs())
def test_placements_keep_their_bounds(reached: Reached, config: ScriptConfig) -> None:
    graph = compile_graph(config)
    for workers in (2, 4) if graph.computed else ():
        placed = place(graph, workers, 100, RULES)
        elsewhere = replace(config, workers=workers, cap_percent=100)
        assert not list(against_placement(elsewhere, placed))
        reached.add({placed.way: 1})
