"""Invented results for tests of reports: every verdict, every kind of chart.

Each experiment has a record and a table, as a sweep stores them (docs/sweeps.md).
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

from model.vocabulary.settings import PlainData

Record = dict[str, PlainData]
Columns = dict[str, list[Any]]
Levels = Mapping[str, Sequence[int | float | str]]


def stored(
    name: str,
    factors: Levels,
    measures: Mapping[str, Callable[..., float]],
    *,
    seeds: int = 3,
    published: Mapping[str, object] | None = None,
    plot: Mapping[str, object] | None = None,
    expectations: Sequence[Record] = (),
    verdict: str | None = None,
    outcome: str = "holds",
    problems: Sequence[str] = (),
    failed: Sequence[Record] = (),
    **about: object,
) -> tuple[Record, Columns]:
    """Make up an experiment whose figures are functions of the levels and the seed."""
    room = name.split("-", maxsplit=1)[0]
    rows = [(*levels, seed) for levels in product(*factors.values()) for seed in range(seeds)]
    columns: Columns = {
        "experiment": [name] * len(rows),
        "effort": ["quick"] * len(rows),
        "run": [f"{number:040x}" for number in range(len(rows))],
        "seed": [row[-1] for row in rows],
        **{factor: [row[place] for row in rows] for place, factor in enumerate(factors)},
        **{measure: [figure(*row) for row in rows] for measure, figure in measures.items()},
    }
    experiment = {
        "name": name,
        "room": room,
        "run": "sim",
        "fan": None,
        "title": f"Title of {name}",
        "claim": "One sentence: what the source says is so.",
        "source": {"paper": "A paper about late data and slow workers", "where": "Figure 7"},
        "published": published,
        "plot": plot,
        "confidence": 0.95,
        **about,
    }
    record = {
        "experiment": experiment,
        "effort": "quick",
        "code": f"{room}3f2a91c07d5e",
        "again": f"straggler sweep {name} --quick",
        "base": {"tuples": "15000", "load": "backlog", "scale": "no"},
        "factors": {
            factor: [{"label": each, "settings": {factor: str(each)}} for each in levels]
            for factor, levels in factors.items()
        },
        "seeds": list(range(seeds)),
        "measures": list(measures),
        "rows": len(rows),
        "problems": list(problems),
        "failed": list(failed),
        "expectations": list(expectations),
        "outcome": outcome,
        "verdict": verdict,
    }
    return record, columns


def expectation(verdict: str, outcome: str = "holds", cells: int = 1) -> Record:
    """Make up an expectation that was judged."""
    return {
        "says": "TAG has at least 1.5 times the throughput of shuffle",
        "measure": "share",
        "compare": "ratio",
        "along": None,
        "verdict": verdict,
        "assumptions": "Weights are a stand-in." if "assumptions" in verdict else None,
        "outcome": outcome,
        "sentence": "the ratio of share at slower 1 is 1.34 (1.28 to 1.41)",
        "cells": [
            {
                "label": f"slower {number + 1}",
                "estimate": 1.34 + number,
                "low": 1.28 + number,
                "high": 1.41 + number,
                "outcome": outcome,
            }
            for number in range(cells)
        ],
    }


POLICIES = ("tag", "tag-literal", "cg", "pkg", "dag", "key", "shuffle")
TIERS = ("process", "node", "rack", "elsewhere")


SPEEDS = stored(
    "grouping-speeds",
    {"policy": POLICIES, "slower": (1, 2, 5, 10)},
    {"share": lambda policy, slower, seed: 1 / (1 + len(policy) * slower) + 0.01 * seed},
    published={"says": "A tenth more than DAG; the gap grows.", "values": {"share": 0.95}},
    plot={"x": "slower", "y": "share", "series": "policy", "log": ["x"]},
    expectations=[expectation("reproduced under stated assumptions", cells=3)],
    verdict="reproduced under stated assumptions",
)
LATENCY = stored(
    "join-latency",
    {"tier": TIERS, "crew": ("one", "one that broadcasts every tuple to all others")},
    {"latency_us": lambda tier, crew, seed: 1_000.0 * (40 * len(tier) + len(crew) + 7 * seed)},
    title="Latency <with> & without shedding",
    published={
        "says": "0.3 s at 2 workers, 0.9 s at 16.",
        "values": {"latency_us": {"process": 190_000, "rack": 270_000}},
    },
    plot={"x": "tier", "y": "latency_us", "series": "crew", "log": []},
    expectations=[expectation("not reproduced"), expectation("reproduced", "broken")],
    outcome="broken",
    failed=[
        {
            "settings": {"tier": "rack", "scale": "no"},
            "seed": 7,
            "error": "ValueError: 0",
            "again": "straggler sim join --seed 7 --set tier=rack --set scale=no",
        }
    ],
)
MISSED = stored(
    "slack-missed",
    {"share": (0.1, 0.2, 0.3, 0.4), "control": ("max", "pd"), "load": (0.5, 0.9)},
    {
        "missed": lambda share, _, load, seed: load * 2.0**-share + seed / 9,
        "latency_us": lambda *_: 12.5,
    },
    published={"says": "Below 0.05.", "values": None},
    plot={"x": "share", "y": "missed", "series": "control", "log": ["y"]},
    expectations=[expectation("refuted")],
    verdict="refuted",
)
ALONE = stored(
    "watermark-alone",
    {"k": (1, 2, 4)},
    {"loss": lambda k, _: 1 / k},
    seeds=1,
    plot={"x": "k", "y": "loss", "series": None, "log": None},
    expectations=[expectation("reproduced")],
    verdict="reproduced",
)
BARE = stored(
    "watermark-bare",
    {},
    {"loss": lambda _: 0.5},
    claim=None,
    source=None,
    outcome="undetermined",
    problems=["no run has the figure 'losss'"],
)
UNSURE = stored(
    "script-unsure",
    {"k": (1, 2)},
    {"loss": lambda k, seed: k * seed},
    expectations=[expectation("reproduced", "undetermined")],
    outcome="undetermined",
)
ALL = (MISSED, LATENCY, SPEEDS, ALONE, BARE, UNSURE)
