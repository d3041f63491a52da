"""The system whose promises are checked, and queries that are killed in the background."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event

import pytest

from model.vocabulary import System
from properties import profiles
from properties.killing import needs_proc
from properties.rooms import room
from properties.slack.ordeal import Query, ordeal

KILLED = "killed"


@pytest.fixture(scope="session")
def system(foreign_system: System | None) -> System:
    return foreign_system or room("slack").reference()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Ask for the killed queries when everything else is done: by then they are at their end."""
    items.sort(key=_waits)


def _waits(item: pytest.Item) -> bool:
    return isinstance(item, pytest.Function) and KILLED in item.fixturenames


@pytest.fixture(scope="session", autouse=True)
def background(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, seed: int
) -> Iterator[Future[list[Query]] | None]:
    """What ``killed`` gives, if any test asks for it: begun with the first test of this room."""
    if needs_proc.args[0] or not any(map(_waits, request.session.items)):
        yield None
        return
    stop = Event()
    with ThreadPoolExecutor(1) as pool:
        folder = tmp_path_factory.mktemp(KILLED)
        yield pool.submit(ordeal, folder, seed, profiles.effort().kills, stop)
        stop.set()


@pytest.fixture(name=KILLED)
def killed(background: Future[list[Query]]) -> list[Query]:
    """Queries whose driver was killed, again and again."""
    return background.result()
