"""Room ``watermark`` as the command line and the tests know it."""

from collections.abc import Mapping, Sequence
from functools import partial
from statistics import fmean

import straggler
from model.checking.claims import Verdict
from model.vocabulary import WatermarkConfig
from model.vocabulary.watermark import WORDS, Clock, Inserted, Passing
from model.vocabulary.windows import ANSWERS, Final, Late, Rejected, Result
from model.watermark import make_system
from model.watermark.claims import judge
from model.watermark.evidence import IDENTITY
from sim.watermark import SETTINGS, from_settings
from sim.watermark.room import TIMED_ROOM
from straggler.errors import counted
from straggler.rooms import Case, Figure, Figures, JudgedCase, Room
from straggler.rooms.watermark import queries
from straggler.rooms.watermark.errata import ERRATA
from straggler.rooms.windows import queries as windowed
from straggler.rooms.windows.cases import NONE_LATE, Agreement, cases, is_in_order, tasks_hint
from straggler.rooms.windows.limits import refuse_settings
from straggler.wiring import judge_guard, spark_pipeline

GUARD = "the wait followed the disorder"
SECOND_US = 1_000_000


def figures(seen: JudgedCase) -> Figures:
    """Return windows, clocks, waits and late pairs of the reference."""
    trace = seen.expected
    clocks: Sequence[Clock | Passing] = [*trace.of(Clock), *trace.of(Passing)]
    late = len(trace.of(Late))
    received = sum(result.n_rcv for result in trace.of(Result))
    waits = {clock.wait_us for clock in clocks}
    waited_us = fmean(clock.t_max_us - clock.wm_us for clock in clocks) if clocks else None
    windows = len(trace.of(Final)) if Final in seen.step_types else len(trace.of(Result))
    return {
        "compared": windows,
        "clocks": len(clocks) if {Clock, Passing} <= {*seen.step_types} else 0,
        "waits": len(waits),
        "late": late,
        "coverage": received / (received + late) if received + late else 1.0,
        "waited_s": None if waited_us is None else waited_us / SECOND_US,
    }


SHOWN = (
    Figure("compared", "windows"),
    Figure("clocks", "clocks"),
    Figure("late", "late\npairs"),
    Figure("coverage", "coverage", ".2%"),
    Figure("waited_s", "mean\nwait, s", ",.3f"),
)


def summarise_agreement(sums: Mapping[str, float]) -> str:
    """Return how many windows, clocks and late pairs agreed, over all cases."""
    clocks = f" and {sums['clocks']:,} clocks" if sums["clocks"] else ""
    compared = f"{sums['compared']:,} windows{clocks}"
    return f"{compared}, and every one of {sums['late']:,} late pairs is accounted for"


def guard(case: Case, figures: Figures) -> Verdict:
    """Require disorder and waits of several lengths: otherwise any watermark would do.

    The first arrival of a task always changes its wait; only later changes count. An input whose
    devices are each in order counts as disordered if the devices together are not.
    """
    waits, late = int(figures["waits"] or 0), int(figures["late"] or 0)
    if case.workload.config.get("reading") == "fixed":
        lacking = "" if late else NONE_LATE
    elif is_in_order(case):
        lacking = "everything came in order"
    else:
        lacking = "" if waits > 1 else "the wait was the same all the time"
    occurred = f"waits had {counted(waits, 'length')}, and {counted(late, 'pair')} came late"
    return judge_guard(GUARD, case, lacking, occurred, tasks_hint(case))


ROOM = Room(
    name="watermark",
    position=40,
    step_types=WORDS,
    answers=ANSWERS,
    config=WatermarkConfig,
    inputs="flights, umts, a recording in $STRAGGLER_DATA, or a file",
    quick="--input january",
    quick_s=16,
    batches=windowed.BATCHES,
    options=queries.options,
    cases=partial(cases, "watermark", queries.queries),
    reference=make_system,
    spark=spark_pipeline(lambda: straggler.watermark.make_system),
    in_process=lambda: straggler.watermark.run_in_process,
    in_process_step_types=(Clock, Passing, Inserted, Result, Late, Rejected),
    compare=Agreement(WORDS, IDENTITY).compare,
    check=judge,
    refuse_query=queries.refuse_config,
    figures=figures,
    shown=SHOWN,
    summarise_agreement=summarise_agreement,
    guard=guard,
    refuse_settings=partial(refuse_settings, SETTINGS),
    run=from_settings,
    timed=TIMED_ROOM,
    errata=ERRATA,
)
