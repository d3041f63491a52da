"""The system whose promises are checked."""

import pytest

from model.vocabulary import System
from model.watermark import make_system


@pytest.fixture(scope="session")
def system(foreign_system: System | None) -> System:
    return foreign_system or make_system()
