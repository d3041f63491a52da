"""Which sources a run depends on, as a digest: a stored run is good for the code that made it."""

import ast
import hashlib
import platform
from collections.abc import Iterator
from functools import cache
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
"""The folder of our packages."""
PACKAGES = ("model", "sim")
THEIRS = ("numpy", "scipy", "simpy")
"""Packages of others that figures depend on."""


@cache
def digest_of_sources(module: str, root: Path = ROOT) -> str:
    """SHA-256 over a module, everything of ours that it imports, and versions, in hexadecimal."""
    major, minor, _ = platform.python_version_tuple()
    sha = hashlib.sha256(f"python {major}.{minor}\n".encode())
    for package in THEIRS:
        sha.update(f"{package} {version(package)}\n".encode())
    for name, path in sorted(sources(module, root).items()):
        text = path.read_bytes()
        sha.update(f"{name} {len(text)}\n".encode() + text)
    return sha.hexdigest()


def sources(module: str, root: Path = ROOT) -> dict[str, Path]:
    """Files of a module and of all modules of ours that it imports, directly or not, by name."""
    found: dict[str, Path] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        path = _path(name, root)
        if path is not None and name not in found:
            found[name] = path
            waiting += _imported(name, path)
    return found


def _path(name: str, root: Path) -> Path | None:
    """The file of a module; ``None`` for what is none of ours, or no module."""
    if name.split(".")[0] not in PACKAGES:
        return None
    stem = root.joinpath(*name.split("."))
    paths = (stem / "__init__.py", stem.with_suffix(".py"))
    return next((path for path in paths if path.is_file()), None)


def _imported(name: str, path: Path) -> Iterator[str]:
    """Names that a file imports, which may be modules or in them, and the packages around it."""
    yield name.rpartition(".")[0]
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            yield from [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            around = package.split(".")[: len(package.split(".")) + 1 - node.level]
            origin = [*around] if node.level else []
            origin += [node.module] if node.module else []
            yield ".".join(origin)
            yield from [".".join([*origin, alias.name]) for alias in node.names]
