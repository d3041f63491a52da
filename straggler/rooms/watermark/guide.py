"""Tables and figure of a guide: ``python -m straggler.rooms.watermark.guide [TABLE]``.

The guide is docs/watermark-guide.md. Tables compare rules of waiting (Markdown, the same every
time); ``--figures docs/figures`` draws the figure. The published experiments have the same four
sweeps; streams here are simulated.

Rules of this file:

* Common random numbers: every rule meets the same arrivals.
* E is always shown with the coverage and the wait that it costs.
* In the figure every reading meets the end of a calm, a storm, and the calm after it.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from model.vocabulary import Event, SlackConfig, WatermarkConfig, Workload
from model.vocabulary.watermark import READINGS, Clock
from model.watermark import run
from sim.kernel.log import simulate_arrivals
from sim.report.drawing import BLACK, BLUE, ORANGE, panels, save
from sim.windows.scenarios import phases
from straggler.pages import tables
from straggler.pages.tables import Table, columns
from straggler.rooms.watermark.measures import Measures, measure

SECOND_US = 1_000_000
SEED = 0
RATE_HZ, KEYS = 100, 640


@dataclass(frozen=True, slots=True)
class Setting:
    """One cell of the experiments, without the rule."""

    wait_s: int = 8
    """Longest wait M (s)."""
    disorder_s: int = 8
    """Displacement of tuples in a storm (s)."""
    tasks: int = 1
    tuples: int = 100_000
    size_s: int = 20
    k: int = 50


def watermark(reading: str) -> Callable[[Setting], WatermarkConfig]:
    """Return the queries of a reading of room ``watermark``."""

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
    """Return a query of room ``slack``: at most one count in twenty is off by 5% or more.

    The query never waits longer than M. It learns ten times as fast as by default, because the
    streams are short.
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
SWEEPS: Mapping[str, tuple[str, Sequence[tuple[str, Setting]]]] = {
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
"""Varied setting and its values, by name of the table."""


@cache
def stream(disorder_s: int, tuples: int) -> tuple[Event, ...]:
    """Return the arrivals of a stream whose storms delay tuples by up to ``disorder_s``."""
    plan = phases(SEED, disorder_s * SECOND_US, tuples, RATE_HZ, KEYS)
    return simulate_arrivals(plan, SEED).events


@cache
def measured(setting: Setting, rule: str) -> Measures:
    """Return the measures of one run."""
    return measure(RULES[rule](setting), stream(setting.disorder_s, setting.tuples))


def cell(measures: Measures) -> str:
    """Return E, coverage and mean wait as text."""
    ratio = "-" if measures.ratio is None else f"{measures.ratio:.1f}"
    return f"{ratio}, {measures.coverage:.1%}, {measures.mean_wait_us / SECOND_US:.2f} s"


def row(value: str, setting: Setting) -> tuple[str, ...]:
    """Return the row of a value: all rules, side by side."""
    return (value, *(cell(measured(setting, rule)) for rule in RULES))


def rows(name: str) -> Iterator[tuple[str, ...]]:
    """Yield the rows of a table."""
    for value, setting in SWEEPS[name][1]:
        yield row(value, setting)


RULES_HEADER = {
    "rule": "",
    "E (tuples/s)": ".1f",
    "coverage": ".1%",
    "mean wait (s)": ".2f",
    "windows that lack 5% or more": ".1%",
}


SHORT_WAITS_S = (1, 2)
"""Longest waits of fixed watermarks that wait about as long as the others (s)."""


def rule_rows(setting: Setting) -> Iterator[Sequence[object]]:
    """Yield a row for every rule, and for fixed watermarks that wait about as long."""
    for rule in RULES:
        yield rule_row(rule, measured(setting, rule))
    for wait_s in SHORT_WAITS_S:
        found = measured(replace(setting, wait_s=wait_s), "fixed")
        yield rule_row(f"fixed, M = {wait_s} s", found)


def rule_row(name: str, found: Measures) -> Sequence[object]:
    """Return the row of a rule: its costs, and what it misses."""
    wait_s = found.mean_wait_us / SECOND_US
    return name, found.ratio, found.coverage, wait_s, found.short_windows


# ---------------------------------------------------------------------------------- the figure

MAX_WAIT_US = 8 * SECOND_US
FROM_S, TO_S = 30, 80
FIGURE_RATE_HZ = 20
TITLES = {
    "disorder": "disorder: wait = M*D",
    "literal": "literal: wait = M*P, as printed",
    "scaled": "scaled: wait = M*min(1, 2D)",
    "fixed": "fixed: wait = M",
}


def arrivals() -> tuple[Sequence[Event], int]:
    """Return the tuples, and the time of the first one (us)."""
    plan = phases(SEED, MAX_WAIT_US, (TO_S + 10) * FIGURE_RATE_HZ, FIGURE_RATE_HZ)
    return simulate_arrivals(plan, SEED).events, plan.epoch_us


def clocks(reading: str, events: Sequence[Event]) -> Sequence[Clock]:
    """Return the clock of every arrival."""
    size_us = 10 * SECOND_US
    config = WatermarkConfig(size_us, size_us, MAX_WAIT_US, reading=reading)
    return run(Workload("watermark", tuple(events), config.to_json())).of(Clock)


def draw_readings() -> Figure:
    """Draw how far arrivals and watermark lie behind the time, one panel per reading."""
    events, start_us = arrivals()
    title = (
        "Arrivals and watermark: 20 tuples a second, in a storm half of them up to 8 s late\n"
        "M = 8 s, k = 50; tuples above the line are behind the watermark"
    )
    label = "time of arrival (s)"
    figure, below = panels(len(READINGS), (8.0, 9.0), title, label)
    for axes, reading in zip(below, READINGS, strict=True):
        _draw(axes, TITLES[reading], events, clocks(reading, events), start_us)
    return figure


def _draw(
    axes: Axes, title: str, events: Sequence[Event], recorded: Sequence[Clock], start_us: int
) -> None:
    came_s = np.array([event.arrival_us - start_us for event in events]) / SECOND_US
    shown = (came_s >= FROM_S) & (came_s <= TO_S)
    delay_s = np.array([e.arrival_us - e.event_time_us for e in events]) / SECOND_US
    behind_s = (
        np.array([e.arrival_us - clock.wm_us for e, clock in zip(events, recorded, strict=True)])
        / SECOND_US
    )
    # Every eighth tuple without a delay, to keep the file small.
    drawn = shown & ((delay_s > 0) | (np.arange(len(events)) % 8 == 0))
    for is_behind, colour, marker, label in (
        (False, BLUE, ".", "tuple"),
        (True, ORANGE, "x", "tuple behind\nthe watermark"),
    ):
        some = drawn & ((delay_s > behind_s) == is_behind)
        axes.plot(came_s[some], delay_s[some], marker, color=colour, markersize=3, label=label)
    axes.plot(came_s[shown][::2], behind_s[shown][::2], color=BLACK, label="watermark")
    axes.set_title(title)
    axes.set_ylabel("behind the time (s)")
    axes.set_ylim(-0.5, 9.0)
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))


TABLES: Mapping[str, Table] = {
    "rules": Table(RULES_HEADER, lambda: rule_rows(Setting())),
    **{
        name: Table(columns(heading, *RULES), partial(rows, name))
        for name, (heading, _) in SWEEPS.items()
    },
}
FIGURES = {"watermark-readings.svg": lambda path: save(draw_readings, (), path)}

if __name__ == "__main__":
    tables.run(TABLES, FIGURES, sys.argv[1:])
