"""What experiments with room ``script`` can run."""

from collections.abc import Mapping, Sequence

from model.script.graph import compile_graph
from model.script.rules import RULES
from model.vocabulary.settings import look_up
from sim.script import by_hand
from sim.script.placements import PLACEMENTS, predicted
from sim.script.settings import SETTINGS, config_of, from_settings, prepare
from sim.sweep.measurable import Figures, Measurable, Settings

PLACEMENT = "placement"


def timed(settings: Settings, seed: int) -> Figures:
    """The summary of one timed run."""
    return from_settings(settings, seed).summary


def timed_placements(settings: Settings, seed: int, ways: Sequence[str]) -> Sequence[Figures]:
    """Return the same of several placements of the same workflows."""
    asked = prepare(settings, seed)
    return [asked.run(each).summary for each in ways]


def communication(settings: Settings, seed: int) -> Figures:
    """What a placement sends by the rates of sensors; nothing is simulated."""
    return communications(settings, seed, [settings.get(PLACEMENT, SETTINGS[PLACEMENT].default)])[0]


def communications(settings: Settings, seed: int, ways: Sequence[str]) -> Sequence[Figures]:
    """The same of several placements of the same workflows."""
    config = config_of(settings, seed)
    graph = compile_graph(config)
    placed = [look_up(PLACEMENT, way, PLACEMENTS)(graph, config, RULES) for way in ways]
    return [predicted(each, config) for each in placed]


def lines(settings: Settings, seed: int) -> Figures:
    """How long scripts are, and the same written by hand; see :mod:`sim.script.by_hand`."""
    return by_hand.figures(config_of(settings, seed).workflows)


MEASURABLES: Mapping[str, Measurable] = {
    "sim": Measurable(SETTINGS, timed, {PLACEMENT: timed_placements}),
    "lines": Measurable(SETTINGS, lines),
    "communication": Measurable(SETTINGS, communication, {PLACEMENT: communications}),
}
"""By name."""
