"""Small experiments for tests, and the text of one that uses everything."""

import tomllib
from typing import Any

from model.vocabulary.settings import JsonObject, PlainData
from sim.sweep.experiment import Experiment
from sim.sweep.reading import parse

SMALL = """
name = "small"
room = "grouping"
title = "A small one"
measures = ["share = served_hz / ideal_hz", "mean_rho", "scenario_name = policy"]
seeds = 2

[base]
load = "backlog"
tuples = 400
window_tuples = 100
batch_tuples = 50
keys = 20

[factors]
policy = ["shuffle", "tag"]

[factors.slower]
1 = { speeds = [1] }
"2.5" = { speeds = [1, 0.4] }

[full]
seeds = 3

[[expect]]
says = "TAG is not a thousand times slower, however few seeds there are"
measure = "share"
compare = { policy = ["tag", "*"] }
where = { slower = 2.5 }
at_least = -1000
verdict = "reproduced"
"""


def values() -> dict[str, PlainData]:
    """Parse :data:`SMALL` as TOML."""
    return tomllib.loads(SMALL)


def small(**other: Any) -> Experiment:
    """Return the small experiment, with other values for some keys."""
    asked: JsonObject = {**values(), **other}
    return parse(asked, str(asked["name"]))
