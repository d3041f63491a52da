"""The model of a test's room, as a fixture."""

from importlib import import_module

import pytest

from model.vocabulary import System


@pytest.fixture(scope="module")
def system(request: pytest.FixtureRequest) -> System:
    """Return the model of the test's room.

    The model of ``join`` is its chain, because the oracle records no steps of the protocol.
    """
    model: System = import_module(f"model.{request.path.parent.name}").make_system()
    return model
