"""The system whose promises are checked."""

import pytest

from model.vocabulary import System
from properties.rooms import find_room


@pytest.fixture(scope="session")
def system(foreign_system: System | None) -> System:
    return foreign_system or find_room("slack").reference()
