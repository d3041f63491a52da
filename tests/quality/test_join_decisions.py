"""Claims about decisions catch planted mistakes: in shedding, in resizing, in a controller."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from model.checking.claims import Outcome
from model.join import chain, mistakes
from model.join.claims import DECIDED_CASES, REJECTIONS, WRONG, judge
from model.join.control import decide, start, utilisation
from model.join.decision_claims import (
    CONTROLLED,
    LOG_CLAIMS,
    RESIZED,
    SHED,
    ControlLog,
    Logged,
    judge_log,
)
from model.join.replay import CLAIM as CONFORMS
from model.join.rules import Transition
from model.join.run import run
from model.join.state_claims import LOST
from model.vocabulary import Event, JoinConfig, Step, Trace, Workload
from model.vocabulary.join import (
    Ack,
    Admit,
    And,
    Decision,
    Drop,
    Forward,
    Match,
    Quiet,
    Receive,
    Rejected,
)
from model.vocabulary.join_load import LoadRules, LoadState, Measured
from properties.oracles.join import Recomputation, Row, split_mix
from tests.model.join.strategies import workload

# ------------------------------------------------------------------------------- an own oracle


def decided(seed: int) -> Workload:
    """Draw a workload with decisions: other workers, blocks and shares in every epoch."""
    case = workload(seed, limited=seed % 2 == 0)
    n = len(case.arrivals)
    config = replace(
        JoinConfig.from_json(case.config),
        decisions=(
            Decision(1, 1 + seed % 4, 2, 0.0 if seed % 3 else 0.5),
            Decision(2, 1 + (seed // 4) % 5, 1, 0.4),
            Decision(3, 1 + seed % 3, 9, 0.2),
        ),
    )
    return case.with_(config=config.to_json(), cuts=(n // 4, n // 2, 3 * n // 4))


def recompute(case: Workload, kind: type[Recomputation] = Recomputation) -> Trace:
    found = kind(case.to_json())
    last = sum(1 for _ in case.batches())
    pairs = [Match(*pair, last) for pair, n in found.pairs.items() for _ in range(n)]
    return Trace("recomputation", [*pairs, *(Rejected(*each) for each in found.rejected)])


@pytest.mark.parametrize("seed", range(1, 60))
def test_the_model_finds_what_a_recomputation_finds(seed: int) -> None:
    case = decided(seed)
    expected, found = recompute(case), run(case)
    assert expected.of(Rejected) == found.of(Rejected)
    assert Counter(each[:3] for each in expected.of(Match)) == Counter(
        each[:3] for each in found.of(Match)
    )


def test_draws_are_those_of_the_published_generator() -> None:
    # First outputs of SplitMix64 from state 0 (Steele, Lea, Flood 2014).
    published = (0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F)
    assert [split_mix(n) for n in range(3)] == [(each >> 11) / 2**53 for each in published]


# --------------------------------------------------------------------------- planted in admission

SHEDDING = JoinConfig(
    100, (("all", And()),), lateness_us=2, decisions=(Decision(0, 2, 4, 0.5), Decision(2, 2, 4, 0))
)


def shedding_case() -> Workload:
    """Return arrivals of which some are shed: of tuples that come again, late, or far ahead."""
    arrivals = []
    for seq in range(120):
        source_id = seq // 6
        at_us = source_id + (4 if source_id % 5 == 0 else 0)
        value = float("nan") if source_id % 7 == 3 else 1.0
        arrivals.append(Event(seq, source_id, "a", at_us, value, seq, "RS"[seq % 2]))
    return Workload("join", tuple(arrivals), SHEDDING.to_json(), (40, 80), name="shedding")


class MovesWatermark(Recomputation):
    def note_shed(self, row: Row) -> None:
        self.move_watermark(row[6], row[3])


class RemembersIdentity(Recomputation):
    def note_shed(self, row: Row) -> None:
        self.known.add((row[6], row[1]))


class DrawsAgain(Recomputation):
    """The draw depends on the attempt: the second one has other random numbers."""

    def is_shed(self, epoch: int, row: Row) -> bool:
        return split_mix(2 * row[0] + (row[6] == "S") + 1_000) < self.share(epoch)


class DrawsOnce(Recomputation):
    """The streams share their draws."""

    def is_shed(self, epoch: int, row: Row) -> bool:
        return split_mix(2 * row[0]) < self.share(epoch)


class LateFirst(Recomputation):
    def is_shed(self, epoch: int, row: Row) -> bool:
        return row[3] >= self.watermark_us[row[6]] and super().is_shed(epoch, row)


class EpochLate(Recomputation):
    def share(self, epoch: int) -> float:
        return super().share(epoch - 1)


class ShedsTheRest(Recomputation):
    def is_shed(self, epoch: int, row: Row) -> bool:
        return bool(self.share(epoch)) and not super().is_shed(epoch, row)


@pytest.mark.parametrize(
    ("mistake", "claims"),
    [
        (MovesWatermark, {REJECTIONS, LOST}),
        (RemembersIdentity, {LOST}),
        (DrawsAgain, {SHED, REJECTIONS}),
        (DrawsOnce, {SHED, REJECTIONS}),
        (LateFirst, {SHED, REJECTIONS}),
        (EpochLate, {SHED, REJECTIONS}),
        (ShedsTheRest, {SHED, REJECTIONS, WRONG}),
    ],
)
def test_a_mistake_in_shedding_is_found(mistake: type[Recomputation], claims: set[str]) -> None:
    case = shedding_case()
    right = judge(case, recompute(case))
    assert not broken(right.verdicts)
    shed_cases = [name for name in DECIDED_CASES if name.startswith("shed")]
    assert all(right.guards[name] for name in shed_cases), right.guards
    assert claims <= broken(judge(case, recompute(case, mistake)).verdicts)


def broken(verdicts: Any) -> set[str]:
    return {verdict.claim for verdict in verdicts if verdict.outcome is Outcome.BROKEN}


def test_shedding_without_a_decision_is_found() -> None:
    case = shedding_case()
    undecided = case.with_(config={**case.config, "decisions": []})
    assert REJECTIONS in broken(judge(undecided, recompute(case)).verdicts)


# --------------------------------------------------------------------------- planted in resizing

RESIZES = (Decision(1, 4, 2, 0.0), Decision(2, 2, 3, 0.0), Decision(3, 3, 1, 0.0))


def resizing_case(seed: int = 3) -> Workload:
    case = workload(seed, 80)
    config = replace(
        JoinConfig.from_json(case.config),
        queries=(("all", And()),),
        window_us=50,
        lateness_us=None,
        workers=2,
        decisions=RESIZES,
    )
    return case.with_(config=config.to_json(), cuts=(20, 40, 60))


def with_decisions(case: Workload, decisions: tuple[Decision, ...]) -> Workload:
    return case.with_(
        config=replace(JoinConfig.from_json(case.config), decisions=decisions).to_json()
    )


def test_a_resized_chain_keeps_every_promise() -> None:
    case = resizing_case()
    judged = judge(case, run(case))
    assert all(each.outcome is Outcome.HOLDS for each in judged.verdicts), judged.verdicts
    for guard in ("more workers", "fewer workers"):
        assert judged.guards[f"changes to {guard}"]
    assert judged.guards["tuples held when workers came or went"]
    assert judged.guards["results across a change of workers"]


def test_a_merge_that_joins_nothing_is_found() -> None:
    case = resizing_case()
    table = {**chain.TABLE, "merge": Transition(chain.can_merge, mistakes.merge_in_silence)}
    assert LOST in broken(judge(case, run(case, {"table": table})).verdicts)


@pytest.mark.parametrize(
    "taken",
    [
        tuple(each._replace(epoch=each.epoch + 1) for each in RESIZES),
        tuple(each._replace(block_size=9) for each in RESIZES),
        tuple(each._replace(workers=each.workers + 1) for each in RESIZES),
        (),
    ],
    ids=["an epoch late", "larger blocks", "more workers", "never"],
)
def test_other_decisions_than_those_of_the_run_are_found(taken: tuple[Decision, ...]) -> None:
    case = resizing_case()
    trace = run(with_decisions(case, taken))
    assert {RESIZED, CONFORMS} <= broken(judge(case, trace).verdicts)


def test_a_tuple_that_a_resized_chain_forgets_is_found() -> None:
    case = resizing_case()
    steps: list[Step] = []
    for word in (Match, Rejected, Admit, Forward, Receive, Ack, Drop, Quiet):
        steps += run(case).of(word)
    at, last = next((n, s) for n, s in enumerate(steps) if isinstance(s, Quiet) and s.r_held)
    assert isinstance(last, Quiet)
    steps[at] = last._replace(r_held=last.r_held - 1)
    assert RESIZED in broken(judge(case, Trace("x", steps)).verdicts)


# -------------------------------------------------------------------------- planted in a controller

RULES = LoadRules(
    0.25, 0.75, 0.8, 2_000, 3_000, 2, 6, capacity=20, blocks="adaptive", shed="linear", base=0.1,
    margin=0.1, smoothing=0.5, block_size=16,
)  # fmt: skip
LOADS = (1.0, 1.9, 2.0, 2.0, 2.0, 2.8, 3.9, 4.0, 4.0, 4.0, 2.6, 2.6, 1.0, 0.3, 0.2, 0.2, 0.2, 0.2)
Decided = tuple[LoadState, Decision]
Decide = Callable[[LoadRules, LoadState, Measured], Decided]


def log_of(planted: Decide) -> ControlLog:
    state = first = start(RULES, 2)
    steps = []
    for epoch, load in enumerate(LOADS):
        busy_us = tuple(int(1_000 * load / state.workers) for _ in range(state.workers))
        measured = Measured(epoch, 1_000, busy_us, 10, 0, 0)
        state, decision = planted(RULES, state, measured)
        steps.append(Logged(measured, state, decision))
    return ControlLog(RULES, first, steps)


def never_forgets(rules: LoadRules, state: LoadState, measured: Measured) -> Decided:
    after, decision = decide(rules, state, measured)
    if after.workers != state.workers:
        after = after._replace(high_since_us=state.high_since_us, low_since_us=state.low_since_us)
    return after, decision


def smooths_everything(rules: LoadRules, state: LoadState, measured: Measured) -> Decided:
    tau = utilisation(measured)
    smoothed = state.smoothed + rules.smoothing * (tau - state.smoothed)
    m = len(measured.busy_us)
    calm = measured._replace(busy_us=(int(smoothed * measured.elapsed_us),) * m)
    after, decision = decide(rules, state, calm)
    right, _ = decide(rules, state, measured)
    share = right.share
    return after._replace(smoothed=right.smoothed, share=share), decision._replace(share=share)


def smooths_nothing(rules: LoadRules, state: LoadState, measured: Measured) -> Decided:
    return decide(replace(rules, smoothing=1.0), state, measured)


def has_no_margin(rules: LoadRules, state: LoadState, measured: Measured) -> Decided:
    return decide(replace(rules, margin=0.0), state, measured)


def ignores_the_range(rules: LoadRules, state: LoadState, measured: Measured) -> Decided:
    return decide(replace(rules, least=1, most=99), state, measured)


def sizes_blocks_for_the_old_chain(
    rules: LoadRules, state: LoadState, measured: Measured
) -> Decided:
    after, decision = decide(rules, state, measured)
    stays = replace(rules, out_after_us=10**9, in_after_us=10**9)
    _, old = decide(stays, state, measured)
    return after, decision._replace(block_size=old.block_size)


def decides_for_this_epoch(rules: LoadRules, state: LoadState, measured: Measured) -> Decided:
    after, decision = decide(rules, state, measured)
    return after, decision._replace(epoch=measured.epoch)


MISTAKES = (
    never_forgets,
    smooths_everything,
    smooths_nothing,
    has_no_margin,
    ignores_the_range,
    sizes_blocks_for_the_old_chain,
    decides_for_this_epoch,
)


def test_a_correct_log_breaks_no_claim_and_has_every_case() -> None:
    judged = judge_log(log_of(decide))
    assert [each.outcome for each in judged.verdicts] == [Outcome.HOLDS]
    assert all(judged.guards[name] for name in LOG_CLAIMS.cases), judged.guards


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_of_a_controller_is_found(mistake: Decide) -> None:
    assert broken(judge_log(log_of(mistake)).verdicts) == {CONTROLLED}


@pytest.mark.parametrize(
    ("word", "fields"),
    [
        ("decision", {"share": 0.5}),
        ("decision", {"block_size": 9}),
        ("decision", {"workers": 4}),
        ("state", {"smoothed": 0.8}),
        ("measured", {"busy_us": (900, 900)}),
    ],
    ids=["another share", "larger blocks", "fewer workers", "another state", "less work"],
)
def test_a_changed_log_is_found(word: str, fields: dict[str, Any]) -> None:
    log = log_of(decide)
    assert [each.outcome for each in judge_log(log).verdicts] == [Outcome.HOLDS]
    steps = list(log.steps)
    steps[3] = steps[3]._replace(**{word: getattr(steps[3], word)._replace(**fields)})
    assert broken(judge_log(log._replace(steps=steps)).verdicts) == {CONTROLLED}
