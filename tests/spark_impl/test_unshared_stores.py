"""Executors that write into folders of their own: every query stops and says why (tier 4)."""

import json
from pathlib import Path
from typing import Any

import pytest

from properties.chain_workloads import long_case
from spark_impl.grouping.store import load_store
from spark_impl.join import snapshots
from spark_impl.runtime.storage import locate
from tests.harness import unshared_stores
from tests.harness.driver_kills import needs_proc, run_to_its_end
from tests.harness.killed_queries import script_workload, windows_workload
from tests.harness.unshared_stores import CHAIN_WORKERS, OWN, TUPLES
from tests.harness.windows_driver import prepare

pytestmark = [needs_proc, pytest.mark.timeout(600)]
SENTENCE = "the driver and all workers have to reach one folder under this address"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, seed: int) -> Path:
    """Return the folder in which all queries have run."""
    made = tmp_path_factory.mktemp("unshared")
    for name in ("slack", "script", "join"):
        (made / name).mkdir()
    prepare(made / "slack", windows_workload(0, seed))
    prepare(made / "script", script_workload(0, seed))
    long_case(CHAIN_WORKERS, seed, epochs=1).write(made / "join" / "workload.json")
    run_to_its_end(made, unshared_stores.__name__)
    return made


@pytest.fixture
def results(folder: Path) -> dict[str, Any]:
    """Return how every query ended."""
    found: dict[str, Any] = json.loads((folder / "results.json").read_bytes())
    return found


@pytest.mark.parametrize("name", ["windows", "scripts"])
def test_a_windowed_query_stops_in_its_first_micro_batch(
    results: dict[str, Any], name: str
) -> None:
    stopped, complete = results[name]
    assert stopped.startswith(f"{OWN}/{name} has 0 of the "), stopped
    assert stopped.endswith(SENTENCE)
    assert complete == -1


def test_a_chain_stops_in_its_first_epoch(results: dict[str, Any], folder: Path) -> None:
    stopped = results["chain"]
    assert stopped.startswith(f"{OWN}/chain has 0 of the "), stopped
    assert stopped.endswith(SENTENCE)
    assert snapshots(folder / "chain") == ()


@pytest.mark.parametrize(("name", "store"), [("work", "work"), ("no work", "no-work")])
def test_a_stream_of_groupings_stops_in_its_first_micro_batch(
    results: dict[str, Any], folder: Path, name: str, store: str
) -> None:
    stopped = results[name]
    assert stopped.startswith(f"{OWN}/{store} lacks kind=sender/00000000-0-"), stopped
    assert stopped.endswith(f".parquet, which was written: {SENTENCE}")
    assert not list((folder / store / "kind=standing").glob("*"))


def test_a_stream_whose_store_is_shared_goes_on(results: dict[str, Any], folder: Path) -> None:
    assert results["shared"] == ""
    store, view = load_store(locate(folder / "shared"))
    assert store.standing(view, 0).routed == TUPLES


def test_executors_import_our_packages_from_the_archive(results: dict[str, Any]) -> None:
    (file,) = results["modules"]
    assert "/straggler.zip/" in file
