"""The runs of an experiment, and the jobs by which they are done.

Rules of this file:

* The address of a run says everything that its figures depend on, and nothing else. Experiments
  that have a run in common do it once.
* A job is what one process does at a time: a run, or runs that share their arrivals.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import NamedTuple

from sim.sweep.experiment import Experiment, Label
from sim.sweep.measurable import module_of
from sim.sweep.sources import digest_of_sources


class SweepRun(NamedTuple):
    """One row of the results."""

    address: str
    labels: tuple[Label, ...]
    """Levels, in the order of the factors."""
    settings: Mapping[str, str]
    seed: int


class Job(NamedTuple):
    """What one process does at a time."""

    experiment: str
    """The first one that asks for it."""
    room: str
    run: str
    settings: Mapping[str, str]
    """What its runs have in common."""
    seed: int
    fan: str
    """The setting in which its runs differ; empty if it is one run."""
    values: tuple[str, ...]
    """Of that setting."""
    addresses: tuple[str, ...]
    """Of its runs."""


def runs_of(experiment: Experiment, effort: str, first_seed: int) -> tuple[SweepRun, ...]:
    """All of them: combinations in the order of the grid, and the seeds of each."""
    grid = experiment.grids[effort]
    code = code_of(experiment)
    found = []
    for levels in product(*[factor.levels for factor in grid.factors]):
        settings = dict(grid.base)
        for level in levels:
            settings |= level.settings
        labels = tuple([level.label for level in levels])
        for seed in range(first_seed, first_seed + grid.seeds):
            address = _address(experiment, settings, seed, code)
            found.append(SweepRun(address, labels, settings, seed))
    return tuple(found)


def code_of(experiment: Experiment) -> str:
    """Digest of the sources that its runs depend on."""
    return digest_of_sources(module_of(experiment.room))


def _address(experiment: Experiment, settings: Mapping[str, str], seed: int, code: str) -> str:
    whole = [experiment.room, experiment.run, sorted(settings.items()), seed, code]
    return hashlib.sha256(json.dumps(whole).encode("ascii")).hexdigest()[:32]


def jobs_of(experiment: Experiment, runs: Iterable[SweepRun]) -> Iterator[Job]:
    """Jobs for runs; those that come twice are done once."""
    wanted = {run.address: run for run in runs}
    fan = experiment.fan
    groups: dict[tuple[object, ...], list[SweepRun]] = {}
    for run in wanted.values():
        common = tuple(sorted(item for item in run.settings.items() if item[0] != fan))
        # Without a factor to fan out over, every run is a group by itself.
        key = (common, run.seed) if fan else (run.address,)
        groups.setdefault(key, []).append(run)
    for group in groups.values():
        settings = dict(group[0].settings)
        settings.pop(fan, None)
        yield Job(
            experiment.name,
            experiment.room,
            experiment.run,
            settings,
            group[0].seed,
            fan,
            tuple([run.settings[fan] for run in group]) if fan else (),
            tuple([run.address for run in group]),
        )
