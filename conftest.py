"""Options of all tests in a checkout, and which of them run, in which order."""

from collections import Counter

import pytest

pytest_plugins = ("properties.fixtures",)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--cluster``."""
    parser.addoption(
        "--cluster",
        action="store_true",
        help="run tests on several hosts, which need root, as well",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out marked tests; begin with the files that start Spark, those with most tests first.

    They take longest, and the processes of ``make test`` take files in this order, so that none of
    them is left with a long file at the end.
    """
    for name in ("long", "cluster"):
        if not config.getoption(f"--{name}"):
            marked = [item for item in items if item.get_closest_marker(name)]
            config.hook.pytest_deselected(items=marked)
            items[:] = [item for item in items if not item.get_closest_marker(name)]
    size = Counter(item.path for item in items)
    on_spark = {item.path for item in items if "spark" in getattr(item, "fixturenames", ())}
    items.sort(key=lambda item: (item.path not in on_spark, -size[item.path], item.path))
