"""Room ``slack`` as the command line and the tests know it."""

from collections.abc import Mapping
from functools import partial

import straggler
from model.checking.claims import Outcome, Verdict
from model.slack import make_system
from model.slack.claims import judge
from model.slack.evidence import IDENTITY
from model.slack.scopes import SCOPES, explore
from model.vocabulary import SlackConfig
from model.vocabulary.slack import WORDS, Judged, Progress
from model.vocabulary.windows import ANSWERS, Correction, Final, Late, Rejected, Result
from sim.slack import from_settings
from sim.slack.room import TIMED_ROOM
from sim.slack.settings import SETTINGS
from straggler.errors import counted
from straggler.rooms import Case, Explorer, Figure, Figures, JudgedCase, Room
from straggler.rooms.slack import queries
from straggler.rooms.slack.errata import ERRATA
from straggler.rooms.windows import queries as windowed
from straggler.rooms.windows.cases import NONE_LATE, Agreement, cases, is_in_order, tasks_hint
from straggler.rooms.windows.limits import refuse_config, refuse_settings
from straggler.wiring import judge_guard, spark_pipeline

GUARD = "something was late"
UNTESTED = "corrections were not tested"


def figures(seen: JudgedCase) -> Figures:
    """Return late pairs, corrections and coverage of a run, and the number of compared windows."""
    trace, step_types = seen.expected, seen.step_types
    final = trace.of(Final)
    tuples = sum(answer.n for answer in final)
    at_first = sum(result.n_rcv for result in trace.of(Result))
    compared = final if Final in step_types else trace.of(Result) if Result in step_types else ()
    return {
        "compared": len(compared),
        "late": len(trace.of(Late)),
        "corrections": len(trace.of(Correction)),
        "coverage_before": at_first / tuples if tuples else 1.0,
    }


SHOWN = (
    Figure("compared", "windows"),
    Figure("late", "late\npairs"),
    Figure("corrections", "correc-\ntions"),
    Figure("coverage_before", "coverage\nbefore", ".2%"),
)


def summarise_agreement(sums: Mapping[str, float]) -> str:
    """Return how many windows and late pairs agreed, over all cases."""
    late = sums["late"]
    pairs = "the one late pair" if late == 1 else f"every one of {late:,} late pairs"
    return f"{sums['compared']:,} windows, and {pairs} is accounted for"


def guard(case: Case, figures: Figures) -> Verdict:
    """Require a late pair and a correction: without them nothing that matters was compared."""
    late, corrections = int(figures["late"] or 0), int(figures["corrections"] or 0)
    if is_in_order(case) and not (late and corrections):
        sentence = (
            f"{case.input} is in order, so nothing can be late: that puts nothing to the test"
        )
        return Verdict(GUARD, Outcome.UNDETERMINED, sentence)
    lacking = "" if late else NONE_LATE
    if late and not corrections:
        lacking = "no late row changed an answer"
    made = counted(corrections, "correction")
    occurred = f"there were {counted(late, 'late pair')} and {made}"
    return judge_guard(GUARD, case, lacking, occurred, tasks_hint(case), UNTESTED)


EXPLORER = Explorer(
    scopes=tuple(SCOPES),
    everyday=("conformal", "small", "redelivery"),
    explore=explore,
)

ROOM = Room(
    name="slack",
    position=10,
    step_types=WORDS,
    answers=ANSWERS,
    config=SlackConfig,
    inputs="flights, umts, a recording in $STRAGGLER_DATA, or a file",
    quick="--input january --per task",
    quick_s=20,
    batches=windowed.BATCHES,
    options=queries.options,
    cases=partial(cases, "slack", queries.queries),
    reference=make_system,
    spark=spark_pipeline(lambda: straggler.slack.make_system),
    in_process=lambda: straggler.slack.run_in_process,
    in_process_step_types=(Result, Late, Judged, Rejected, Progress),
    compare=Agreement(WORDS, IDENTITY).compare,
    check=judge,
    refuse_query=refuse_config,
    figures=figures,
    shown=SHOWN,
    summarise_agreement=summarise_agreement,
    guard=guard,
    explorer=EXPLORER,
    refuse_settings=partial(refuse_settings, SETTINGS),
    run=from_settings,
    timed=TIMED_ROOM,
    errata=ERRATA,
)
