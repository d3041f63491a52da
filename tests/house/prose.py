"""Opening words of docstrings: the cheap part of the rules for prose.

A summary line starts with a capital letter, a figure or code, and with a word that does not need
the sentence before it. The summary of a function starts with a verb, which ruff's D401 checks.
"""

import ast
import re
from collections.abc import Iterator
from typing import TypeAlias

from tests.house.repository import Module, tree_of

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


def fault_of(docstring: str) -> str:
    """Return what is wrong with the opening of a docstring, or nothing."""
    text = docstring.strip()
    if not text:
        return ""
    word = re.split(r"[^\w']", text, maxsplit=1)[0]
    if word[:1].islower() and "/" not in text.split()[0]:  # a file name may come first
        return "starts with a small letter"
    if word == "Whether" and " or not" in text:
        return "says 'Whether ... or not'"
    if word in FRAGMENTS:
        return f"starts with {word!r}"
    return ""


def bad_docstrings(module: Module) -> Iterator[str]:
    """Yield the docstrings of a module that open badly."""
    for line, docstring in docstrings(module):
        if fault := fault_of(docstring):
            summary = docstring.strip().splitlines()[0]
            yield f"{module.path}:{line} {fault}: {summary}"
