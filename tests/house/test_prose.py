"""Docstrings open with a noun or a verb, modules are named after what they provide, docs wrap."""

from pathlib import Path

import pytest

from tests.house.prose import bad_docstrings, fault_of, says_nothing
from tests.house.repository import ROOT, files, module_at, modules

CHECKED = ("model", "sim", "spark_impl", "properties", "benchmarks")
UNFINISHED: tuple[str, ...] = ()
"""Folders whose docstrings are still to be rewritten; none may be added."""
WIDTH = 100


def test_docstrings_open_with_a_noun_or_a_verb() -> None:
    checked = [
        module
        for module in modules()
        if module.path.parts[0] in CHECKED
        and not any(module.path.is_relative_to(folder) for folder in UNFINISHED)
    ]
    findings = [finding for module in checked for finding in bad_docstrings(module)]
    assert not findings, "\n".join(findings)


def test_modules_are_named_after_what_they_provide() -> None:
    assert not [str(module.path) for module in modules() if says_nothing(module.path)]


def test_pages_wrap_at_100_columns() -> None:
    findings = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in files()
        if path.suffix == ".md"
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if len(line) > WIDTH and not line.startswith(("|", "    ", "- In the scope", "- On the"))
    ]
    assert not findings, "\n".join(findings)


@pytest.mark.parametrize(
    "docstring",
    ["Of the workers, in turn.", "What was found.", "They are not.", "whatever.", "As usual."],
)
def test_a_planted_fragment_is_found(docstring: str) -> None:
    assert fault_of(docstring)
    assert list(bad_docstrings(module_at(Path("sim/a.py"), f'"""{docstring}"""\n')))
    assert list(bad_docstrings(module_at(Path("sim/a.py"), f'N = 1\n"""{docstring}"""\n')))


@pytest.mark.parametrize(
    "docstring", ["Return the sum.", "``x``, by name.", "docs/a.md is current."]
)
def test_a_good_opening_is_not(docstring: str) -> None:
    assert not fault_of(docstring)
