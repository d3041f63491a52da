"""Single runs as sections of a page: a timed run, or a comparison with the reference."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import NamedTuple

import numpy as np

from model.checking.claims import Outcome
from model.vocabulary.durations import write_duration, write_short
from sim.kernel.faults import Fault
from sim.kernel.run import Course, TimedRun
from sim.report.drawing import as_svg, describe_fault, draw_timed_run, fault_span_us
from sim.report.run_page import NumbersTable, Pairs, RunSection
from sim.report.words import format_number, readable_name, unit_of
from straggler.judging.judge import Judgement
from straggler.options import default_in_words
from straggler.rooms import Alternatives, Room

HEADLINE = (
    *("arrivals", "tuples", "windows", "results", "late_share", "late", "shed"),
    *("served_hz", "mean_latency_us", "p99_latency_us"),
    *("mean_window_latency_us", "p99_window_latency_us"),
    *("mean_result_latency_us", "p99_result_latency_us"),
    *("mean_coverage", "mean_first_error", "final_error", "mean_rho", "mean_imbalance"),
)
"""Figures that a section shows first, of those that its room has."""
SHARES = ("coverage", "_error", "_share")
"""Endings of figures that are shares, shown in percent."""


class SimulatedRun(NamedTuple):
    """A timed run, with what the command line says about it."""

    room: Room
    timed: TimedRun
    beside: Alternatives | None
    """Runs under other settings."""
    judgement: Judgement
    settings: Mapping[str, str]
    """Settings that the user chose, as they were given."""
    seed: int
    sentences: Sequence[str]


def simulated_section(run: SimulatedRun) -> RunSection:
    """Return the section of a timed run."""
    course = run.timed.course
    first, _, query = run.room.timed.plot.title(course.summary).partition("\n")
    faults = tuple(map(_describe_in_time, course.faults))
    about = "Time runs from the start of the run." + (
        " Shaded, or framed in the row of a worker: a fault is in force." if faults else ""
    )
    known = import_module(f"sim.{run.room.name}").SETTINGS
    chosen = run.settings.items()
    all_settings = [
        (name, run.settings.get(name, default_in_words(setting)), setting.help)
        for name, setting in known.items()
    ]
    tables = list(_tables(course))
    if run.beside is not None:
        tables.insert(
            1,
            (
                "Other settings, on the same arrivals",
                NumbersTable(run.beside.header, run.beside.rows, 1),
            ),
        )
    header = ("setting", "value", "meaning")
    tables.append(("All settings", NumbersTable(header, tuple(all_settings), 3)))
    return RunSection(
        name=f"{run.room.name}-0",
        title=first,
        about=query,
        outcome=run.judgement.outcome,
        sentences=tuple(run.sentences),
        key_figures=(("Figures", _headline(course)),),
        settings=(("seed", str(run.seed)), *chosen, *([] if chosen else [("others", "default")])),
        verdicts=run.judgement.verdicts,
        report=(),
        faults=faults,
        picture=as_svg(draw_timed_run, course, run.room.timed.plot),
        about_picture=about,
        tables=tuple(tables),
    )


def compared_section(
    judgement: Judgement, course: Course | None, report: Sequence[str], number: int
) -> RunSection:
    """Return the section of a comparison; ``course`` is that of the simulation, if it ran."""
    room, case = judgement.room, judgement.case
    name = f"{room.name}-{number}"
    shown = [(_one_line(each.heading), each.name, each.format) for each in room.shown]
    figures = [
        (heading, "–" if (value := judgement.figures[key]) is None else format(value, form))
        for heading, key, form in shown
    ]
    figures += [
        ("mismatches", f"{judgement.mismatches:,}"),
        ("time taken", write_short(judgement.seconds * 1e6)),
    ]
    groups = [("The comparison", tuple(figures))]
    picture = ""
    about = "There is nothing to draw: the reference was the untimed model, without a simulation."
    tables: list[tuple[str, NumbersTable]] = []
    if course is not None:
        groups.append(("The simulation", _headline(course)))
        picture = as_svg(draw_timed_run, course, room.timed.plot)
        about = (
            "Simulated: the same arrivals, replayed through the stated cluster, whose answers the"
            " system has to give."
        )
        tables = [(f"{heading} of the simulation", table) for heading, table in _tables(course)]
    remarks = [f"{remark.name}: {remark.sentence}." for remark in judgement.remarks]
    settings = [(key, _plain(value)) for key, value in room.settings(case.workload).items()]
    seed = ("seed", str(case.workload.seed))
    return RunSection(
        name=name,
        title=f"{room.name}: {case.input}",
        about=case.query,
        outcome=judgement.outcome,
        sentences=(*_reasons(judgement), *remarks),
        key_figures=tuple(groups),
        settings=(seed, ("reference", judgement.reference)),
        verdicts=judgement.verdicts,
        report=tuple(report),
        faults=tuple([f"{fault.kind} {fault.at}" for fault in case.workload.faults]),
        picture=picture,
        about_picture=about,
        tables=(*tables, ("Settings of the query", _two_columns("setting", settings))),
    )


def _reasons(judgement: Judgement) -> Iterator[str]:
    """Yield why a comparison does not hold."""
    if judgement.outcome is Outcome.BROKEN:
        verdicts = judgement.verdicts
    else:  # a claim without a test counts for nothing
        verdicts = (judgement.agreement, judgement.guard)
    for verdict in verdicts:
        if verdict.outcome is judgement.outcome is not Outcome.HOLDS:
            yield f"{verdict.claim}: {verdict.sentence}"


def _headline(course: Course) -> Pairs:
    known = course.summary
    return tuple([_in_words(name, known[name]) for name in HEADLINE if name in known])


def _tables(course: Course) -> Iterator[tuple[str, NumbersTable]]:
    workers = tuple(_worker_rows(course))
    if workers:
        header = ("worker", "speed", "time it works", "longest queue")
        yield "Workers", NumbersTable(header, workers, 1)
    figures = [_in_words(name, value) for name, value in course.summary.items()]
    yield "All figures", _two_columns("figure", figures)


def _worker_rows(course: Course) -> Iterator[tuple[str, ...]]:
    """Yield a row for each worker that the series knows."""
    lasted_us = np.diff(course.series["time_us"], prepend=0.0)
    for column, queue in course.series.items():
        worker = column.removeprefix("queue_")
        if column == worker or "_" in worker:
            continue
        is_number = worker.isdigit()
        speed = f"{course.cluster.worker(int(worker)).speed:g}" if is_number else ""
        busy = course.series.get(f"utilisation_{worker}", np.full_like(queue, np.nan))
        seen = np.isfinite(busy)
        share = (busy[seen] * lasted_us[seen]).sum() / (lasted_us[seen].sum() or 1.0)
        longest = float(np.nanmax(queue, initial=0.0))
        works = f"{share:.1%}" if seen.any() else ""
        yield f"worker {worker}" if is_number else worker, speed, works, f"{longest:,.0f}"


def _two_columns(name: str, rows: Iterable[tuple[str, str]]) -> NumbersTable:
    return NumbersTable((name, "value"), tuple(rows), 2)


def _in_words(name: str, value: float | int | str) -> tuple[str, str]:
    """Return the readable name of a figure, and its value with its unit."""
    if isinstance(value, str):
        return readable_name(name), value
    if name.endswith("_us"):
        return readable_name(name), write_short(value)
    if name.endswith(SHARES) or name.startswith("utilisation_"):
        return readable_name(name), f"{value:.2%}"
    unit = unit_of(name, [value])
    return readable_name(name), f"{format_number(value / unit.size)}{unit.symbol}"


def _plain(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _describe_in_time(fault: Fault) -> str:
    span_us = fault_span_us(fault)
    if span_us is None:
        return describe_fault(fault)
    start_us, end_us = span_us
    lasts = write_duration(end_us - start_us)
    return f"{describe_fault(fault)}: from {write_duration(start_us)}, for {lasts}"


def _one_line(heading: str) -> str:
    return heading.replace("-\n", "").replace("\n", " ")
