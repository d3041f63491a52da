"""Promise 6 of docs/script.md: what the pipeline records is what the model does, exactly.

The workers run in process here, without Spark; what ``--system`` names takes their place.
"""

from collections import Counter
from dataclasses import replace
from math import isfinite

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from model.script import run
from model.script.claims import CASES, judge
from model.script.variants import VARIANTS
from model.vocabulary import ScriptConfig, System, Trace, Workload
from model.vocabulary.script.config import Hosted, Rejected, Result, Undefined
from properties.stream_packs import collect
from properties.telling_scripts import TELLING
from spark_impl.script import run_in_process
from straggler.judging.judge import broken_sentences
from straggler.rooms.script.room import compare
from straggler.strategies.script import cases
from straggler.strategies.streams import cuts
from tests.straggler.agreement import script_differences as differences

DRAWN = 200
"""Number of cases that together have to contain every interesting one."""
WORDS = (Result, Undefined, Rejected, Hosted)


@pytest.fixture(scope="module")
def pipeline(foreign_system: System | None) -> System:
    return foreign_system or run_in_process


@example(case=VARIANTS["at_every_change"].example)
@example(case=VARIANTS["late_by_all_sensors"].example)
@given(case=cases())
def test_the_pipeline_does_what_the_model_does(pipeline: System, case: Workload) -> None:
    assert not differences(case, pipeline(case))


@pytest.mark.parametrize("name", TELLING)
def test_the_pipeline_does_what_the_model_does_in_telling_cases(
    pipeline: System, name: str
) -> None:
    assert not differences(TELLING[name], pipeline(TELLING[name]))


def test_the_drawn_cases_include_every_interesting_one(pipeline: System, seed: int) -> None:
    guards = Counter[str]()
    for case in collect(cases(), DRAWN, seed):
        observed = pipeline(case)
        assert not differences(case, observed)
        evidence = judge(case, observed)
        assert not broken_sentences(evidence.verdicts)
        guards.update(evidence.guards)
    for guard in CASES:
        assert guards[guard], f"there were no {guard}"


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


@example(case=TELLING["the same twice"])
@given(case=cases())
def test_zeros_of_either_sign_have_the_same_answers(pipeline: System, case: Workload) -> None:
    for system in (run, pipeline):
        # Zeros are equal whatever their sign, which only the text shows.
        plus, minus = (repr([*system(zeros(case, zero)).steps()]) for zero in (0.0, -0.0))
        assert plus == minus


@given(
    case=cases(),
    data=st.data(),
    workers=st.sampled_from([1, 2, 3, 5]),
    cap_percent=st.sampled_from([100, 125, 1_000]),
)
def test_workers_placements_and_micro_batches_change_nothing(
    pipeline: System, case: Workload, data: st.DataObject, workers: int, cap_percent: int
) -> None:
    config = ScriptConfig.from_json(case.config)
    elsewhere = replace(config, workers=workers, cap_percent=cap_percent)
    recut = case.with_(config=elsewhere.to_json(), cuts=data.draw(cuts(len(case.arrivals))))
    assert unplaced(pipeline(recut)) == unplaced(pipeline(case))


@pytest.mark.parametrize("name", sorted(VARIANTS))
def test_a_mistake_is_caught_by_comparison(pipeline: System, name: str) -> None:
    variant = VARIANTS[name]
    case = variant.example
    right, wrong = pipeline(case), variant.make_system()(case)
    assert not differences(case, right)
    assert compare(case, right, wrong, WORDS).mismatches
