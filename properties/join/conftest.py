"""The system whose promises are checked, and chains that are killed in the background."""

from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

import pytest

from model.join import make_system
from model.vocabulary import System
from properties import profiles
from properties.join.subject import SUBJECT
from properties.ordeal import KILLED, Query, in_background

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def system(foreign_system: System | None) -> System:
    return foreign_system or make_system()


@pytest.fixture(scope="session", autouse=True)
def background(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, seed: int
) -> Iterator[Future[list[Query]] | None]:
    """What ``killed`` gives, if any test asks for it."""
    wanted = profiles.effort().kills // 2
    yield from in_background(SUBJECT, HERE, request, tmp_path_factory, seed, wanted)


@pytest.fixture(name=KILLED)
def killed(background: Future[list[Query]]) -> list[Query]:
    """Chains whose driver was killed, again and again."""
    return background.result()
