"""Claims break on traces of timed runs, and of the model, if the rules of these have a planted bug.

A variant of a room is rules with a mistake; any other bug is one expression of the model, written
otherwise. A timed run replays each workload through the stated cluster.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import Any

import pytest

from model.checking.claims import Outcome
from model.grouping import balance_claims
from model.grouping import machine as grouping
from model.grouping import rules as routing
from model.join import oracle
from model.join import silence as idle_streams
from model.join.run import SeededRun, run
from model.script.run import Records, hosted_sensors
from model.script.silence import Silences
from model.slack import assumption
from model.slack import machine as slack
from model.slack import rules as slack_rules
from model.vocabulary import Trace, Workload
from model.watermark import machine as watermark
from model.windows import correction, rules, state
from sim.grouping.record import GroupingRecord
from sim.join import content
from sim.join import room as chain
from sim.join.load import LoadControl
from sim.join.room import TIMED_ROOM
from sim.script.cluster import ScriptCluster
from straggler.rooms import find_room
from tests.quality.claim_bugs import Bug, assert_breaks, broken, run_with
from tests.quality.mistakes import Mistake
from tests.quality.test_grouping_balance import CASE, WEIGHTS

BUGS: Mapping[str, tuple[Bug, ...]] = {
    "slack": (
        Bug(
            "a correction forgets to clear a pair",
            ("nothing owed after the flush",),
            Mistake(correction._clear, "for pair in pairs]", "for pair in pairs[1:]]"),
        ),
        Bug(
            "a window closes a slide too early",
            (
                "slack that covers every delay leaves nothing late",
                "what is late came later than the slack",
            ),
            Mistake(
                rules.first_open, "windows.first_index(wm_us)", "windows.first_index(wm_us) + 1"
            ),
        ),
        Bug(
            "a judged window has a tuple too many",
            ("judgements measure what was recorded", "measured misses are true misses"),
            Mistake(slack.Task._close_windows, "n_rcv = len(values)", "n_rcv = len(values) + 1"),
        ),
        Bug(
            "the controller takes misses for hits",
            ("misses within the conformal bound",),
            Mistake(slack_rules.conformal_step, "coverage.miss -", "0 -"),
        ),
        Bug(
            "the controller goes the other way",
            ("the controller answers for its misses",),
            Mistake(slack_rules.conformal_step, "alpha + config", "alpha - config"),
        ),
        Bug(
            "the published law goes the other way",
            ("pd steers the mean coverage",),
            Mistake(slack_rules.pd, "config.kp * err", "config.kp * -err"),
        ),
        Bug(
            "scores are not multiplied",
            ("delay and value are compared as they came",),
            Mistake(assumption.scores_of, "x * y for", "x + y for"),
        ),
        Bug(
            "the final answer has the revision before",
            ("final answers are the latest",),
            Mistake(state.Store.final, "answer.revision,", "answer.revision - 1,"),
        ),
        Bug(
            "revisions begin with 2",
            ("one writer",),
            Mistake(correction._write, "revision = 1", "revision = 2"),
        ),
    ),
    "watermark": (
        Bug(
            "a correction forgets to clear a pair",
            ("nothing owed after the flush",),
            Mistake(correction._clear, "for pair in pairs]", "for pair in pairs[1:]]"),
        ),
        Bug(
            "the final answer has the revision before",
            ("final answers are the latest",),
            Mistake(state.Store.final, "answer.revision,", "answer.revision - 1,"),
        ),
        Bug(
            "the watermark lies ahead of the wait",
            ("watermark within the wait of the largest event time",),
            Mistake(watermark.Task._advance_clock, "t_max_us - self.wait_us", "t_max_us + 1"),
        ),
        Bug(
            "half of the wait of the reading",
            ("reversal is waited for",),
            Mistake(
                watermark.Task._advance_clock,
                "self.rules.wait_us(self.config, self.cluster)",
                "self.rules.wait_us(self.config, self.cluster) // 2",
            ),
        ),
        Bug(
            "a window closes a slide too late",
            ("wrong answers are pending",),
            Mistake(rules.first_open, "first_index(wm_us)", "first_index(wm_us) - 1"),
        ),
    ),
    "join": (
        Bug(
            "a tuple at the watermark is late",
            ("rejected is what watermark and decisions say",),
            Mistake(oracle.Gate.offer, "ts_us < wm_us", "ts_us <= wm_us"),
        ),
        Bug(
            "half of the share is shed",
            ("what is shed is what the decisions ask for",),
            Mistake(
                oracle.Gate.offer, "draw(stream, seq) < share", "draw(stream, seq) < share / 2"
            ),
        ),
        Bug(
            "the floor of an idle stream forgets the lateness",
            ("a silent stream follows the other one, and makes nothing else late",),
            Mistake(idle_streams._floor_us, "other_us - lateness_us -", "other_us -"),
        ),
        Bug(
            "a floor is lost when the stream shows life",
            ("a silent stream follows the other one, and makes nothing else late",),
            Mistake(
                idle_streams.begin_epoch,
                "_replace(showed_life=False,",
                "_replace(showed_life=False, floor_us=-(1 << 63),",
            ),
        ),
        Bug(
            "late arrivals are no sign of life",
            ("a silent stream follows the other one, and makes nothing else late",),
            Mistake(oracle.Gate.offer, "is_accepted = True", "is_accepted |= ts_us >= wm_us"),
        ),
    ),
    "grouping": (
        Bug(
            "nothing is rejected",
            ("rejected is what is not finite",),
            Mistake(
                grouping.Machine.serve,
                "return (Rejected(event.seq, REASON_NOT_FINITE),)",
                "return ()",
            ),
        ),
        Bug(
            "a partial aggregate is lost",
            (
                "partial aggregates are those of what the instances got",
                "answers are those of all tuples",
            ),
            Mistake(
                grouping.Machine.results,
                "sorted(self._got.items())",
                "sorted(self._got.items())[1:]",
            ),
        ),
    ),
    "script": (
        Bug(
            "times without a finite result are not told",
            ("where nothing finite comes out is told",),
            Mistake(Records.undefined, "for stamp in stamps", "for stamp in ()"),
        ),
        Bug(
            "the watermark of an idle sensor forgets the lateness",
            ("silence makes late what lies too far behind all sensors, and nothing else",),
            Mistake(Silences.floor_us, "self._latest_us - self._lateness_us", "self._latest_us"),
        ),
    ),
}
"""Planted bugs of the model, which timed runs have as well, by room."""
OF_THE_MODEL: Mapping[str, tuple[Bug, ...]] = {
    "join": (
        Bug(
            "pairs are twice as far apart",
            ("no pair that is no result",),
            Mistake(oracle.queries_of, "> config.window_us", "> 2 * config.window_us"),
        ),
        Bug(
            "every pair has epoch 0",
            ("no pair before its tuples",),
            Mistake(SeededRun._emit, "r_id, s_id, epoch)", "r_id, s_id, 0)"),
        ),
        Bug(
            "a query goes on after its last epoch",
            ("no pair from outside of the epochs of its query",),
            Mistake(oracle.asks_about, "(last is None or epoch <= last)", "True"),
        ),
    ),
    "grouping": (
        Bug(
            "every other route is lost",
            ("every arrival goes to one instance",),
            Mistake(grouping.run, "steps.append(taken)", "steps += [taken][: taken.seq % 2]"),
        ),
    ),
    "script": (
        Bug(
            "sensors are sent to the next worker",
            ("workers are sent the sensors that are asked for",),
            Mistake(hosted_sensors, "enumerate(placement.hosts)", "enumerate(placement.hosts, 1)"),
        ),
    ),
}
"""Planted bugs of the model alone."""
OF_TIMED_RUNS: Mapping[str, tuple[Bug, ...]] = {
    "join": (
        Bug(
            "near is far",
            ("no pair that is no result",),
            Mistake(
                content._compared,
                "is_near if isinstance(predicate, Band) else ~is_near",
                "is_near",
            ),
        ),
        Bug(
            "every pair has epoch 0",
            ("no pair before its tuples",),
            Mistake(chain._matches, "(query, r_id, s_id, epoch)", "(query, r_id, s_id, 0 * epoch)"),
        ),
        Bug(
            "a query begins before its first epoch",
            ("no pair from outside of the epochs of its query",),
            Mistake(content.Index._is_pair, "good &= epochs >= first", "pass"),
        ),
        Bug(
            "a decision is in force an epoch late",
            (
                "workers come and go as decided, and no tuple held is lost or doubled",
                "the recorded steps are a behaviour of the protocol",
            ),
            Mistake(
                LoadControl.take_decision,
                "decision_at(self._config, epoch)",
                "decision_at(self._config, epoch - 1)",
            ),
        ),
    ),
    "grouping": (
        Bug(
            "every other route is lost",
            ("every arrival goes to one instance",),
            Mistake(
                GroupingRecord.all_steps,
                "enumerate(self.passages)",
                "[*enumerate(self.passages)][::2]",
            ),
        ),
    ),
    "script": (
        Bug(
            "sensors are sent to the next worker",
            ("workers are sent the sensors that are asked for",),
            Mistake(ScriptCluster.trace, "enumerate(self._sensors)", "enumerate(self._sensors, 1)"),
        ),
    ),
}
"""Planted bugs of timed runs alone."""


def listed(*tables: Mapping[str, tuple[Bug, ...]]) -> pytest.MarkDecorator:
    each = [(room, bug) for table in tables for room, bugs in table.items() for bug in bugs]
    return pytest.mark.parametrize(
        ("room", "bug"), each, ids=[f"{room}: {bug.name}" for room, bug in each]
    )


def timed(room: str, workload: Workload) -> Trace:
    """Return the trace of a timed run; that of a chain has the steps of the protocol."""
    replay = TIMED_ROOM.replay if room == "join" else find_room(room).replay
    return replay(workload).trace


@listed(BUGS, OF_THE_MODEL)
def test_a_bug_of_the_model_breaks_its_claims(room: str, bug: Bug) -> None:
    # The reference of room join joins without a chain.
    assert_breaks(room, run if room == "join" else find_room(room).reference(), bug)


@listed(BUGS, OF_TIMED_RUNS)
def test_a_bug_of_a_timed_run_breaks_its_claims(room: str, bug: Bug) -> None:
    assert_breaks(room, partial(timed, room), bug)


# ---------------------------------------------------------------------------------------- variants

UNSEEN = {
    "clears_first": "no correction is killed in a timed run",
    "clears_everything": "each task of a timed run has a store of its own",
    "lost_update": "the figures of a timed run stop at a window that is answered twice",
}
"""Variants whose trace nobody can judge in a timed run, and why."""
VARIANTS = [
    (room, name)
    for room in ("slack", "watermark")
    for name in find_room(room).explorer.variants
    if name not in UNSEEN
]


@pytest.mark.parametrize(("room", "name"), VARIANTS)
def test_a_variant_breaks_its_promise_in_a_timed_run(
    monkeypatch: pytest.MonkeyPatch, room: str, name: str
) -> None:
    variant: Any = find_room(room).explorer.variants[name]
    wired = import_module(f"sim.{room}.room")

    def judged() -> set[str]:
        return broken(room, variant.example, timed(room, variant.example))

    assert judged() == set()
    monkeypatch.setattr(wired, "MODEL", replace(wired.MODEL, rules=variant.rules))
    if hasattr(wired, "RULES"):  # the operators upstream follow them
        monkeypatch.setattr(wired, "RULES", variant.rules)
    assert variant.promise in judged()


# ------------------------------------------------------------------------- the balance of a router

LOST: Mapping[str, Mistake] = {
    "model": OF_THE_MODEL["grouping"][0].mistake,
    "timed": OF_TIMED_RUNS["grouping"][0].mistake,
}
"""The mistake that loses every other route, by producer."""
MOST_LOAD = Mistake(routing.least, "loads[one] <= loads[other]", "loads[one] > loads[other]")


def unbalanced(trace: Trace | None) -> set[str]:
    assert trace is not None
    verdicts = balance_claims.check(CASE, trace, WEIGHTS, delta=1e-9)
    return {each.claim for each in verdicts if each.outcome is Outcome.BROKEN}


def test_lost_routes_of_the_model_are_less_work_than_candidates_allow() -> None:
    run = find_room("grouping").reference()
    assert unbalanced(run(CASE)) == set()
    assert balance_claims.LOWER in unbalanced(run_with(LOST["model"], run, CASE))


def test_balance_breaks_in_a_timed_run_that_prefers_the_most_load_or_loses_routes() -> None:
    run = partial(timed, "grouping")
    assert unbalanced(run(CASE)) == set()
    assert balance_claims.UPPER in unbalanced(run_with(MOST_LOAD, run, CASE))
    assert balance_claims.LOWER in unbalanced(run_with(LOST["timed"], run, CASE))
