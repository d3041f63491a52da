"""House habits that no linter checks: sizes, names, docstrings, nothing of one machine."""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

from tests.house.repository import ROOT, Module, files, modules, tree_of

MODULE_LINES_MAX = 400
FUNCTION_LINES_MAX = 60
MACHINE_PATH = re.compile(r"(?<![\w.>}])/(?:home|root|Users|work|tmp|opt|mnt)/\w|[A-Z]:\\\w")
ADDRESS = re.compile(r"\w+://")


def long_functions(module: Module) -> Iterator[str]:
    """Yield the functions that do not fit a screen, with their decorators, without docstrings.

    A docstring grows with the arguments, which a page of the API shows.
    """
    for node in ast.walk(tree_of(module)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            told = len((ast.get_docstring(node, clean=False) or "").splitlines())
            lines = (node.end_lineno or first) - first + 1 - told
            if lines > FUNCTION_LINES_MAX:
                yield f"{module.path}:{first} {node.name} has {lines} lines"


def texts() -> Iterator[tuple[Path, str]]:
    """Yield the project's text files, with their paths from the root."""
    for path in files():
        try:
            yield path.relative_to(ROOT), path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue


def test_a_module_is_read_at_one_sitting() -> None:
    lengths = {module.path: len(module.source.splitlines()) for module in modules()}
    too_long = {str(path): n for path, n in lengths.items() if n > MODULE_LINES_MAX}
    assert not too_long


def test_a_function_fits_a_screen() -> None:
    findings = [finding for module in modules() for finding in long_functions(module)]
    assert not findings, "\n".join(findings)


def test_a_folder_of_modules_is_a_package() -> None:
    """Workers import packages from an archive, in which a folder that is no package is useless."""
    packages = {module.path.parent for module in modules() if module.is_package}
    folders = {module.path.parent for module in modules()}
    assert not sorted(map(str, folders - packages))


def test_no_file_names_a_path_of_one_machine() -> None:
    findings = [
        f"{path}:{number} {line.strip()}"
        for path, text in texts()
        for number, line in enumerate(text.splitlines(), 1)
        if MACHINE_PATH.search(line)
    ]
    assert not findings, "\n".join(findings)


def test_set_up_names_no_package_index() -> None:
    ours = (".ci/preflight", ".ci/run")
    for name in ("pyproject.toml", "constraints.txt", "Makefile", *ours):
        assert not ADDRESS.search((ROOT / name).read_text(encoding="utf-8")), name
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines():
        assert line.startswith("#") or re.fullmatch(r"[\w.-]+==[\w.]+", line), line


def test_no_recording_is_committed() -> None:
    assert not [path for path in files() if path.suffix in {".parquet", ".arrow", ".orc"}]


# -------------------------------------------------------------------------------------------- prose


Documented: TypeAlias = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef

FRAGMENTS = frozenset(
    """
    Above As Because Behind Beside By Does Done For From How If Is Its It Of On Otherwise So Such
    That Their Theirs Them These They This Those Till Until What Whatever When Where Which
    Whichever While Who Whoever Whom Whose Why With Within Without
    """.split()  # noqa: SIM905 (a list of strings would take a page)
)
"""Words that make a summary a fragment, or point at something that a tooltip does not show."""


def docstrings(module: Module) -> Iterator[tuple[int, str]]:
    """Yield the docstrings of a module, its classes, functions and attributes, with their lines."""
    for node in ast.walk(tree_of(module)):
        body = getattr(node, "body", None)
        if not isinstance(body, list):
            continue
        for position, statement in enumerate(body):
            if _is_text(statement) and (
                (position == 0 and isinstance(node, Documented))
                or (position and isinstance(body[position - 1], ast.Assign | ast.AnnAssign))
            ):
                yield statement.lineno, statement.value.value


def _is_text(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def bad_docstrings(module: Module) -> Iterator[str]:
    """Yield the docstrings of a module that open badly; ruff checks that functions have verbs."""
    for line, docstring in docstrings(module):
        summary = docstring.strip().partition("\n")[0]
        word = re.split(r"[^\w']", summary, maxsplit=1)[0]
        is_file = "/" in summary.partition(" ")[0]  # which may come first
        if word in FRAGMENTS or (word[:1].islower() and not is_file):
            yield f"{module.path}:{line} starts with {word!r}: {summary}"


CHECKED = ("model", "sim", "spark_impl", "straggler", "properties", "benchmarks", "tests")


def test_docstrings_open_with_a_noun_or_a_verb() -> None:
    checked = [module for module in modules() if module.path.parts[0] in CHECKED]
    findings = [finding for module in checked for finding in bad_docstrings(module)]
    assert not findings, "\n".join(findings)


def test_the_version_of_the_citation_is_that_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {project['version']}\n" in citation
