"""Marks of a plan on the plot of its run: bursts, gaps and faults as bars, workers by place.

Rules of this file:

* A bar has its times in microseconds since the start of the run.
* What is alike but for its target or its time shares a row, so that the strip stays small.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from model.vocabulary.durations import write_rough_duration
from sim.kernel.disorder import Burst, Disturbance, Gap, Regime
from sim.kernel.distributions import mean_us
from sim.kernel.faults import Congest, Duplicate, Fail, Fault, Lose, Pause, Replay, Schedule, Slow
from sim.kernel.link import HERE
from sim.kernel.plan import Plan
from sim.kernel.source import Source

Span: TypeAlias = tuple[float, float]

# Palette of Okabe and Ito, whose colours most people with colour blindness can tell apart.
BLUE, ORANGE, BLACK, GREEN = "#0072B2", "#D55E00", "#333333", "#009E73"
PURPLE, GREY, SKY, YELLOW = "#CC79A7", "#777777", "#56B4E9", "#E69F00"
COLOURS = {
    "burst": GREEN,
    "gap": PURPLE,
    "regime": BLACK,
    "more": SKY,
    "pause": GREY,
    "slow": YELLOW,
    "fail": ORANGE,
    "congest": BLUE,
}
"""Colours of marks, by kind; faults of one message or tuple have none."""
SHADED = [kind for kind in COLOURS if kind != "regime"]
"""Kinds whose times are shaded on every panel; a new delay lasts."""
NAMED_MAX = 2
"""Most targets that are named; the frames on the maps show the others."""
BARS_MAX = 500
"""Most bars of a burst that comes again and again; more of them would be one bar to the eye."""
BRIEF = 0.9
"""Share of the longest source up to which a source is a rise of the rate."""
DISTANCES = {
    "process": "in the log's process",
    "node": "on the log's node",
    "rack": "in the log's rack",
    "elsewhere": "in another rack",
}


class Mark(NamedTuple):
    """A row of the strip: what happens, and when."""

    kind: str
    text: str
    spans_us: tuple[Span, ...]
    """Times from start to end; none for a fault of one message or tuple."""


def marks_of(plan: Plan, end_us: float) -> list[Mark]:
    """Return the rows of a plan, for a run that ends at ``end_us``: disturbances, then faults."""
    found = [*_rises(plan), *_marks_of_disturbances(plan.disturbances, end_us)]
    for group in alike(plan.faults):
        span_us = fault_span_us(group[0])
        spans_us = () if span_us is None else (span_us,)
        found.append(Mark(group[0].kind, describe_faults(group), spans_us))
    return [
        mark._replace(text=f"{mark.text}, after the end") if _is_over(mark, end_us) else mark
        for mark in found
    ]


def _is_over(mark: Mark, end_us: float) -> bool:
    return bool(mark.spans_us) and all(start_us > end_us for start_us, _ in mark.spans_us)


def title_of(marks: Iterable[Mark]) -> str:
    """Return the title of the strip of these marks."""
    words = {"more": "rises of the rate", "burst": "bursts", "gap": "gaps", "regime": "new delays"}
    kinds = list(dict.fromkeys([words.get(mark.kind, "faults") for mark in marks]))
    *first, last = kinds
    return (f"{', '.join(first)} and {last}" if first else last).capitalize()


def union_us(spans_us: Iterable[Span]) -> list[Span]:
    """Return the times that one of the spans covers: shades over each other would add up."""
    found: list[Span] = []
    for start_us, end_us in sorted(spans_us):
        if found and start_us <= found[-1][1]:
            first_us, last_us = found.pop()
            found.append((first_us, max(last_us, end_us)))
        else:
            found.append((start_us, end_us))
    return found


def name_worker(plan: Plan, name: str, *, is_brief: bool) -> str:
    """Return a worker ``worker 3`` with its speed and its distance from the log.

    A speed that all workers have, and a place at the log, are left out. Other names are returned as
    they are.
    """
    number = name.removeprefix("worker ")
    if not number.isdigit():
        return name
    worker, workers = plan.cluster.worker(int(number)), plan.cluster.workers
    words = [f"speed {worker.speed:g}"] if len({each.speed for each in workers}) > 1 else []
    if worker.place is not None:
        tier = plan.tiers._fields[plan.tiers.index(plan.tiers.between(HERE, worker.place))]
        words.append(tier if is_brief else DISTANCES[tier])
    said = (", " if is_brief else ",\n").join(words)
    return f"{number if is_brief else name}{': ' if said else ''}{said}"


# ------------------------------------------------------------------------------- disturbances


def _rises(plan: Plan) -> Iterator[Mark]:
    """Yield a row for the sources that send for a part of the time only, beside longer ones."""
    sources = [each for each in plan.sources if isinstance(each, Source) and each.events]
    spans = [(s.start_us, s.start_us + s.events * mean_us(s.interval)) for s in sources]
    longest_us = max([end_us - start_us for start_us, end_us in spans], default=0.0)
    brief = [(start, end) for start, end in spans if end - start < BRIEF * longest_us]
    if brief:
        yield Mark("more", "tuples of more sources", tuple(union_us(brief)))


def _marks_of_disturbances(found: Sequence[Disturbance], end_us: float) -> Iterator[Mark]:
    """Yield a row for all disturbances that differ in their times alone."""
    alike: dict[Disturbance, list[Disturbance]] = {}
    for each in found:
        alike.setdefault(each._replace(source=None), []).append(each)
    spans: dict[tuple[str, str], list[Span]] = {}
    for group in alike.values():
        sources = [each.source for each in group if each.source is not None]
        key = group[0].kind, _describe(group[0], sources)
        spans.setdefault(key, []).extend(_spans_us(group[0], found, end_us))
    for (kind, text), those in spans.items():
        yield Mark(kind, text, tuple(union_us(those)))


def _spans_us(each: Disturbance, found: Iterable[Disturbance], end_us: float) -> Iterator[Span]:
    """Yield the times of a disturbance; a new delay lasts until the next one."""
    start_us = each.start_us
    if isinstance(each, Regime):
        later = [
            other.start_us
            for other in found
            if isinstance(other, Regime)
            and other.source in (None, each.source)
            and other.start_us > start_us
        ]
        yield start_us, min(later, default=max(end_us, start_us))
        return
    every_us = each.every_us if isinstance(each, Burst) else None
    last_us = start_us if every_us is None else max(start_us, int(end_us))
    if every_us is not None and (last_us - start_us) // every_us >= BARS_MAX:
        yield start_us, last_us
        return
    for at_us in range(start_us, last_us + 1, every_us or 1):
        yield at_us, at_us + each.length_us


def _describe(found: Disturbance, sources: Sequence[int]) -> str:
    """Return what a disturbance does to the tuples of some sources, or of all if none is named."""
    names = ", ".join([f"source-{number}" for number in sources])
    if len(sources) > NAMED_MAX:
        names = f"{len(sources)} sources"
    match found:
        case Burst():
            share = "all" if found.share == 1 else f"{found.share:.0%} of"
            of = f"tuples of {names}" if names else "tuples"
            return f"{share} {of},\n{_about(mean_us(found.extra))} later"
        case Gap():
            return f"no tuples of {names}" if names else "no tuples"
        case Regime():
            return f"{names or 'tuples'}: delay {_about(mean_us(found.delay))}"


def _about(duration_us: float) -> str:
    is_endless = duration_us == float("inf")
    return "much" if is_endless else f"on average {write_rough_duration(round(duration_us))}"


# ------------------------------------------------------------------------------------- faults


def alike(faults: Schedule) -> list[Schedule]:
    """Return the faults in groups that are the same but for their target, in order."""
    groups: dict[tuple[object, ...], list[Fault]] = {}
    for fault in faults:
        groups.setdefault(fault[1:], []).append(fault)
    return [tuple(group) for group in groups.values()]


def fault_span_us(fault: Fault) -> tuple[int, int] | None:
    """Return the start and end (us) of a fault; ``None`` for a fault of one message or tuple."""
    if isinstance(fault, Pause | Slow | Fail | Congest):
        return fault.at_us, fault.at_us + fault.for_us
    return None


def describe_faults(faults: Schedule) -> str:
    """Return the kind, the targets and the extent of faults that are alike as words."""
    fault = faults[0]
    targets = ", ".join([each[0] for each in faults])
    if len(faults) > NAMED_MAX:
        targets = f"{len(faults)} {'links' if isinstance(fault, Congest) else 'workers'}"
    match fault:
        case Pause() | Fail():
            return f"{fault.kind} {targets}"
        case Slow():
            faster = fault.factor < 1
            times = 1 / fault.factor if faster else fault.factor
            return f"{targets} {times:g} times {'faster' if faster else 'slower'}"
        case Congest():
            return f"congest {targets}, {fault.share:.0%} left"
        case Lose() | Replay():
            return f"{fault.kind} message {fault.nth} of {targets}"
        case Duplicate():
            return f"duplicate tuple {fault.nth} of {targets}"
