"""Room ``grouping`` as the command line and the tests know it."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

import straggler
from model.checking import diff
from model.checking.claims import Verdict
from model.checking.diff import Difference
from model.grouping import make_system
from model.grouping.balance import total_speed, work_us
from model.grouping.claims import judge
from model.grouping.evidence import Evidence, evidence_of
from model.vocabulary import GroupingConfig, Trace, Workload
from model.vocabulary.grouping import ANSWERS, WORDS, Answer, Heavy, Partial, Route
from model.vocabulary.settings import PlainData
from model.windows.evidence import has_exact_sums
from sim.grouping import TimedRun, from_settings, side_by_side
from sim.grouping.room import TIMED_ROOM
from sim.grouping.settings import EXAMPLE
from straggler.errors import counted
from straggler.inputs.columns import Columns
from straggler.options import Arguments
from straggler.rooms import Alternatives, Case, Figure, Figures, JudgedCase, Room, SkippedInput
from straggler.rooms.grouping import inputs, queries
from straggler.rooms.grouping.errata import ERRATA
from straggler.rooms.grouping.limits import refuse_settings, refuse_values, refuse_workload
from straggler.wiring import cases_of, judge_guard, make_case, spark_pipeline

GUARD = "keys were heavy, and merged"
STAYING = ("key", "dkg", "dag")
"""Policies that may leave every key at one instance, so that no answers are merged."""
IDENTITY = {
    "route": ("seq",),
    "heavy": ("window", "key"),
    "partial": ("window", "instance", "key"),
    "answer": ("window", "key"),
    "rejected": ("seq",),
}
"""Identifying fields, by kind of step; all other fields are compared."""


def cases(args: Arguments, columns: Columns) -> Iterator[Case | SkippedInput]:
    """Yield one case for every router on every input that the options select."""

    def read(name: str) -> Iterator[Case]:
        recording = inputs.load(name, args.seed, columns)
        refuse_values(recording.events, recording.label)
        for config, title in queries.queries(args, name, len(recording.events)):
            yield make_case("grouping", recording, config, title, args, batches=queries.BATCHES)

    return cases_of(args, inputs.DEFAULT, read)


def compare(
    workload: Workload,
    expected: Trace,
    observed: Trace,
    step_types: Collection[type],
    ignore: Collection[str],
) -> Difference:
    """Compare steps exactly (promise 6 of docs/grouping.md), without sums that float64 rounds.

    The claims check those sums: they know how much rounding each of them allows.
    """
    exact = has_exact_sums([event.value for event in workload.arrivals])
    chosen = [word for word in WORDS if word in step_types]
    ignored = ignore if exact else (*ignore, "total")
    return diff.compare(expected, observed, chosen, identity=IDENTITY, ignore=ignored)


# --------------------------------------------------------------------------- figures and guards


class Balance(NamedTuple):
    """Balance of the tuples of a trace, in window 1 and later.

    In window 0 no key is known to be heavy. Several windows make one figure by their sums: the
    largest work of each window, relative to the least possible work or to the mean work.
    """

    rho: float
    """Excess of the makespans over those of a fluid."""
    imbalance: float
    """Excess of the makespans over the mean work; it hides how long everything takes."""
    replication: float
    """Mean number of instances per key and window."""
    busiest_us: int
    """Largest work of an instance in a window (us)."""


def balance_of(seen: Evidence) -> Balance | None:
    """Return the balance of the observed routes; ``None`` without a route after window 0."""
    largest = fluid = mean = 0.0
    busiest_us = keys = places = 0
    for window in seen.windows[1:]:
        times_us = seen.config.times_of(window.first_batch)
        counts = seen.counts(window)
        work = work_us(counts, times_us)
        largest += max(work)
        fluid += sum(counts) / total_speed(times_us)
        mean += sum(work) / len(work)
        busiest_us = max(busiest_us, *work)
        at = seen.places(window)
        keys += len(at)
        places += sum(map(len, at.values()))
    if not busiest_us:
        return None
    return Balance(largest / fluid - 1, largest / mean - 1, places / keys, busiest_us)


def figures(seen: JudgedCase) -> Figures:
    """Return what happened in the reference, and the balance of the observed routes, if any."""
    workload, expected = seen.case.workload, seen.expected
    places = Counter((each.window, each.key) for each in expected.of(Partial))
    observed = evidence_of(workload, seen.observed)
    balance = balance_of(observed)
    return {
        "tuples": len(workload.arrivals),
        "routes": len(expected.of(Route)) if Route in seen.step_types else 0,
        "windows": len(observed.windows),
        "heavy": len(expected.of(Heavy)),
        "answers": len(expected.of(Answer)) if Answer in seen.step_types else 0,
        "merged": sum(several > 1 for several in places.values()),
        **(balance._asdict() if balance else dict.fromkeys(Balance._fields)),
    }


SHOWN = (
    Figure("tuples", "tuples"),
    Figure("heavy", "heavy\nkeys"),
    Figure("rho", "rho", ".3f"),
    Figure("imbalance", "I", ".3f"),
    Figure("replication", "instances\na key", ".2f"),
    Figure("busiest_us", "busiest,\nus"),
)


def summarise_agreement(sums: Mapping[str, float]) -> str:
    """Return how many routes and answers agreed, over all cases."""
    return f"{sums['routes']:,} routes, tuple by tuple, and {sums['answers']:,} merged answers"


def guard(case: Case, figures: Figures) -> Verdict:
    """Require heavy keys and merged answers: without them a router does what a hash does."""
    config = GroupingConfig.from_json(case.workload.config)
    needed = [
        ("windows", 2, "there was one window, so that nothing was rebalanced"),
        ("heavy", 1, "no key was heavy"),
    ]
    if config.policy not in STAYING:
        needed.append(("merged", 1, "no key went to several instances"))
    lacking = [sentence for name, least, sentence in needed if (figures[name] or 0) < least]
    heavy, merged = int(figures["heavy"] or 0), int(figures["merged"] or 0)
    occurred = f"there were {counted(heavy, 'heavy key')} and {counted(merged, 'merged key')}"
    hint = " (a smaller theta or window_tuples may help)"
    return judge_guard(GUARD, case, lacking[0] if lacking else "", occurred, hint)


# ------------------------------------------------------------------------------------ timed runs


SIDES = {
    "policy": ("policy", ""),
    "tuples/s": ("throughput_hz", ",.0f"),
    "of ideal": ("share_of_ideal", ".0%"),
    "latency, ms": ("mean_latency_us", "ms"),
    "99%, ms": ("p99_latency_us", "ms"),
    "rho": ("mean_rho", ".3f"),
    "I": ("mean_imbalance", ".3f"),
    "instances\na key": ("instances_a_key", ".2f"),
}
"""Columns of the table of all policies: field of a side, and format; ``ms`` divides by 1,000."""


def alternatives(run: TimedRun, settings: Mapping[str, str], seed: int) -> Alternatives | None:
    """Return all policies side by side, if a second window tells them apart."""
    if "mean_rho" not in run.summary:
        return None
    sides = tuple(side_by_side(settings, seed))
    remark = (
        "tuples/s: how fast a backlog shrinks; latency: in the second half of the run, at its load"
        " (-: the policy cannot keep up); rho, I, instances a key: means over windows; rho and I"
        " leave out the first one. All that stands above the table, and a plot, is of policy"
        f" {run.summary['policy']}."
    )
    usual = EXAMPLE["policies"]
    if "policy" in settings and settings.get("policies", usual) == usual:
        remark += (
            f" policy={settings['policy']} does not change the table;"
            f" policies={settings['policy']} leaves out the others."
        )
    rows = tuple(tuple(_write(each[name], form) for name, form in SIDES.values()) for each in sides)
    return Alternatives(tuple(SIDES), rows, sides, remark) if sides else None


def _write(value: PlainData, form: str) -> str:
    if value is None:
        return "-"
    return f"{value / 1e3:,.1f}" if form == "ms" else format(value, form)


ROOM = Room(
    name="grouping",
    position=30,
    step_types=WORDS,
    answers=ANSWERS,
    config=GroupingConfig,
    inputs=f"{', '.join(inputs.NAMED)}, a recording, or a file",
    quick="--input flights",
    quick_s=5,
    batches=queries.BATCHES,
    options=queries.options,
    cases=cases,
    reference=make_system,
    spark=spark_pipeline(lambda: straggler.grouping.make_system),
    in_process=lambda: straggler.grouping.run_in_process,
    in_process_step_types=WORDS,
    compare=compare,
    check=judge,
    refuse_query=refuse_workload,
    figures=figures,
    shown=SHOWN,
    summarise_agreement=summarise_agreement,
    guard=guard,
    refuse_settings=refuse_settings,
    run=from_settings,
    timed=TIMED_ROOM,
    alternatives=alternatives,
    errata=ERRATA,
)
