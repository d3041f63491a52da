"""Figures of a quick sweep of the catalogue, stored so that tests can falsify them.

They are those of one version of the code, to five digits: what is tested is not whether they are
right but whether an experiment notices when they are not. When an experiment has another grid or
another measure: ``straggler sweep``, and then ``python -m tests.sim.quick_figures sweeps``.
"""

import json
import sys
from itertools import product
from pathlib import Path

from sim.sweep.experiment import Experiment
from sim.sweep.reading import catalogue, find
from sim.sweep.results import Columns
from straggler.sweeps.files import read_table

EFFORT = "quick"
FILE = Path(__file__).with_name("quick_figures.json")


def judged(experiment: Experiment) -> list[str]:
    """Return the measures that have expectations in a quick sweep."""
    asked = [each.measure for each in experiment.expectations if each.only in ("", EFFORT)]
    return sorted(set(asked))


def seeds(experiment: Experiment) -> tuple[int, ...]:
    """Return the seeds of a quick sweep."""
    return tuple(range(experiment.grids[EFFORT].seeds))


def tables() -> dict[str, Columns]:
    """Return tables of results by experiment: seeds, factors, and measures with expectations.

    The ``AssertionError`` for a changed experiment says what to do.
    """
    stored = json.loads(FILE.read_text(encoding="utf-8"))
    assert sorted(stored) == list(catalogue()), __doc__
    return {name: _table(find(name), stored[name]) for name in stored}


def _table(experiment: Experiment, stored: Columns) -> Columns:
    grid = experiment.grids[EFFORT]
    levels = [factor.labels for factor in grid.factors]
    rows = list(product(*levels, seeds(experiment)))
    names = [*[factor.name for factor in grid.factors], "seed"]
    found: Columns = {name: [row[place] for row in rows] for place, name in enumerate(names)}
    for name in judged(experiment):
        assert len(stored.get(name, ())) == len(rows), f"{experiment.name}, {name}: {__doc__}"
        found[name] = stored[name]
    return found


def _shortened(value: object) -> object:
    return float(f"{value:.5g}") if isinstance(value, float) else value


def main(folder: Path) -> None:
    """Keep what was swept into a folder."""
    lines = []
    for experiment in map(find, catalogue()):
        table = read_table(folder / f"{experiment.name}-{EFFORT}.parquet")
        kept = {name: [_shortened(each) for each in table[name]] for name in judged(experiment)}
        lines.append(f"{json.dumps(experiment.name)}: {json.dumps(kept, separators=(',', ':'))}")
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
