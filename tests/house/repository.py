"""Files and modules of the repository, for tests that look at all of them."""

import ast
import subprocess
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
CODE = ("model", "sim", "spark_impl", "properties", "straggler", "tests", "benchmarks")


class Module(NamedTuple):
    """One Python file of the project."""

    name: str
    """Dotted name; a package is named by its folder."""
    is_package: bool
    path: Path
    source: str


@cache
def files() -> tuple[Path, ...]:
    """Return every file that is committed, or would be by ``git add --all``."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listing.returncode != 0:
        pytest.skip("not a git checkout: nobody can tell which files belong to the project")
    paths = (ROOT / name for name in listing.stdout.split("\0") if name)
    return tuple(sorted(path for path in paths if path.is_file()))


@cache
def room_names() -> frozenset[str]:
    """Return the names of all rooms: packages of ``straggler.rooms`` with a module ``room``."""
    paths = (path.relative_to(ROOT).parts for path in files())
    return frozenset(
        parts[2]
        for parts in paths
        if len(parts) == 4 and (*parts[:2], parts[3]) == ("straggler", "rooms", "room.py")
    )


@cache
def modules() -> tuple[Module, ...]:
    """Return every Python module in the folders of code."""
    return tuple(
        module_at(path.relative_to(ROOT), path.read_text(encoding="utf-8"))
        for path in files()
        if path.suffix == ".py" and path.relative_to(ROOT).parts[0] in CODE
    )


def module_at(path: Path, source: str) -> Module:
    """Return the module whose file is ``path``, relative to the root of the repository."""
    parts = path.with_suffix("").parts
    is_package = parts[-1] == "__init__"
    name = ".".join(parts[:-1] if is_package else parts)
    return Module(name, is_package, path, source)


@cache
def tree_of(module: Module) -> ast.Module:
    """Return the syntax tree of a module, parsed once for all rules."""
    return ast.parse(module.source)


@cache
def imports(module: Module) -> frozenset[str]:
    """Return the absolute dotted names that a module imports, anywhere in the file.

    ``from a import b`` counts as ``a.b``: whether ``b`` is a module or a name in one makes no
    difference to who knows whom.
    """
    found: set[str] = set()
    for node in ast.walk(tree_of(module)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            origin = origin_of(module, node)
            found.update(f"{origin}.{alias.name}" for alias in node.names)
    return frozenset(found)


def origin_of(module: Module, node: ast.ImportFrom) -> str:
    """Return the absolute name of the origin of a ``from ... import``."""
    if node.level == 0:
        return node.module or ""
    parts = module.name.split(".")
    up = node.level - (1 if module.is_package else 0)
    parents = parts[: len(parts) - up]
    return ".".join([*parents, *([node.module] if node.module else [])])


def within(name: str, package: str) -> bool:
    """Return whether a dotted name is the package or something in it."""
    return name == package or name.startswith(package + ".")
