"""Examples of public docstrings, which docs/api.md shows, print what they say."""

import doctest
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest

from benchmarks.api import PARTS

NAMES = [
    (home, name)
    for home, _, listed in (names.partition(": ") for names in PARTS.values())
    for name in listed.split()
    if ">>>" in attrgetter(name)(import_module(home)).__doc__
]
LONG = "judge_job"  # another test judges the same job


@pytest.mark.parametrize(
    ("home", "name"),
    [pytest.param(*each, marks=[pytest.mark.long] * (each[1] == LONG)) for each in NAMES],
)
def test_the_example_prints_what_it_shows(
    home: str, name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    module = import_module(home)
    text = attrgetter(name)(module).__doc__
    known: dict[str, Any] = {**vars(module), "folder": str(tmp_path)}
    if "spark" in text:
        known["spark"] = request.getfixturevalue("spark")
    printed: list[str] = []
    test = doctest.DocTestParser().get_doctest(text, known, name, None, None)
    done = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=printed.append)
    assert done.attempted
    assert not done.failed, "".join(printed)
