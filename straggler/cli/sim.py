"""``straggler sim``: one timed run, its figures and its plot."""

import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.table import Table

from model.checking.claims import Outcome
from model.vocabulary.durations import write_duration, write_rough_duration
from sim.kernel.log import last_event_times
from sim.sweep.measurable import measurable
from sim.timed_figures import ENDINGS
from straggler.assignments import example_of, in_units, over_example, parse_settings
from straggler.cli import render
from straggler.cli.commands import Group, room_group
from straggler.cli.outputs import refuse_unwritable, write_json
from straggler.errors import UsageError, counted
from straggler.judging.judge import MODEL, Judgement, judge, run_reference
from straggler.judging.levels import Scope
from straggler.options import PATH, Arguments, Option
from straggler.rooms import Alternatives, Case, Remark, Room, find_room

if TYPE_CHECKING:
    from sim.kernel.run import TimedRun

EXAMPLES = """\
examples:
  straggler sim slack --plot run.svg                unequal workers, bursts, two faults
  straggler sim slack --set control=max --set size=5s --plot run.svg
  straggler sim join --set scale=yes --set workers=2 --plot chain.svg
  straggler sim grouping --set scenario=swap --set policies=all
  straggler sim script --set disorder=bursts --set workers=3 --plot run.svg
  straggler sim watermark --set reading=scaled --set k=20 --plot run.svg
  straggler sim watermark --set faults="slow worker-1 2s 500ms 4; fail worker-0 9s 1s"
  straggler sim slack --set tasks=12 --plot run.svg
  straggler sim slack --set nonsense=1              lists the settings there are

Without --set, an example runs in which unequal workers, bursts and faults matter. Settings are laid
over it; faults=none leaves out its faults. docs/settings.md has the example and the defaults.
"""

WORK = ("queue", "utilisation")
"""Columns of a worker that are 0 while it has no work; one that has failed still has a queue."""


def make_command(summary: str) -> Group:
    """Return a command for each room."""
    return room_group(summary, EXAMPLES, _options, run)


def _options(_rooms: Sequence[Room]) -> Iterator[Option]:
    """Yield the options for seed, settings and output files."""
    yield Option("--seed", "seed of everything random (0)", type=int, default=0, metavar="N")
    settings = "setting of the run, in place of the example's; may be repeated (docs/settings.md)"
    yield Option("--set", settings, multiple=True, metavar="KEY=VALUE")
    yield Option("--plot", "draw the run, as SVG or PNG", type=PATH, metavar="FILE.svg")
    yield Option("--json", "also write the figures to FILE", type=PATH, metavar="FILE")


def run(args: Arguments) -> int:
    """Simulate, print the figures, and check the claims on the trace."""
    refuse_unwritable("--plot", args.plot)
    refuse_unwritable("--json", args.json)
    if args.plot is not None and args.plot.suffix.lower() not in ENDINGS:
        endings = " or ".join(ENDINGS)
        raise UsageError(f"--plot is {str(args.plot)!r}; its name must end in {endings}")
    chosen = find_room(args.room)
    usual = measurable(args.room, "sim")
    given = parse_settings(args.set, usual.settings)
    settings = over_example(usual, given)
    with render.progress() as progress:
        progress.add_task("simulating", total=None)
        try:
            timed = chosen.simulate(settings, args.seed)
            beside = chosen.alternatives(timed, settings, args.seed)
        except (UsageError, ValueError) as error:
            raise UsageError(in_units(str(error), args.set)) from error
    name = str(timed.summary["input"])
    case = Case(name, name, "", timed.workload)
    step_types = chosen.determined_steps(timed.plan, chosen.step_types)
    expected = run_reference(chosen, timed.workload, MODEL, step_types)
    scope = Scope(chosen, step_types)
    judgement = judge(scope, case, lambda _: timed.trace, expected)
    # Both sides are the model: the comparison says nothing about another implementation.
    compared = (
        "Compared with the model run without scheduling and batches,"
        f" {judgement.agreement.sentence}. Seed {args.seed}, digest {timed.digest[:16]}."
    )
    out = render.console(args.json)
    broken = render.with_times(judgement.broken)
    render.print_lines(out, [_verdict(judgement), compared, *broken, ""])
    out.print(_table(timed))
    if beside is not None:
        out.print(_alternatives_table(beside))
    remarks = (*_untried(timed), *_too_late(timed))
    lines = [f"{name}, {remark.name}: {remark.sentence}." for remark in remarks]
    if beside is not None:
        lines.append(beside.remark)
    if example := example_of(usual, given):
        texts = [f"--set {name}={shlex.quote(text)}" for name, text in example.items()]
        lines.append(f"From the example: {' '.join(texts)}")
    render.print_lines(out, lines)
    if args.plot is not None:
        chosen.timed.draw(timed, args.plot)
        render.print_lines(out, [f"{args.plot}: the plot of this run."])
    if args.json is not None:
        record: dict[str, object] = {
            **timed.summary,
            "digest": timed.digest,
            "verdict": str(judgement.outcome),
        }
        record["remarks"] = [
            {"name": each.name, "sentence": each.sentence, **each.data} for each in remarks
        ]
        if beside is not None:
            record["beside"] = list(beside.data)
        write_json(args.json, record)
    return render.EXIT_CODES[judgement.outcome]


def _verdict(judgement: Judgement) -> str:
    """Return the verdict on a run, with the claims that it broke or did not put to the test."""
    found = {each: list[str]() for each in Outcome}
    for verdict in judgement.verdicts:
        found[verdict.outcome].append(verdict.claim)
    if judgement.outcome is Outcome.BROKEN:
        said = f"Broken in this run: {', '.join(found[Outcome.BROKEN])}"
    elif judgement.outcome is Outcome.UNDETERMINED:
        said = "Undetermined: no claim is broken in this run, but it tests too little"
    elif untested := found[Outcome.UNDETERMINED]:
        said = f"Every claim that this run tests holds; not tested: {', '.join(untested)}"
    else:
        said = "Every claim holds in this run"
    return f"{said}; {judgement.guard.sentence}."


def _untried(timed: "TimedRun") -> Iterator[Remark]:
    """Yield remarks on workers without work, and on faults that met none or came too late."""
    series, end_us = timed.series, round(float(timed.summary["duration_us"]))
    numbers = [name.removeprefix("utilisation_") for name in series if "utilisation_" in name]
    workers = {f"worker-{number}": number for number in numbers if number.isdigit()}
    idle = [name for name, number in workers.items() if not series[f"utilisation_{number}"].any()]
    if idle:
        sentence = f"{len(idle)} of {counted(len(workers), 'worker')} had no work"
        yield Remark("idle", f"{sentence}: {', '.join(idle)}", {"idle": idle})
    for fault in timed.plan.faults:
        target, at_us = fault[0], getattr(fault, "at_us", 0)
        until_us = at_us + getattr(fault, "for_us", 0)
        first, last = series["time_us"].searchsorted((at_us, until_us))
        columns = [f"{name}_{workers[target]}" for name in WORK if target in workers]
        had_work = [series[name][first : last + 1].any() for name in columns]
        reason = ""
        if at_us > end_us:
            reason = f"the run was over at {write_rough_duration(end_us)}"
        elif target in idle or (had_work and not any(had_work)):
            span = f"from {write_duration(at_us)} to {write_duration(until_us)}"
            reason = f"{target} had no work" + ("" if target in idle else f" {span}")
        if reason:
            change = f"{fault.kind} {target} at {write_duration(at_us)} changed nothing"
            data = {"fault": fault.kind, "at_us": at_us}
            yield Remark("fault", f"{change}, because {reason}", data)


def _too_late(timed: "TimedRun") -> Iterator[Remark]:
    """Yield remarks on bursts and gaps that begin after the last tuple of their sources."""
    found = [each for each in timed.plan.disturbances if each.kind != "regime"]
    last_us = last_event_times(timed.plan, timed.workload.seed) if found else []
    for each in found:
        of_sources = last_us if each.source is None else [last_us[each.source]]
        if each.start_us > max(of_sources, default=-1):
            at = write_duration(each.start_us)
            sentence = f"the one at {at} is left out: no tuple is created so late"
            yield Remark(each.kind, sentence, {"at_us": each.start_us})


def _table(timed: "TimedRun") -> Table:
    grid = Table(box=None, pad_edge=False, show_header=False)
    grid.add_column()
    grid.add_column(justify="right")
    for name, value in timed.summary.items():
        grid.add_row(*_in_words(name, value))
    return grid


def _alternatives_table(beside: Alternatives) -> Table:
    grid = Table(box=None, pad_edge=False)
    for number, heading in enumerate(beside.header):
        grid.add_column(heading, justify="right" if number else "left")
    for row in beside.rows:
        grid.add_row(*row)
    return grid


def _in_words(name: str, value: float | int | str) -> tuple[str, str]:
    """Return the name of a figure, and its value with the unit; times are in seconds."""
    if isinstance(value, str):
        return name, value
    if name.endswith("_us"):
        return name.removesuffix("_us").replace("_", " "), f"{value / 1e6:,.3f} s"
    if name.endswith("_hz"):
        return name.removesuffix("_hz").replace("_", " "), f"{_in_digits(value)} a second"
    return name.replace("_", " "), _in_digits(value)


def _in_digits(value: float) -> str:
    """Return a number with at least four digits, and without a power of ten if it is large."""
    is_whole = isinstance(value, int) or abs(value) >= 1_000
    return f"{value:,.0f}" if is_whole else f"{value:.4g}"
