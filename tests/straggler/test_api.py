"""The page docs/api.md: its examples print what they say, and nothing public is missing."""

import doctest
import re
from collections.abc import Mapping
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import Any

import griffe
import pytest

import straggler
from benchmarks import api

LONG = "Judging a job"  # other tests judge the same job


@pytest.mark.parametrize(
    "group",
    [
        pytest.param(each, id=next(iter(each)), marks=[pytest.mark.long] * (LONG in each))
        for each in api.GROUPS
    ],
)
def test_examples_print_what_they_show(
    group: Mapping[str, str], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    parts = [api.names_of(part) for part in group.values()]
    texts = {
        name: attrgetter(name)(import_module(home)).__doc__
        for part in parts
        for home, calls in part
        for names in calls
        for name in names
    }
    known: dict[str, Any] = {"folder": str(tmp_path)}
    known |= {name: getattr(straggler, name) for name in straggler.__all__}
    if any("spark" in text for text in texts.values()):
        known["spark"] = request.getfixturevalue("spark")
    printed: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for name, text in texts.items():
        test = doctest.DocTestParser().get_doctest(text, known, name, None, None)
        runner.run(test, out=printed.append, clear_globs=False)
        known = test.globs
    assert not runner.failures, "".join(printed)


def test_every_public_name_is_on_the_page() -> None:
    page = api.page()
    shown = set(re.findall(r"\w+", "".join(re.findall(r"^(?:#+ |\| `)[^|\n]+", page, re.M))))
    names = {
        name for name in straggler.__all__ if not isinstance(getattr(straggler, name), ModuleType)
    }
    assert not names - shown


@pytest.mark.parametrize(
    ("docstring", "problem"),
    [
        ("Add.\n\nExamples:\n    >>> add(1)\n", "does not explain its argument 'a'"),
        ("Add.\n\nArgs:\n    a: one.\n    b: two.\n", "'b', which is no argument"),
        ("Add.\n\nArgs:\n    a: one.\n", "has no example"),
    ],
    ids=["no explanation", "no argument", "no example"],
)
def test_the_maker_refuses_what_nobody_explains(docstring: str, problem: str) -> None:
    source = f'def add(a):\n    """{docstring}"""\n'
    module = griffe.visit("tests.straggler.test_api", Path(__file__), source)
    with pytest.raises(ValueError, match=problem):
        list(api.describe([module["add"]]))


def add(a: int) -> int:
    """Stand for a function of the page."""
    return a
