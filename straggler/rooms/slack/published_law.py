"""Figures that refute the published control law: it does not keep the promise (eps, delta).

Source: the hybrid processing model for continuous aggregates, whose differential law steers the
coverage of windows towards a threshold: alpha += kp*err + kd*(err - err_before).
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from model.slack import make_system
from model.vocabulary import Event, SlackConfig, Trace, Workload
from model.vocabulary.slack import Judged
from sim.kernel.log import simulate_arrivals
from sim.kernel.source import Source
from sim.scenarios import INDEPENDENT, calm_start
from straggler.rooms.slack.promise import first_answers, stream, warm_up

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
    """Share of windows whose first answer contained fewer tuples than required."""
    wrong: float
    """Share of windows whose first answer had an error of eps or more; promised is delta."""
    coverage: float
    """Mean share of a window's tuples in its first answer."""
    required: float
    """Mean required share."""


class Windup(NamedTuple):
    """Time that a controller takes to react to disorder after a stretch in order."""

    calm_minutes: int
    control: str
    lowest: float
    """Value of alpha when the disorder starts."""
    windows: int
    """Number of windows judged after the first miss before there is any slack again."""


def observe(events: Sequence[Event], config: SlackConfig) -> tuple[Workload, Trace]:
    """Return the workload of a stream under a query, and its reference trace."""
    workload = Workload("slack", tuple(events), config.to_json())
    return workload, make_system()(workload)


def row(process: str, config: SlackConfig, tuples: int = TUPLES, seed: int = SEED) -> Row:
    """Return the figures of one control."""
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
    """Yield every control on every process whose values do not depend on delay."""
    for process in INDEPENDENT:
        for control in CONTROLS:
            yield row(process, replace(QUERY, control=control), tuples, seed)


def windup(calm_minutes: int, control: str, seed: int = SEED) -> Windup:
    """Return the windup of one control on a stream that is in order at first."""
    plan = calm_start(calm_minutes * 60 * SECOND_US)
    # Ten tuples a second; as long again, and 45 minutes more, to recover in.
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
    """Yield the windup of the published laws after each time in order."""
    for calm in CALM_MINUTES:
        for control in PUBLISHED:
            yield windup(calm, control)
