"""Output of a sweep: sentences and a table for a terminal."""

from collections.abc import Iterator, Sequence

from rich.table import Table

from model.checking.claims import Outcome
from sim.report.entries import entry_of
from sim.sweep.engine import Ended, Started
from sim.sweep.results import Failed, Results, record_of
from straggler.cli.render import COLOURS
from straggler.errors import counted


def describe_start(event: Started) -> str:
    """Describe the runs that a sweep is about to make, and those that it need not repeat."""
    experiments = counted(len(event.experiments), "experiment")
    stored = f", {event.stored:,} of them stored already" if event.stored else ""
    runs = counted(event.runs + event.repeated, "run")
    twice = f", {event.repeated:,} of them in another experiment, too" if event.repeated else ""
    return f"{experiments}, {event.effort}: {runs}{twice}{stored}."


def describe_failures(failed: Sequence[Failed]) -> Iterator[str]:
    """Yield two lines for each failed run: its settings and error, and the command to repeat it."""
    for each in failed:
        settings = " ".join(f"{key}={text}" for key, text in each.run.settings.items())
        yield f"failed, seed {each.run.seed}, {settings}: {each.error}."
        yield f"    again: {each.again}"


def table(found: Sequence[Results]) -> Table:
    """Return a table with one row per experiment."""
    grid = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("experiment", "effort"):
        grid.add_column(heading, no_wrap=True)
    for heading in ("runs", "failed", "met"):
        grid.add_column(heading, justify="right", no_wrap=True)
    grid.add_column("outcome", no_wrap=True)
    grid.add_column("the claim is")
    for results in found:
        met = [finding.outcome for finding in results.findings].count(Outcome.HOLDS)
        grid.add_row(
            results.experiment.name,
            results.effort,
            f"{results.rows + len(results.failed):,}",
            f"{len(results.failed):,}",
            f"{met} of {len(results.findings)}",
            f"[{COLOURS[results.outcome]}]{results.outcome}[/]",
            results.verdict.value if results.verdict else "without verdict",
        )
    return grid


def remarks(found: Sequence[Results]) -> Iterator[str]:
    """Yield a sentence for each problem and each expectation that is not met."""
    for results in found:
        entry = entry_of(record_of(results))
        for problem in results.problems:
            yield f"{entry.name}: {problem}."
        for finding in entry.findings:
            if finding.outcome is not Outcome.HOLDS:
                yield f"{entry.name}, {finding.outcome}: {finding.says}; {finding.sentence}."


def describe_end(found: Sequence[Results], event: Ended, folder: str) -> str:
    """Summarise the sweep in one sentence."""
    runs = sum(results.rows for results in found)
    failed = sum(len(results.failed) for results in found)
    outcomes = [results.outcome for results in found]
    outcome = "every expectation is met"
    if event.outcome is not Outcome.HOLDS:
        outcome = f"{outcomes.count(event.outcome)} {event.outcome}"
    lost = f", {failed:,} failed" if failed else ""
    return (
        f"{counted(len(found), 'experiment')}, {counted(runs, 'run')}{lost}: {outcome};"
        f" {event.seconds:,.0f} s, results in {folder}."
    )
