"""Rules of waiting side by side: ``python -m properties.watermark.comparison [TABLE ...]``.

It prints the tables of docs/watermark-guide.md (Markdown, the same every time). The published
experiments have the same four sweeps; streams here are simulated.

Rules of this file:

* Common random numbers: every rule meets the same arrivals.
* E is never shown without the coverage and the wait that it was bought with.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from model.vocabulary import Event, SlackConfig, WatermarkConfig
from properties.cli import render
from properties.cli.render import markdown
from properties.watermark.measures import Measures, measure
from sim.kernel.log import simulate_arrivals
from sim.windows.scenarios import phases

SECOND_US = 1_000_000
SEED = 0
RATE_HZ, KEYS = 100, 640


@dataclass(frozen=True, slots=True)
class Setting:
    """One cell of the experiments, but for the rule."""

    wait_s: int = 8
    """M."""
    disorder_s: int = 8
    """How far a storm displaces tuples."""
    tasks: int = 1
    tuples: int = 100_000
    size_s: int = 20
    k: int = 50


def watermark(reading: str) -> Callable[[Setting], WatermarkConfig]:
    """A reading of room ``watermark``."""

    def query(setting: Setting) -> WatermarkConfig:
        size_us = setting.size_s * SECOND_US
        return WatermarkConfig(
            size_us,
            size_us,
            setting.wait_s * SECOND_US,
            reading=reading,
            k=setting.k,
            aggregate="count",
            keyed=False,
            tasks=setting.tasks,
            dedup=False,
        )

    return query


def conformal(setting: Setting) -> SlackConfig:
    """Room ``slack`` asked for counts that are off by 5% or more one time in twenty, at most.

    It never waits longer than M, and learns ten times as fast as by default: the streams are short.
    """
    size_us = setting.size_s * SECOND_US
    return SlackConfig(
        size_us,
        size_us,
        aggregate="count",
        keyed=False,
        tasks=setting.tasks,
        max_slack_us=setting.wait_s * SECOND_US,
        learning_rate=0.5,
        dedup=False,
    )


RULES: Mapping[str, Callable[[Setting], WatermarkConfig | SlackConfig]] = {
    **{name: watermark(name) for name in ("fixed", "literal", "disorder", "scaled")},
    "conformal": conformal,
}

VALUES_S = (3, 5, 8, 10, 12)
TABLES: Mapping[str, tuple[str, Sequence[tuple[str, Setting]]]] = {
    "wait": ("M (s)", [(f"{value}", Setting(wait_s=value)) for value in VALUES_S]),
    "disorder": ("disorder (s)", [(f"{value}", Setting(disorder_s=value)) for value in VALUES_S]),
    "tasks": ("tasks", [(f"{value}", Setting(tasks=value)) for value in (1, 2, 4, 8, 16, 32)]),
    "cluster": ("k", [(f"{k:,}", Setting(k=k)) for k in (10, 50, 200, 1_000)]),
    "size": (
        "tuples",
        [
            (f"{tuples:,}", Setting(tuples=tuples))
            for tuples in (100_000, 200_000, 500_000, 1_000_000, 1_500_000)
        ],
    ),
}
"""By name: what is varied, and its values."""


@cache
def stream(disorder_s: int, tuples: int) -> tuple[Event, ...]:
    """What arrives."""
    plan = phases(SEED, disorder_s * SECOND_US, tuples, RATE_HZ, KEYS)
    return simulate_arrivals(plan, SEED).events


@cache
def measured(setting: Setting, rule: str) -> Measures:
    """One run."""
    return measure(RULES[rule](setting), stream(setting.disorder_s, setting.tuples))


def cell(measures: Measures) -> str:
    """E, coverage and mean wait."""
    ratio = "-" if measures.ratio is None else f"{measures.ratio:.1f}"
    return f"{ratio}, {measures.coverage:.1%}, {measures.mean_wait_us / SECOND_US:.2f} s"


def row(value: str, setting: Setting) -> tuple[str, ...]:
    """All rules, side by side."""
    return (value, *(cell(measured(setting, rule)) for rule in RULES))


def rows(name: str) -> Iterator[tuple[str, ...]]:
    """A table, row by row."""
    for value, setting in TABLES[name][1]:
        yield row(value, setting)


def table(name: str, found: Sequence[Sequence[str]]) -> str:
    """In Markdown."""
    return markdown({TABLES[name][0]: "", **dict.fromkeys(RULES, "")}, found)


RULES_HEADER = {
    "rule": "",
    "E (tuples/s)": ".1f",
    "coverage": ".1%",
    "mean wait (s)": ".2f",
    "windows that lack 5% or more": ".1%",
}


SHORT_WAITS_S = (1, 2)
"""Of the fixed watermarks that wait about as long as the disorder makes others wait."""


def rule_rows(setting: Setting) -> Iterator[Sequence[object]]:
    """A row for every rule, and for fixed watermarks that wait as little."""
    for rule in RULES:
        yield rule_row(rule, measured(setting, rule))
    for wait_s in SHORT_WAITS_S:
        found = measured(replace(setting, wait_s=wait_s), "fixed")
        yield rule_row(f"fixed, M = {wait_s} s", found)


def rule_row(name: str, found: Measures) -> Sequence[object]:
    """What a rule costs and misses."""
    wait_s = found.mean_wait_us / SECOND_US
    return name, found.ratio, found.coverage, wait_s, found.short_windows


def main(arguments: Sequence[str]) -> None:
    """Print tables; without a name all of them, and first the one of all rules."""
    if not arguments:
        sys.stdout.write(markdown(RULES_HEADER, list(rule_rows(Setting()))) + "\n\n")
    for name in arguments or TABLES:
        with render.progress() as progress:
            progress.add_task(f"varying {name}", total=None)
            found = list(rows(name))
        sys.stdout.write(table(name, found) + "\n\n")


if __name__ == "__main__":
    main(sys.argv[1:])
