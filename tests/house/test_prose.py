"""Docstrings open with a noun or a verb, modules are named after what they provide, docs wrap."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.house.prose import bad_docstrings, fault_of, says_nothing
from tests.house.repository import ROOT, files, module_at, modules

CHECKED = ("model", "sim", "spark_impl", "properties", "benchmarks", "tests")
GENERATED = ("docs/conformance.md", "docs/errata.md", "docs/reproduction.md")
WIDTH = 100


def test_docstrings_open_with_a_noun_or_a_verb() -> None:
    checked = [module for module in modules() if module.path.parts[0] in CHECKED]
    findings = [finding for module in checked for finding in bad_docstrings(module)]
    assert not findings, "\n".join(findings)


def test_modules_are_named_after_what_they_provide() -> None:
    assert not [str(module.path) for module in modules() if says_nothing(module.path)]


def test_pages_wrap_at_100_columns() -> None:
    pages = [str(path.relative_to(ROOT)) for path in files() if path.suffix == ".md"]
    findings = [
        f"{page}:{line}"
        for page in pages
        if page not in GENERATED
        for line in long_lines((ROOT / page).read_text(encoding="utf-8"))
    ]
    assert not findings, "\n".join(findings)


def long_lines(page: str) -> Iterator[int]:
    """Yield the numbers of lines that are too long; tables and code need not wrap."""
    is_code = False
    for number, line in enumerate(page.splitlines(), 1):
        is_code ^= line.startswith("```")
        if len(line) > WIDTH and not is_code and not line.startswith(("|", "    ")):
            yield number


def test_a_planted_long_line_is_found() -> None:
    assert list(long_lines("a " * 60)) == [1]
    assert not list(long_lines("| " + "a " * 60 + "\n```\n" + "a " * 60 + "\n```"))


@pytest.mark.parametrize(
    "docstring",
    ["Of the workers, in turn.", "What was found.", "They are not.", "Whatever.", "As usual."],
)
def test_a_planted_fragment_is_found(docstring: str) -> None:
    assert fault_of(docstring)
    assert list(bad_docstrings(module_at(Path("sim/a.py"), f'"""{docstring}"""\n')))
    assert list(bad_docstrings(module_at(Path("sim/a.py"), f'N = 1\n"""{docstring}"""\n')))


@pytest.mark.parametrize(
    "docstring", ["Return the sum.", "``x``, by name.", "docs/a.md is current."]
)
def test_a_good_opening_is_no_finding(docstring: str) -> None:
    assert not fault_of(docstring)
