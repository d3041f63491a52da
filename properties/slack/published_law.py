"""What the published control law does where (eps, delta) is promised: figures of its refutation.

``python -m properties.slack.published_law`` prints them (Markdown, the same every time).

Source: the hybrid processing model for continuous aggregates, whose differential law steers the
coverage of windows towards a threshold: alpha += kp*err + kd*(err - err_before).
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from model.slack import make_system
from model.vocabulary import Event, SlackConfig, Trace, Workload
from model.vocabulary.slack import Judged
from properties.cli.render import markdown
from properties.slack.promise import first_answers, stream, warm_up
from sim.kernel.log import simulate_arrivals
from sim.kernel.source import Source
from sim.scenarios import INDEPENDENT, calm_start

SECOND_US = 1_000_000
CONTROLS = ("conformal", "pd", "pd-clamped")
PUBLISHED = ("pd", "pd-clamped")
TUPLES, SEED = 100_000, 0
CALM_MINUTES = (15, 45)
QUERY = SlackConfig(
    10 * SECOND_US,
    2 * SECOND_US,
    aggregate="sum",
    keyed=False,
    eps=0.05,
    delta=0.05,
    feedback_us=20_000_000,
)


class Row(NamedTuple):
    """One control on one stream, after the warm-up; shares of windows."""

    process: str
    control: str
    below: float
    """Windows whose first answer contained fewer tuples than required."""
    wrong: float
    """Windows whose first answer had an error of eps or more; promised is delta."""
    coverage: float
    """Mean share of a window's tuples in its first answer."""
    required: float
    """Mean share that was required."""


class Windup(NamedTuple):
    """How long a controller that was bored takes to notice that the stream is not in order."""

    calm_minutes: int
    control: str
    lowest: float
    """alpha when the disorder starts."""
    windows: int
    """Windows judged after the first miss before there is any slack again."""


def observe(events: Sequence[Event], config: SlackConfig) -> tuple[Workload, Trace]:
    """The reference trace of a stream under a query."""
    workload = Workload("slack", tuple(events), config.to_json())
    return workload, make_system()(workload)


def row(process: str, config: SlackConfig, tuples: int = TUPLES, seed: int = SEED) -> Row:
    """Figures of one control."""
    workload, trace = observe(stream(process, tuples, seed), config)
    answers = first_answers(workload, trace).after(warm_up(config))
    judged = sorted(trace.of(Judged), key=lambda step: step.order)[warm_up(config) :]
    return Row(
        process,
        config.control,
        below=sum(step.miss for step in judged) / len(judged),
        wrong=float(answers.wrong(config).mean()),
        coverage=float(answers.coverage.mean()),
        required=sum(step.n_req / (step.n_rcv + step.n_late) for step in judged) / len(judged),
    )


def table(tuples: int = TUPLES, seed: int = SEED) -> Iterator[Row]:
    """Every control on every process in which values say nothing about delay."""
    for process in INDEPENDENT:
        for control in CONTROLS:
            yield row(process, replace(QUERY, control=control), tuples, seed)


def windup(calm_minutes: int, control: str, seed: int = SEED) -> Windup:
    """A stream that is in order at first, under one control."""
    plan = calm_start(calm_minutes * 60 * SECOND_US)
    # As long again, and three quarters of an hour more, to recover in: ten tuples a second.
    tuples = (2 * calm_minutes + 45) * 600
    sources = tuple(replace(s, events=tuples) for s in plan.sources if isinstance(s, Source))
    events = simulate_arrivals(replace(plan, sources=sources), seed).events
    _, trace = observe(events, replace(QUERY, control=control))
    judged = sorted(trace.of(Judged), key=lambda step: step.order)
    first = next(n for n, step in enumerate(judged) if step.miss)
    slow = [n for n, step in enumerate(judged[first:]) if step.alpha > 0]
    windows = slow[0] if slow else len(judged) - first
    return Windup(calm_minutes, control, judged[first - 1].alpha, windows)


LAW_HEADER = {
    "process": "",
    "control": "",
    "below requirement": ".3f",
    "error >= eps": ".3f",
    "coverage": ".3f",
    "required": ".3f",
}
WINDUP_HEADER = {"in order for (min)": "d", "control": "", "alpha then": ".2f", "windows": "d"}
"""Columns of the two tables with their formats."""


def windups() -> Iterator[Windup]:
    """The published laws after some time in order."""
    for calm in CALM_MINUTES:
        for control in PUBLISHED:
            yield windup(calm, control)


def main() -> None:
    """Print both tables."""
    sys.stdout.write(markdown(LAW_HEADER, list(table())) + "\n\n")
    sys.stdout.write(markdown(WINDUP_HEADER, list(windups())) + "\n")


if __name__ == "__main__":
    main()
