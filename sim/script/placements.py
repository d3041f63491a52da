"""Placements of computations: that of docs/script.md, section 8, and others to compare."""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from model.vocabulary import ScriptConfig
from model.vocabulary.script.graph import Graph, compile_graph
from model.vocabulary.script.placement import (
    ALL_SPLIT,
    LARGE_SPLIT,
    Placement,
    hash_baseline,
    load_cap,
    place,
    place_by_sensor,
    place_hashed,
    place_split,
    place_whole,
)
from model.vocabulary.script.plan import ScriptPlan, compile_plan
from model.vocabulary.settings import look_up

PlacementRule: TypeAlias = Callable[[Graph, ScriptConfig], Placement]


def _split(way: str) -> PlacementRule:
    def split(graph: Graph, config: ScriptConfig) -> Placement:
        cap = load_cap(graph, config.workers, config.cap_percent)
        return place_split(graph, config.workers, cap, way)

    return split


PLAN, BASELINE = "plan", "by-sensor"

PLACEMENTS: Mapping[str, PlacementRule] = {
    PLAN: lambda graph, config: place(graph, config.workers, config.cap_percent),
    "whole": lambda graph, config: place_whole(graph, config.workers, is_charged=True),
    "large-split": _split(LARGE_SPLIT),
    "all-split": _split(ALL_SPLIT),
    "by-unit": lambda graph, config: place_hashed(graph, config.workers),
    BASELINE: lambda graph, config: place_by_sensor(graph, config.workers),
    "literal": lambda graph, config: place_whole(graph, config.workers, is_charged=False),
}
"""Rules of placement. ``plan`` chooses one of the next four rules; ``by-sensor`` is the baseline.
``literal`` is LPT as published, where a worker's load does not grow when it gets a component."""


def find_placement(way: str) -> PlacementRule:
    """Return the rule called ``way``; raise ``ValueError`` with a suggestion if unknown."""
    return look_up("placement", way, PLACEMENTS)


def compile_placed(config: ScriptConfig, way: str) -> ScriptPlan:
    """Compile the scripts of a query; ``way`` is the name of a placement."""
    return compile_plan(config, find_placement(way)(compile_graph(config), config))


def predict_load(placed: Placement, config: ScriptConfig) -> dict[str, float | int | str]:
    """Return tuples and results per hour, predicted by the rates, and how even the load is."""
    graph = placed.graph
    even = load_cap(graph, config.workers, 100)
    _, baseline = hash_baseline(graph, config.workers)
    loads, communication = placed.loads, placed.communication
    return {
        "way": placed.way,
        "workflows": len(config.workflows),
        "workers": config.workers,
        "written": graph.written,
        "computed": len(graph.computed),
        "sensors": len(config.sensors),
        "predicted_per_hour": float(communication),
        "predicted_tuples_per_hour": float(sum(loads)),
        **({"largest_over_even": float(max(loads) / even)} if even else {}),
        **({"sent_over_baseline": float(communication / baseline)} if baseline else {}),
    }
