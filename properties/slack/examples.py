"""The tables of the guide: ``python -m properties.slack.examples`` (Markdown, the same every time).

One setting after the other is changed on the flights of the figures; what is wrong is counted after
the warm-up, everything else over the whole run.
"""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from model.slack.assumption import status_of
from model.vocabulary import SlackConfig, Trace
from model.vocabulary.slack import Correlation, Result
from properties.cli import render
from properties.cli.render import markdown
from properties.slack.plots import HOUR_US, PICTURES, SEED, arrivals
from properties.slack.promise import first_answers, warm_up
from sim.kernel.plan import Plan
from sim.kernel.trigger import Every
from sim.slack import simulate

FLIGHTS = PICTURES["flights"].config
DAY_US = 24 * HOUR_US

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
ASSUMPTIONS: Mapping[str, dict[str, object]] = {
    f"{aggregate}, W = {hours} h{', adversarial' * (sampling == 'adversarial')}": {
        "aggregate": aggregate,
        "size_us": hours * HOUR_US,
        "feedback_us": None,
        "sampling": sampling,
    }
    for aggregate, hours in (("sum", 6), ("sum", 24), ("avg", 24), ("median", 24))
    for sampling in ("exchangeable", "adversarial")
}


class Row(NamedTuple):
    """One query on the flights."""

    setting: str
    slack_h: float
    """Mean K when a window closed, after the warm-up."""
    latency_h: float
    """From the end of a window to its first answer, mean after the warm-up."""
    wrong: float
    """Share of first answers with an error of eps or more, after the warm-up."""
    buffered: float
    """Tuples in open windows, mean over the run."""
    rows_read: int
    """By corrections, from history."""
    assumption: str


def row(setting: str, config: SlackConfig, plan: Plan) -> Row:
    """Run a query on the flights."""
    trigger = Every(PICTURES["flights"].trigger_interval_us)
    run = simulate(replace(plan, trigger=trigger), config, SEED)
    skipped, flush = warm_up(config), len(tuple(run.workload.batches()))
    answers = first_answers(run.workload, run.trace).after(skipped)
    closed = sorted(
        (step for step in run.trace.of(Result) if step.batch < flush), key=lambda s: s.start_us
    )[skipped:]
    ends_us = [run.workload.arrivals[cut - 1].arrival_us for cut in run.workload.cuts]
    ends_us.append(run.workload.arrivals[-1].arrival_us)
    waited_us = [ends_us[step.batch] - step.start_us - config.size_us for step in closed]
    return Row(
        setting,
        float(np.mean([step.slack_us for step in closed])) / HOUR_US,
        float(np.mean(waited_us)) / HOUR_US,
        float(answers.wrong(config).mean()),
        float(run.summary["mean_buffered"]),
        int(run.summary["history_rows_read"]),
        _assumption(config, run.trace),
    )


def _assumption(config: SlackConfig, trace: Trace) -> str:
    """What the status of the assumption says, if the promise rests on one."""
    if config.aggregate == "count" or config.sampling == "adversarial":
        return "none is made"
    found = status_of(trace.of(Correlation))
    rho = "" if found.rho is None else f" (rho {found.rho:.2f}, {found.windows} windows)"
    return found.status + rho


def table(cases: Mapping[str, dict[str, object]]) -> Iterator[Row]:
    """Every case of a table."""
    plan = arrivals("flights")
    for setting, changes in cases.items():
        yield row(setting, replace(FLIGHTS, **changes), plan)  # type: ignore[arg-type]


HEADER = {
    "setting": "",
    "K (h)": ".2f",
    "latency (h)": ".2f",
    "wrong": ".3f",
    "buffered": ".0f",
    "rows read": ",d",
    "assumption": "",
}
"""Columns with their formats."""


def main() -> None:
    """Print both tables."""
    for cases in (SETTINGS, ASSUMPTIONS):
        with render.progress() as progress:
            progress.add_task("simulating", total=None)
            rows = list(table(cases))
        sys.stdout.write(markdown(HEADER, rows) + "\n\n")


if __name__ == "__main__":
    main()
