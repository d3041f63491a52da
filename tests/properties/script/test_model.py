"""Promises of docs/script.md on the model.

Workflows are drawn as trees, written as scripts, read again and run; arrivals come from simulated
networks, see ``straggler/strategies/script.py``.
"""

from dataclasses import replace
from math import isfinite

from hypothesis import example, given, settings
from hypothesis import strategies as st

from model.script.claims import against_placement
from model.script.graph import compile_graph
from model.script.placement import HASHED, LARGE_SPLIT, WHOLE, place
from model.script.rules import RULES
from model.vocabulary import ScriptConfig, System, Trace, Workload
from model.vocabulary.script.config import Rejected, Result, Undefined
from properties.promised import Reached, promised
from properties.telling_scripts import TELLING
from spark_impl.script import run_in_process
from straggler.strategies.script import cases, configs
from straggler.strategies.streams import cuts

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


# ------------------------------------------------------------------------------------ promise 6


def unplaced(trace: Trace) -> tuple[object, ...]:
    """Return all steps except the placement."""
    return trace.of(Result), trace.of(Undefined), trace.of(Rejected)


def zeros(case: Workload, zero: float) -> Workload:
    """Return a case whose finite values are all zeros of one sign."""
    return case.with_(
        arrivals=[
            event._replace(value=zero if isfinite(event.value) else event.value)
            for event in case.arrivals
        ]
    )


@settings(max_examples=20)
@example(case=TELLING["the same twice"])
@given(case=cases())
def test_zeros_of_either_sign_have_the_same_answers(system: System, case: Workload) -> None:
    for each in (system, run_in_process):
        # Zeros are equal whatever their sign, which only the text shows.
        plus, minus = (repr([*each(zeros(case, zero)).steps()]) for zero in (0.0, -0.0))
        assert plus == minus


@settings(max_examples=20)
@given(
    case=cases(),
    data=st.data(),
    workers=st.sampled_from([1, 2, 3, 5]),
    cap_percent=st.sampled_from([100, 125, 1_000]),
)
def test_workers_placements_and_micro_batches_change_nothing(
    case: Workload, data: st.DataObject, workers: int, cap_percent: int
) -> None:
    config = ScriptConfig.from_json(case.config)
    elsewhere = replace(config, workers=workers, cap_percent=cap_percent)
    recut = case.with_(config=elsewhere.to_json(), cuts=data.draw(cuts(len(case.arrivals))))
    assert unplaced(run_in_process(recut)) == unplaced(run_in_process(case))
