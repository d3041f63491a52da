"""How well the promise of quality is kept: ``python -m properties.slack.promise_table [TUPLES]``.

It prints the table of the guide (Markdown, the same every time), for streams of 120,000 tuples, or
as many as are asked for. ``test_promise.py`` tests the same queries and processes.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

from model.slack import make_system
from model.vocabulary import Event, SlackConfig, System, Workload
from properties.cli import render
from properties.cli.render import markdown
from properties.slack.promise import Share, bonferroni, first_answers, share_of, stream, warm_up
from sim.scenarios import DEPENDENT, INDEPENDENT, SECOND_US

FAILURE = 0.01
"""All limits of the table together fail with this probability at most."""
QUERY = SlackConfig(
    10 * SECOND_US,
    2 * SECOND_US,
    q=0.9,
    keyed=False,
    # A burst makes tuples five seconds late on average: it must be seen before the judgement.
    feedback_us=20 * SECOND_US,
)
AGGREGATES = ("sum", "count", "avg", "median", "quantile")
PROMISES = list(product(INDEPENDENT, AGGREGATES))
TUPLES, SEED = 120_000, 0
HEADER = {"process": "", **dict.fromkeys(AGGREGATES, "")}
"""Columns with their formats."""


def wrong(events: tuple[Event, ...], config: SlackConfig, system: System) -> Share:
    """How often first answers after the warm-up have an error of eps or more."""
    workload = Workload("slack", events, config.to_json())
    answers = first_answers(workload, system(workload)).after(warm_up(config))
    return share_of(answers.wrong(config), config, bonferroni(FAILURE, PROMISES))


def row(name: str, events: tuple[Event, ...], config: SlackConfig) -> tuple[str, ...]:
    """Shares of all aggregates, with their upper limits in brackets."""
    shares = (
        wrong(events, replace(config, aggregate=aggregate), make_system())
        for aggregate in AGGREGATES
    )
    return (name, *(f"{share.share:.3f} ({share.high:.3f})" for share in shares))


def table(tuples: int = TUPLES) -> Iterator[tuple[str, ...]]:
    """A row for every process, and two for the one where delay follows value."""
    for process in INDEPENDENT:
        yield row(process, stream(process, tuples, SEED), QUERY)
    events = stream(DEPENDENT, tuples, SEED)
    yield row(DEPENDENT, events, QUERY)
    yield row(f"{DEPENDENT}, adversarial", events, replace(QUERY, sampling="adversarial"))


def main(arguments: Sequence[str]) -> None:
    """Print the table."""
    tuples = int(arguments[0]) if arguments else TUPLES
    with render.progress() as progress:
        progress.add_task("judging", total=None)
        rows = list(table(tuples))
    sys.stdout.write(markdown(HEADER, rows) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
