"""Executors that do not share the store with the driver: the query stops (tier 4)."""

from pathlib import Path

import pytest

from tests.harness.driver_kills import needs_proc, run_to_its_end
from tests.harness.killed_queries import script_workload
from tests.harness.windows_driver import prepare
from tests.harness.windows_unshared import STORE


@needs_proc
@pytest.mark.timeout(600)
def test_store_that_is_not_shared_is_noticed(tmp_path: Path, seed: int) -> None:
    prepare(tmp_path, script_workload(0, seed))
    stopped, complete, _done = run_to_its_end(tmp_path, "tests.harness.windows_unshared").lines
    said = f"stopped: {STORE} has 0 of the "
    assert stopped.startswith(said), stopped
    assert stopped.endswith("all workers have to reach one folder under this address")
    assert complete == "complete: -1"
