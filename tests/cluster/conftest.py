"""The hosts of all tests in this folder."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.commands import SLOTS
from tests.harness.hosts import NAMES, Hosts, three_hosts

FOLDER = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark all tests of this folder, and give them the time that a cluster takes."""
    for item in items:
        if FOLDER in item.path.parents:
            item.add_marker(pytest.mark.cluster)
            item.add_marker(pytest.mark.timeout(600))


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    """Return hosts that all tests share; each test leaves them as they were.

    The driver's host has no worker, so that every task runs on a host that may be killed. Four
    slots of one host are enough for the chains of these tests, eight for those of drawn clusters.
    """
    folder = tmp_path_factory.mktemp("hosts")
    with three_hosts(folder, cores=SLOTS, workers=NAMES[1:]) as hosts:
        yield hosts


@pytest.fixture
def hosts(running: Hosts) -> Iterator[Hosts]:
    """Return hosts without a fault, and mend them after the test."""
    yield running
    running.recover()
