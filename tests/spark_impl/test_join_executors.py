"""Executors in processes of their own: killed in the middle of an epoch, or without a shared store.

The drivers are :mod:`tests.harness.join_executor_deaths` (tier 4: SIGKILL) and
:mod:`tests.harness.join_unshared`.
"""

from pathlib import Path

import pytest

from model.checking.claims import Outcome
from model.join import run
from model.join.claims import judge
from model.join.replay import validate_recording
from model.vocabulary.join import Forward, Quiet, Receive
from properties.join.test_model import results
from properties.judging.judge import broken_sentences
from spark_impl.join import snapshots
from spark_impl.join.system import read_trace
from tests.harness import join_executor_deaths, join_unshared
from tests.harness.chain_workloads import long_case
from tests.harness.driver_kills import assert_ended, needs_proc, run_to_its_end


@needs_proc
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


@needs_proc
@pytest.mark.timeout(600)
def test_a_store_that_is_not_shared_stops_the_first_epoch(tmp_path: Path, seed: int) -> None:
    long_case(join_unshared.WORKERS, seed, epochs=1).write(tmp_path / "workload.json")
    run_to_its_end(tmp_path, "tests.harness.join_unshared")
    assert (tmp_path / "said").read_text(encoding="utf-8") == (
        f"{join_unshared.STORE} has 0 of the 2 states that workers wrote in epoch 0: the driver and"
        " all workers have to reach one folder under this address"
    )
    assert snapshots(tmp_path / "store") == ()
