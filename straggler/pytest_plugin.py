"""The plugin of pytest that the package brings: the system on trial as an option and a fixture.

Every test run of an environment loads this module, so that it imports nothing else of ours.
"""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--straggler-system``."""
    parser.getgroup("straggler").addoption(
        "--straggler-system",
        metavar="SYSTEM",
        help="system for the fixture straggler_system: MODULE:FACTORY or exec:COMMAND",
    )


@pytest.fixture(scope="session")
def straggler_system(pytestconfig: pytest.Config) -> str:
    """Return the name of the system that ``--straggler-system`` gives; fail without the option.

    A skipped test would let a CI pass that has forgotten the option.
    """
    name = pytestconfig.getoption("--straggler-system")
    if name is None:
        sentence = "no system was named; give --straggler-system MODULE:FACTORY or exec:COMMAND"
        pytest.fail(sentence, pytrace=False)
    return str(name)
