"""Measurables of room ``script``: timed runs, and placements side by side.

Placements of a comparison meet the same arrivals and the same work on the same workers.
"""

from collections.abc import Mapping, Sequence

from model.vocabulary.script.graph import compile_graph
from sim.script import by_hand, memory
from sim.script.placements import find_placement, predict_load
from sim.script.settings import EXAMPLE, SETTINGS, config_of, from_settings, prepare
from sim.sweep.measurable import Figures, Measurable, Settings, summaries

PLACEMENT = "placement"


def measure_placements(settings: Settings, seed: int, ways: Sequence[str]) -> Sequence[Figures]:
    """Return the summaries of several placements of the same workflows."""
    asked = prepare(settings, seed)
    return [asked.run(each).summary for each in ways]


def predict(settings: Settings, seed: int) -> Figures:
    """Return the communication of a placement as the rates predict it; simulate nothing."""
    return predict_all(settings, seed, [settings.get(PLACEMENT, SETTINGS[PLACEMENT].default)])[0]


def predict_all(settings: Settings, seed: int, ways: Sequence[str]) -> Sequence[Figures]:
    """Return the predicted communication of several placements of the same workflows."""
    config = config_of(settings, seed)
    graph = compile_graph(config)
    return [predict_load(find_placement(way)(graph, config), config) for way in ways]


MEASURABLES: Mapping[str, Measurable] = {
    "sim": summaries(from_settings, SETTINGS, EXAMPLE, fans={PLACEMENT: measure_placements}),
    "lines": Measurable(by_hand.SETTINGS, by_hand.figures),
    "communication": Measurable(SETTINGS, predict, {PLACEMENT: predict_all}),
    "memory": Measurable(SETTINGS, memory.figures),
}
