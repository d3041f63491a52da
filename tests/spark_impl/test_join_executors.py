"""Executors in processes of their own, killed in the middle of an epoch (tier 4: SIGKILL).

The driver is :mod:`tests.harness.join_executor_deaths`. ``test_join_failures.py`` ends workers at
more stages, in one process of Java.
"""

from pathlib import Path

import pytest

from model.checking.claims import Outcome
from model.join import run
from model.join.claims import judge
from model.join.replay import validate_recording
from model.vocabulary.join import Forward, Quiet, Receive
from properties.chain_workloads import long_case
from spark_impl.join.system import read_trace
from straggler.judging.judge import broken_sentences
from tests.harness import join_executor_deaths
from tests.harness.driver_kills import assert_ended, needs_proc, run_to_its_end
from tests.properties.join.test_model import results


@needs_proc
@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_chain_of_executors_that_die_keeps_every_promise(tmp_path: Path, seed: int) -> None:
    workload = long_case(join_executor_deaths.WORKERS, seed, join_executor_deaths.EPOCHS)
    workload.write(tmp_path / "workload.json")
    run_to_its_end(tmp_path, "tests.harness.join_executor_deaths")
    assert_ended(tmp_path / "killed", join_executor_deaths.DEATHS)
    trace = read_trace(tmp_path / "store")
    assert results(trace) == results(run(workload))
    broken = broken_sentences(judge(workload, trace).verdicts)
    assert not broken, "\n".join(broken)
    recording = validate_recording(workload, trace)
    assert recording.outcome is Outcome.HOLDS, (recording.sentence, recording.witness)
    assert {step.worker for step in trace.of(Quiet)} == set(range(join_executor_deaths.WORKERS))
    assert trace.of(Forward)
    assert any(step.copies for step in trace.of(Receive)), "no copy was joined"
