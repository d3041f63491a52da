"""Drivers of scripts killed with SIGKILL, again and again: results stay exact (tier 4).

The queries run in the background (``conftest.py``), beside other tests.
"""

import pytest

from model.script import run
from model.vocabulary import ScriptConfig
from model.vocabulary.script.config import Rejected
from properties import profiles
from spark_impl.script import compile_plan
from spark_impl.script.system import read_traces
from tests.harness.background_kills import Query
from tests.harness.driver_kills import needs_proc
from tests.straggler.agreement import script_differences as differences


@needs_proc
@pytest.mark.timeout(1_800)
def test_results_are_exact_however_often_the_driver_is_killed(
    killed_scripts: list[Query],
) -> None:
    seen = [kill for query in killed_scripts for kill in query.kills]
    for folder, workload, _ in killed_scripts:
        config = ScriptConfig.from_json(workload.config)
        assert compile_plan(config).exchanges, "workers have no results for each other"
        traces = read_traces(config, folder / "store", [workload.name])
        assert not differences(workload, traces[workload.name]), seen
        assert run(workload).of(Rejected), "nothing was late"
        sent = list((folder / "store" / "_control").glob("*-messages-*.parquet"))
        assert len(sent) <= 1, "messages that were delivered are left"
    wanted = max(1, profiles.effort().kills // 4)
    assert len(seen) >= wanted, f"only {len(seen)} kills interrupted anything"
