"""The system whose promises are checked."""

import pytest

from model.script import make_system
from model.vocabulary import System


@pytest.fixture(scope="session")
def system(foreign_system: System | None) -> System:
    return foreign_system or make_system()
