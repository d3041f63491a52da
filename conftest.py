"""Options of all tests in a checkout, and which of them run, and where."""

import pytest

pytest_plugins = ("properties.fixtures",)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--cluster``."""
    parser.addoption(
        "--cluster",
        action="store_true",
        help="run tests on several hosts, which need root, as well",
    )


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Return a scheduler for ``--dist loadscope`` that lets Spark wait while other tests run."""
    if config.getoption("dist") != "loadscope":
        return None
    from tests.harness.xdist_scheduler import SparkAside

    return SparkAside(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out marked tests."""
    for name in ("long", "cluster"):
        if not config.getoption(f"--{name}"):
            marked = [item for item in items if item.get_closest_marker(name)]
            config.hook.pytest_deselected(items=marked)
            items[:] = [item for item in items if not item.get_closest_marker(name)]
