"""Results of an experiment: a table with a row per run, and the verdict on the claim."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

from model.checking.claims import Outcome
from model.vocabulary.settings import JsonObject, nearest
from sim.sweep.expectations import COLUMNS
from sim.sweep.experiment import Experiment, Measure, Reproduction
from sim.sweep.jobs import Figure
from sim.sweep.judging import Finding
from sim.sweep.runs import SweepRun
from sim.sweep.statistics import Interval

Columns: TypeAlias = dict[str, list[Figure]]
"""A table: its columns, by name."""


class Failed(NamedTuple):
    """A run without figures, and the reason."""

    run: SweepRun
    error: str
    again: str
    """Command line that repeats the run."""


class Results(NamedTuple):
    """Results of one experiment."""

    experiment: Experiment
    effort: str
    seeds: tuple[int, ...]
    code: str
    again: str
    columns: Columns
    problems: tuple[str, ...]
    """Faults of the table, in sentences without full stops."""
    failed: tuple[Failed, ...]
    findings: tuple[Finding, ...]

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.columns["run"])

    @property
    def outcome(self) -> Outcome:
        """Outcome of all expectations together; failed runs leave it undetermined."""
        outcomes = [finding.outcome for finding in self.findings]
        if Outcome.BROKEN in outcomes:
            return Outcome.BROKEN
        is_whole = not self.failed and not self.problems and Outcome.UNDETERMINED not in outcomes
        return Outcome.HOLDS if is_whole else Outcome.UNDETERMINED

    @property
    def verdict(self) -> Reproduction | None:
        """The worst verdict of the expectations; ``None`` unless all hold and there is one."""
        if self.outcome is not Outcome.HOLDS or not self.findings:
            return None
        order = list(Reproduction)
        return max((each.expectation.verdict for each in self.findings), key=order.index)


def table_of(
    experiment: Experiment, effort: str, found: Sequence[tuple[SweepRun, Mapping[str, Figure]]]
) -> Columns:
    """Return the table of results: one row for each run with figures."""
    names = [factor.name for factor in experiment.grids[effort].factors]
    runs = [run for run, _ in found]
    fixed: list[list[Figure]] = [
        [experiment.name] * len(runs),
        [effort] * len(runs),
        [run.address for run in runs],
        [run.seed for run in runs],
    ]
    columns: Columns = dict(zip(COLUMNS, fixed, strict=True))
    for number, name in enumerate(names):
        columns[name] = [run.labels[number] for run in runs]
    for measure in experiment.measures:
        columns[measure.name] = [_value(measure, figures) for _, figures in found]
    return columns


def _value(measure: Measure, figures: Mapping[str, Figure]) -> Figure:
    """Return a cell; an integer becomes a float, so that a column has one type."""
    value = figures.get(measure.figure)
    if isinstance(value, str):
        return None if measure.by else value
    by = figures.get(measure.by) if measure.by else 1
    if value is None or by is None or isinstance(by, str) or by == 0:
        return None
    return value / by


def problems_of(
    experiment: Experiment, found: Sequence[tuple[SweepRun, Mapping[str, Figure]]]
) -> tuple[str, ...]:
    """Return sentences on figures that no run has, and on columns that mix numbers and texts."""
    known = list(dict.fromkeys(name for _, figures in found for name in figures))
    problems = []
    for measure in experiment.measures:
        for figure in filter(None, (measure.figure, measure.by)):
            if known and figure not in known:
                problems.append(f"no run has the figure {figure!r}{nearest(figure, known)}")
        values = [_value(measure, figures) for _, figures in found]
        if len({isinstance(value, str) for value in values if value is not None}) > 1:
            problems.append(
                f"the figure {measure.figure!r} is a number in some runs and not in all"
            )
    return tuple(problems)


def record_of(results: Results) -> JsonObject:
    """Return everything but the table, as JSON data (docs/sweeps.md explains it)."""
    experiment, effort = results.experiment, results.effort
    grid = experiment.grids[effort]
    return {
        "experiment": _experiment_record(experiment),
        "effort": effort,
        "again": results.again,
        "code": results.code,
        "base": dict(grid.base),
        "factors": {
            factor.name: [
                {"label": level.label, "settings": dict(level.settings)} for level in factor.levels
            ]
            for factor in grid.factors
        },
        "seeds": list(results.seeds),
        "measures": [measure.name for measure in experiment.measures],
        "rows": results.rows,
        "problems": list(results.problems),
        "failed": [
            {
                "settings": dict(each.run.settings),
                "seed": each.run.seed,
                "error": each.error,
                "again": each.again,
            }
            for each in results.failed
        ],
        "expectations": [_finding_record(finding) for finding in results.findings],
        "outcome": results.outcome,
        "verdict": results.verdict,
    }


def _experiment_record(experiment: Experiment) -> JsonObject:
    source = experiment.source
    return {
        "name": experiment.name,
        "room": experiment.room,
        "run": experiment.run,
        "fan": experiment.fan or None,
        "title": experiment.title,
        "claim": experiment.claim or None,
        "source": source._asdict() if source else None,
        "published": {"says": experiment.published} if experiment.published else None,
        "labels": dict(experiment.labels),
    }


def _finding_record(finding: Finding) -> JsonObject:
    expectation = finding.expectation
    return {
        "says": expectation.says,
        "measure": expectation.measure,
        "compare": expectation.compare.kind if expectation.compare else None,
        "along": expectation.along or None,
        "verdict": expectation.verdict,
        "assumptions": expectation.assumptions or None,
        "outcome": finding.outcome,
        "cells": [
            {
                "label": cell.label,
                **(cell.interval._asdict() if cell.interval else dict.fromkeys(Interval._fields)),
                "outcome": cell.outcome,
            }
            for cell in finding.cells
        ],
    }
