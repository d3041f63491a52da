"""The runs of an experiment and their addresses.

Rules of this file:

* The address of a run covers everything that its figures depend on. Experiments that share a run do
  it once.
* The address includes a digest of the sources: a stored run is valid only for the code that made
  it.
"""

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
from sim.sweep.measurable import rooms

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
    code = digest_of_sources(experiment.room)
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
def digest_of_sources(room: str, root: Path = ROOT) -> str:
    """Return the SHA-256 of all sources but those of other rooms, and of the library versions.

    No room imports another one.
    """
    major, minor, _ = platform.python_version_tuple()
    sha = hashlib.sha256(f"python {major}.{minor}\n".encode())
    for package in LIBRARIES:
        sha.update(f"{package} {version(package)}\n".encode())
    others = set(rooms()) - {room}
    for path in sorted(path for package in PACKAGES for path in (root / package).rglob("*.py")):
        name = path.relative_to(root)
        if name.parts[1] not in others:
            text = path.read_bytes()
            sha.update(f"{name.as_posix()} {len(text)}\n".encode() + text)
    return sha.hexdigest()
