"""Tables and figures of docs/slack-guide.md: ``python -m benchmarks.guide [TABLE ...] [figures]``.

Tables are Markdown, identical in every run; without a name, all of them are printed.

* required: tuples that a first answer must contain, in percent. A window of N tuples has the values
  1, 2, ..., N; (eps, delta) and the control are the defaults. For ``normal`` the coefficient of
  variation is that of the window.
* settings: one setting after the other is changed on the flights of the figures. Wrong
  answers are counted after the warm-up, everything else over the whole run.
* figures, in docs/figures: the controls ``conformal``, the published law and the longest wait, on
  the same arrivals.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure

from model.slack.requirement import WindowFacts, requirement_of
from model.vocabulary import SlackConfig
from model.vocabulary.windows import Result
from sim.kernel.plan import Plan, replay
from sim.kernel.source import Source
from sim.kernel.trigger import Every
from sim.report.drawing import line, panels, save
from sim.report.marks import BLACK, BLUE, GREEN, ORANGE
from sim.scenarios import umts
from sim.slack import TimedRun, simulate
from straggler.cli.render import markdown
from straggler.inputs import inputs
from tests.properties.first_answers import first_errors, warm_up

SECOND_US = 1_000_000
MINUTE_US = 60 * SECOND_US
HOUR_US = 60 * MINUTE_US
DAY_US = 24 * HOUR_US
SEED = 0

# ------------------------------------------------------------------------------ required tuples

TOTALS = (20, 100, 1_000, 10_000)
REQUIRED_QUERY = SlackConfig(1, 1, q=0.9)
REQUIRED_CASES: Mapping[str, Mapping[str, object]] = {
    "`count`": {"aggregate": "count"},
    "`sum`, `normal`": {},
    "`sum`, `rigorous`": {"method": "rigorous"},
    "`avg`, `normal`": {"aggregate": "avg"},
    "`avg`, `rigorous`": {"aggregate": "avg", "method": "rigorous"},
    "`median`": {"aggregate": "median"},
    "`quantile`, q = 0.9": {"aggregate": "quantile"},
}
REQUIRED_HEADER = {"what": "", "N = 20": ".1f", "100": ".1f", "1,000": ".1f", "10,000": ".1f"}
"""Columns with their formats."""


def required_percent(config: SlackConfig, total: int) -> float:
    """Return the share of tuples that a first answer must contain, in percent."""
    values = [float(value) for value in range(1, total + 1)]
    # 1..N has the variance (N^2 - 1)/12 and the mean (N + 1)/2.
    cv_squared = (total - 1) / (3 * (total + 1))
    known = WindowFacts(total, cv_squared, values, has_negative=False)
    return 100 * requirement_of(config)(known) / total


def required_rows(totals: tuple[int, ...] = TOTALS) -> Iterator[tuple[str | float, ...]]:
    """Yield a row for every rule."""
    for name, changes in REQUIRED_CASES.items():
        config = replace(REQUIRED_QUERY, **changes)  # type: ignore[arg-type]  # the fields are given by name
        yield (name, *(required_percent(config, total) for total in totals))


# ---------------------------------------------------------------------------------- figures

CONTROLS = ("conformal", "pd", "max")
STYLES = ((BLUE, "-"), (ORANGE, "--"), (BLACK, ":"))
AXIS_UNITS: Mapping[str, tuple[str, float]] = {
    "s": ("seconds", 1e6),
    "min": ("minutes", 60e6),
    "h": ("hours", 3_600e6),
    "days": ("days", 86_400e6),
}
"""Name of each unit, and its size (us)."""
MESSAGES = 7_200
"""Messages of each phone: an hour of them."""
FLIGHTS_SHOWN = 85_000
"""Number of flights shown: the first quarter of the year."""


@dataclass(frozen=True, slots=True)
class Picture:
    """Content of one figure."""

    config: SlackConfig
    """Query, to which each run gives another control."""
    trigger_interval_us: int
    unit: str
    """Unit of slack and latency; see :data:`AXIS_UNITS`."""
    time_unit: str


PICTURES: Mapping[str, Picture] = {
    "umts": Picture(
        SlackConfig(
            10 * SECOND_US,
            2 * SECOND_US,
            aggregate="sum",
            keyed=False,
            feedback_us=10 * SECOND_US,
            start_slack_us=0,
        ),
        SECOND_US,
        "s",
        "min",
    ),
    "flights": Picture(
        SlackConfig(
            6 * HOUR_US,
            HOUR_US,
            aggregate="count",
            keyed=False,
            feedback_us=6 * HOUR_US,
            start_slack_us=0,
        ),
        10 * MINUTE_US,
        "h",
        "days",
    ),
}


def arrivals(name: str) -> Plan:
    """Return the arrivals of the figure ``name``."""
    if name == "umts":
        plan = umts(SEED)
        sources = tuple(replace(s, events=MESSAGES) for s in plan.sources if isinstance(s, Source))
        return replace(plan, sources=sources)
    recording = inputs.load(name, SEED)
    return replay(recording.events[:FLIGHTS_SHOWN], recording.label)


def runs(name: str, picture: Picture) -> list[TimedRun]:
    """Return a timed run of every control."""
    plan = replace(arrivals(name), trigger=Every(picture.trigger_interval_us))
    return [simulate(plan, replace(picture.config, control=each), SEED) for each in CONTROLS]


def draw(name: str, path: Path) -> None:
    """Draw the figure ``name`` as SVG."""
    picture = PICTURES[name]
    save(draw_controls, (runs(name, picture), picture), path)


def draw_controls(drawn: Sequence[TimedRun], picture: Picture) -> Figure:
    """Return slack, latency, coverage and error of first answers under each control."""
    summary = drawn[0].summary
    title = f"{summary['input']}\n{summary['aggregate']}, seed {summary['seed']}"
    label = f"time since the start of the run ({picture.time_unit})"
    figure, axes_below = panels(4, (8.0, 8.0), title, label)
    long, size_us = AXIS_UNITS[picture.unit]
    _, time_us = AXIS_UNITS[picture.time_unit]
    shown = (
        ("Slack K", long, "slack_us", size_us),
        ("From the end of a window to its first answer", long, "window_latency_us", size_us),
        ("Tuples that first answers contained", "% of the window's tuples", "coverage", 0.01),
        ("Error, mean over all windows answered so far", "relative error (%)", "first_error", 0.01),
    )
    for axes, (heading, label, column, scale) in zip(axes_below, shown, strict=True):
        axes.set_title(heading)
        axes.set_ylabel(label)
        for run, (colour, style) in zip(drawn, STYLES, strict=True):
            control = str(run.summary["control"])
            line(axes, run.series, column, scale, control, colour, style, time_us)
    required, corrected = axes_below[2:]
    series = drawn[0].series
    line(required, series, "required_coverage", 0.01, "required", GREEN, "-.", time_us)
    label = f"{summary['control']},\ncorrected"
    line(corrected, series, "current_error", 0.01, label, GREEN, "-.", time_us)
    for axes in axes_below:
        axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    for axes in (axes_below[0], axes_below[1], axes_below[3]):
        axes.set_ylim(bottom=0)
    return figure


# --------------------------------------------------------------------- settings, on the flights

FLIGHTS = PICTURES["flights"].config

SETTINGS: Mapping[str, dict[str, object]] = {
    "W = 6 h, s = 1 h, count, the rest by default": {},
    "eps = 0.02": {"eps": 0.02},
    "eps = 0.1": {"eps": 0.1},
    "delta = 0.2": {"delta": 0.2},
    "learning_rate = 0.2": {"learning_rate": 0.2},
    "W = 24 h": {"size_us": DAY_US, "feedback_us": None},
    "s = 2 h": {"slide_us": 2 * HOUR_US},
    "L = 0": {"feedback_us": 0},
    "L = 24 h": {"feedback_us": DAY_US},
    "Gamma = 24 h, max_age = 48 h": {"gamma_us": DAY_US, "max_age_us": 2 * DAY_US},
    "max_slack = 3 h": {"max_slack_us": 3 * HOUR_US},
    "control = max": {"control": "max"},
    "control = pd": {"control": "pd"},
}


class FlightsRow(NamedTuple):
    """One query on the flights; means are over windows after the warm-up."""

    setting: str
    slack_h: float
    """Mean K when a window closed (h)."""
    latency_h: float
    """Mean time from the end of a window to its first answer (h)."""
    wrong: float
    """Share of first answers with an error of eps or more."""
    buffered: float
    """Mean number of tuples in open windows, over the whole run."""
    rows_read: int
    """Rows of history that corrections read, over the whole run."""


def flights_row(setting: str, config: SlackConfig, plan: Plan) -> FlightsRow:
    """Run a query on the flights."""
    trigger = Every(PICTURES["flights"].trigger_interval_us)
    run = simulate(replace(plan, trigger=trigger), config, SEED)
    skipped, flush = warm_up(config), len(tuple(run.workload.batches()))
    errors = first_errors(run.workload, run.trace)[skipped:]
    closed = sorted(
        (step for step in run.trace.of(Result) if step.batch < flush), key=lambda s: s.start_us
    )[skipped:]
    ends_us = [run.workload.arrivals[cut - 1].arrival_us for cut in run.workload.cuts]
    ends_us.append(run.workload.arrivals[-1].arrival_us)
    waited_us = [ends_us[step.batch] - step.start_us - config.size_us for step in closed]
    return FlightsRow(
        setting,
        float(np.mean([step.slack_us for step in closed])) / HOUR_US,
        float(np.mean(waited_us)) / HOUR_US,
        float((errors >= config.eps).mean()),
        float(run.summary["mean_buffered"]),
        int(run.summary["history_rows_read"]),
    )


def flights_rows(cases: Mapping[str, dict[str, object]]) -> Iterator[FlightsRow]:
    """Yield a row for every case of a table."""
    plan = arrivals("flights")
    for setting, changes in cases.items():
        yield flights_row(setting, replace(FLIGHTS, **changes), plan)  # type: ignore[arg-type]  # the fields are given by name


FLIGHTS_HEADER = {
    "setting": "",
    "K (h)": ".2f",
    "latency (h)": ".2f",
    "wrong": ".3f",
    "buffered": ".0f",
    "rows read": ",d",
}
"""Columns with their formats."""


TABLES: Mapping[str, tuple[Mapping[str, str], Callable[[], Iterable[Sequence[object]]]]] = {
    "required": (REQUIRED_HEADER, required_rows),
    "settings": (FLIGHTS_HEADER, partial(flights_rows, SETTINGS)),
}
"""Formats of the columns by heading, and the rows, by the name of a table."""

if __name__ == "__main__":
    for asked in sys.argv[1:] or TABLES:
        if asked == "figures":
            for shown in PICTURES:
                draw(shown, Path("docs", "figures", f"slack-{shown}.svg"))
        elif asked in TABLES:
            header, rows = TABLES[asked]
            sys.stdout.write(f"{markdown(header, list(rows()))}\n\n")
        else:
            sys.exit(f"There is no table {asked!r}: choose from {', '.join(TABLES)}, figures.")
