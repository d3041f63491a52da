"""Claims break on the traces of Spark's operators in process if these have a planted bug.

Each bug is one expression of ``spark_impl``, written otherwise. The claims alone judge the traces:
those that need steps which no operator records in process are undetermined.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pytest

from model.checking.claims import Outcome, Recording
from model.grouping import balance_claims
from model.join.decision_claims import judge_log
from spark_impl.grouping import candidates, instances, keys, router
from spark_impl.grouping import system as grouping
from spark_impl.join import control, in_process, matching
from spark_impl.join.admission import Intake
from spark_impl.join.in_process import Network
from spark_impl.join.worker import Worker
from spark_impl.script import admission, graph, kernel
from spark_impl.script.placement import Placing
from spark_impl.script.plan import Plan
from spark_impl.slack import control_laws, requirement
from spark_impl.slack.judgement import Judgement
from spark_impl.slack.rule import Foresight
from spark_impl.watermark.rule import WatermarkRule
from spark_impl.watermark.upstream import UpstreamRule
from spark_impl.windows import disorder
from spark_impl.windows import kernel as windows
from spark_impl.windows.kernel import OpenWindows
from straggler.rooms import find_room
from straggler.rooms.join.load_curves import courses
from straggler.strategies.examples import collect
from tests.properties.join.test_load import log_of
from tests.quality.claim_bugs import SEED, Bug, assert_breaks, run_with
from tests.quality.mistakes import Mistake
from tests.quality.test_grouping_balance import CASE, WEIGHTS

DELTA = 1e-9
"""Probability that a right router exceeds the bound of its work."""
TROUBLED = Network(ordered=False, twice=0.2)
"""Messages of a chain overtake each other, and some come twice."""

BUGS: Mapping[str, tuple[Bug, ...]] = {
    "slack": (
        Bug(
            "a late pair is not recorded",
            ("each pair once", "wrong answers are pending"),
            Mistake(OpenWindows.miss, "windows=until - first + 1", "windows=until - first"),
        ),
        Bug(
            "a late tuple joins its closed windows",
            ("one writer", "measured misses are true misses"),
            Mistake(
                windows._MicroBatch._stretch, "lo = np.maximum(first, still_open)", "lo = first"
            ),
        ),
        Bug(
            "alpha is not clipped",
            ("alpha within 0 and 1",),
            Mistake(control_laws._clipped, "min(max(alpha, 0.0), 1.0)", "alpha"),
        ),
        Bug(
            "the slack is a microsecond too long",
            (
                "slack within 0 and the largest delay",
                "an in-order stream has no slack and nothing late",
                "slack follows alpha",
            ),
            Mistake(
                control_laws.slack_us,
                "slack = np.minimum(share, max_delay_us)",
                "slack = share + 1",
            ),
        ),
        Bug(
            "the watermark falls",
            ("watermark never decreases",),
            Mistake(
                Foresight.draw,
                "np.maximum(np.maximum.accumulate(t_max[:at] - slack), wm_us)",
                "t_max[:at] - slack",
            ),
        ),
        Bug(
            "a window closes a slide too early",
            (
                "slack that covers every delay leaves nothing late",
                "what is late came later than the slack",
            ),
            Mistake(OpenWindows.first_open, "slide_us + 1", "slide_us + 2"),
        ),
        Bug(
            "a judged window has a tuple too many",
            ("judgements measure what was recorded", "measured misses are true misses"),
            Mistake(Judgement.count, 'n_rcv=closed["n_rcv"]', 'n_rcv=closed["n_rcv"] + 1'),
        ),
        Bug(
            "the controller takes misses for hits",
            ("misses within the conformal bound",),
            Mistake(control_laws.conformal_path, "int(missed)", "0"),
        ),
        Bug(
            "the controller goes the other way",
            ("the controller answers for its misses",),
            Mistake(
                control_laws.conformal_path,
                "alpha + config.learning_rate",
                "alpha - config.learning_rate",
            ),
        ),
        Bug(
            "the published law goes the other way",
            ("pd steers the mean coverage",),
            Mistake(control_laws._pd, "config.kp * err +", "config.kp * -err +"),
        ),
        Bug(
            "half of the coverage is required",
            ("required coverage is right",),
            Mistake(requirement.required_tuples, "np.clip(wanted, 0, total)", "wanted // 2"),
        ),
    ),
    "watermark": (
        Bug(
            "the wait is a microsecond too short",
            ("watermark within the wait of the largest event time", "calm is not waited for"),
            Mistake(WatermarkRule.path, "[start:] - wait", "[start:] - wait + 1"),
        ),
        Bug(
            "the watermark falls",
            ("watermark never decreases", "watermark follows the wait"),
            Mistake(
                WatermarkRule.path,
                "np.maximum(np.maximum.accumulate(self._t_max[start:] - wait), wm_us)",
                "self._t_max[start:] - wait",
            ),
        ),
        Bug(
            "only the last stretch has clocks",
            ("every accepted arrival has a clock",),
            Mistake(WatermarkRule.settle, "self._clocks.append(clocks)", "self._clocks = [clocks]"),
        ),
        Bug(
            "half of the wait of the reading",
            ("the wait is that of the reading", "reversal is waited for"),
            Mistake(disorder.wait_us, "// pairs, longest_us)", "// pairs, longest_us) // 2"),
        ),
        Bug(
            "the pairs in order are waited for",
            ("the wait is monotone in the disorder",),
            Mistake(disorder.wait_us, "* inv // pairs", "* (pairs - inv) // pairs"),
        ),
        Bug(
            "a window closes a slide too early",
            ("late means closed",),
            Mistake(OpenWindows.first_open, "slide_us + 1", "slide_us + 2"),
        ),
        Bug(
            "a window closes a slide too late",
            ("windows close at the watermark", "wrong answers are pending"),
            Mistake(OpenWindows.first_open, "slide_us + 1", "slide_us"),
        ),
        Bug(
            "a late tuple joins its closed windows",
            ("one writer",),
            Mistake(
                windows._MicroBatch._stretch, "lo = np.maximum(first, still_open)", "lo = first"
            ),
        ),
        Bug(
            "a late pair is not recorded",
            ("each pair once",),
            Mistake(OpenWindows.miss, "windows=until - first + 1", "windows=until - first"),
        ),
        Bug(
            "an operator upstream does not wait",
            ("upstream clocks follow the disorder",),
            Mistake(UpstreamRule._pass, "accumulate(t_max - wait)", "accumulate(t_max)"),
        ),
        Bug(
            "windows close before the insertion",
            (
                "windows close at the inserted watermark",
                "late means that a watermark was inserted",
            ),
            Mistake(
                UpstreamRule.receive,
                'event_time_us=inserted["wm_us"]',
                'event_time_us=inserted["wm_us"] + 10',
            ),
        ),
        Bug(
            "an operator upstream is idle after twice the silence",
            ("an idle operator holds nothing back",),
            Mistake(UpstreamRule._awake_until, ") + idle_us", ") + 2 * idle_us"),
        ),
        Bug(
            "the greatest watermark is inserted",
            ("the least watermark is inserted",),
            Mistake(UpstreamRule._least, '["wm_us"].min()', '["wm_us"].max()'),
        ),
    ),
    "join": (
        Bug(
            "a block is joined whenever it comes",
            ("no pair twice",),
            Mistake(
                Worker._take_in,
                "self.outbox.append((sender, again))",
                "self._join_in(sender, lane, other, [block])",
            ),
        ),
        Bug(
            "blocks that are on their way meet nobody",
            ("no pair lost", "the recorded steps are a behaviour of the protocol"),
            Mistake(Worker._join_in, "meets_copies = lane.stream == R", "meets_copies = False"),
        ),
        Bug(
            "near is far",
            ("no pair that is no result",),
            Mistake(matching.holds, "near if isinstance(predicate, Band) else ~near", "near"),
        ),
        Bug(
            "every pair has epoch 0",
            ("no pair before its tuples",),
            Mistake(in_process.results_of, "worker.epoch", "0"),
        ),
        Bug(
            "a tuple at the watermark is late",
            ("rejected is what watermark and decisions say",),
            Mistake(Intake.admit, "given.ts < self._watermarks", "given.ts <= self._watermarks"),
        ),
        Bug(
            "every query pairs the tuples of all epochs",
            ("no pair from outside of the epochs of its query",),
            Mistake(matching.ranks_of, "if (first, last) == (0, None)", "if True"),
        ),
        Bug(
            "half of the share is shed",
            ("what is shed is what the decisions ask for",),
            Mistake(Intake.admit, "< self._share", "< self._share / 2"),
        ),
        Bug(
            "a decision is in force an epoch late",
            (
                "workers come and go as decided, and no tuple held is lost or doubled",
                "the recorded steps are a behaviour of the protocol",
            ),
            Mistake(control.find_in_force, "each.epoch <= epoch", "each.epoch < epoch"),
        ),
    ),
    "grouping": (
        Bug(
            "every other route is lost",
            ("every arrival goes to one instance",),
            Mistake(
                grouping._routes,
                "yield Route(seq, seq % config.senders, instance)",
                "if seq % 2: yield Route(seq, seq % config.senders, instance)",
            ),
        ),
        Bug(
            "the candidates are those of another seed",
            ("every tuple goes to a candidate of its key",),
            Mistake(candidates.candidates, "config.hash_seed)", "config.hash_seed + 1)"),
        ),
        Bug(
            "the most load attracts",
            ("every tuple goes where its sender has sent the least work",),
            Mistake(router._of_candidates, "loads[two] < loads[one]", "loads[two] > loads[one]"),
        ),
        Bug(
            "a key is heavy above twice the share",
            ("heavy keys are those of the window before",),
            Mistake(keys.find_heavy_keys, "counted > least", "counted > 2 * least"),
        ),
        Bug(
            "a heavy key has one candidate",
            ("few instances a key",),
            Mistake(candidates._enough, "return order[:length]", "return order[:1]"),
        ),
        Bug(
            "only one of several partial aggregates counts",
            (
                "partial aggregates are those of what the instances got",
                "answers are those of all tuples",
            ),
            Mistake(instances._combine, '("n", "sum")', '("n", "max")'),
        ),
        Bug(
            "nothing is rejected",
            ("rejected is what is not finite",),
            Mistake(grouping.rejected, "not math.isfinite(event.value)", "False"),
        ),
    ),
    "script": (
        Bug(
            "the sides of a difference may be exchanged",
            ("results are what the workflows mean",),
            Mistake(
                graph._Sharing._node,
                "inputs if expression.op in _ORDERED else sorted(inputs)",
                "sorted(inputs)",
            ),
        ),
        Bug(
            "times without a finite result are not told",
            ("where nothing finite comes out is told",),
            Mistake(kernel._Step.compute, "self._undefined[number] = tuples.ts[~good]", "pass"),
        ),
        Bug(
            "a tuple at the watermark is late",
            ("rejected is what is late or not finite",),
            Mistake(admission.admit, "arrivals.ts < wm", "arrivals.ts <= wm"),
        ),
        Bug(
            "the lateness is a hundred times as long",
            ("late is what lies behind the latest, and all that lies farther than the lateness",),
            Mistake(admission._fixed, "latest - longest_us", "latest - 100 * longest_us"),
        ),
        Bug(
            "a sensor is sent to nobody",
            ("workers are sent the sensors that are asked for",),
            Mistake(Plan.hosted, "self.hosts.items()", "[*self.hosts.items()][1:]"),
        ),
        Bug(
            "the worker that gets a component is not charged",
            ("no worker has more than the bound of LPT",),
            Mistake(Placing._longest_first, "+= piece.load", "+= 0"),
        ),
    ),
}
"""Planted bugs, by room."""


@pytest.mark.parametrize(
    ("room", "bug"),
    [(room, bug) for room, bugs in BUGS.items() for bug in bugs],
    ids=[f"{room}: {bug.name}" for room, bugs in BUGS.items() for bug in bugs],
)
def test_a_bug_of_an_operator_breaks_its_claims(room: str, bug: Bug) -> None:
    found = find_room(room)
    run = partial(in_process.run_in_process, network=TROUBLED)
    silent = frozenset(found.step_types).difference(found.in_process_step_types)
    assert_breaks(room, run if room == "join" else found.in_process, bug, Recording(silent))


# ------------------------------------------------------------------------------ claims of their own


LOST = BUGS["grouping"][0].mistake
MOST_LOAD = BUGS["grouping"][2].mistake


def unbalanced(mistake: Mistake | None = None) -> set[str]:
    run = find_room("grouping").in_process
    trace = run(CASE) if mistake is None else run_with(mistake, run, CASE)
    assert trace is not None
    verdicts = balance_claims.check(CASE, trace, WEIGHTS, DELTA)
    return {each.claim for each in verdicts if each.outcome is Outcome.BROKEN}


def test_a_right_router_keeps_both_bounds_of_work() -> None:
    assert unbalanced() == set()


def test_a_router_that_prefers_the_most_load_exceeds_the_bound_of_work() -> None:
    assert balance_claims.UPPER in unbalanced(MOST_LOAD)


def test_lost_routes_are_less_work_than_candidates_allow() -> None:
    assert balance_claims.LOWER in unbalanced(LOST)


def controlled(decide: Callable[..., Any]) -> set[str]:
    verdicts = [
        each
        for course in collect(courses(), 20, SEED)
        for each in judge_log(log_of(decide, course)).verdicts
    ]
    return {each.claim for each in verdicts if each.outcome is Outcome.BROKEN}


def test_a_controller_that_rounds_down_breaks_its_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    assert controlled(control.decide) == set()
    Mistake(control.decide, "rules.aim + 0.5", "rules.aim").plant(monkeypatch)
    assert controlled(control.decide)
