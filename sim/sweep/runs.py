"""The runs of an experiment and their addresses.

Rules of this file:

* The address of a run covers everything that its figures depend on, and nothing else. Experiments
  that share a run do it once.
* The address includes a digest of the sources: a stored run is valid only for the code that made
  it.
"""

import ast
import hashlib
import json
import platform
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import NamedTuple

from sim.sweep.experiment import Experiment, Label
from sim.sweep.measurable import module_of

ROOT = Path(__file__).resolve().parents[2]
"""The folder of this project's packages."""
PACKAGES = ("model", "sim")
LIBRARIES = ("numpy", "scipy", "simpy")
"""Third-party packages that figures depend on."""
FILE = "_file"
"""End of the name of a setting that names a file."""


class SweepRun(NamedTuple):
    """One row of the results."""

    address: str
    labels: tuple[Label, ...]
    """Levels, in the order of the factors."""
    settings: Mapping[str, str]
    seed: int


def runs_of(experiment: Experiment, effort: str, seeds: Sequence[int] = ()) -> tuple[SweepRun, ...]:
    """Return every run: combinations of levels in the order of the grid, each with all seeds.

    Without ``seeds`` there are as many as the grid says, from 0 on.
    """
    grid = experiment.grids[effort]
    code = code_of(experiment)
    found = []
    for levels in product(*[factor.levels for factor in grid.factors]):
        settings = dict(grid.base)
        for level in levels:
            settings |= level.settings
        labels = tuple([level.label for level in levels])
        contents = tuple(_contents(settings))
        for seed in seeds or range(grid.seeds):
            address = _address(experiment, settings, seed, (code, *contents))
            found.append(SweepRun(address, labels, settings, seed))
    return tuple(found)


def code_of(experiment: Experiment) -> str:
    """Return the digest of the sources that the runs of an experiment depend on."""
    return digest_of_sources(module_of(experiment.room))


def _address(
    experiment: Experiment, settings: Mapping[str, str], seed: int, digests: Sequence[str]
) -> str:
    whole = [experiment.room, experiment.run, sorted(settings.items()), seed, *digests]
    return hashlib.sha256(json.dumps(whole).encode("ascii")).hexdigest()[:32]


def _contents(settings: Mapping[str, str]) -> Iterator[str]:
    """Yield the digest of each file that settings name; empty if a run will refuse the file."""
    for name, text in sorted(settings.items()):
        if name.endswith(FILE):
            try:
                yield hashlib.sha256(Path(text.strip()).read_bytes()).hexdigest()
            except (OSError, ValueError):
                yield ""


# ------------------------------------------------------------------------------------ sources


@cache
def digest_of_sources(module: str, root: Path = ROOT) -> str:
    """Return the SHA-256 of a module, all its imports from this project, and library versions."""
    major, minor, _ = platform.python_version_tuple()
    sha = hashlib.sha256(f"python {major}.{minor}\n".encode())
    for package in LIBRARIES:
        sha.update(f"{package} {version(package)}\n".encode())
    for name, path in sorted(sources(module, root).items()):
        text = path.read_bytes()
        sha.update(f"{name} {len(text)}\n".encode() + text)
    return sha.hexdigest()


def sources(module: str, root: Path = ROOT) -> dict[str, Path]:
    """Return the files of a module and of all modules that it imports, by module name.

    Indirect imports are included; modules outside this project's packages are not.
    """
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
    """Return the file of a module, or ``None`` for another project's module or no module."""
    if name.split(".")[0] not in PACKAGES:
        return None
    stem = root.joinpath(*name.split("."))
    paths = (stem / "__init__.py", stem.with_suffix(".py"))
    return next((path for path in paths if path.is_file()), None)


def _imported(name: str, path: Path) -> Iterator[str]:
    """Yield the names that a file imports (modules, or names in them) and its own package."""
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
