"""A silent stream follows the other one between epochs, and is late only by what that one sent."""

from collections import Counter
from collections.abc import Collection

import pytest
from hypothesis import given

from model.checking.claims import Outcome
from model.join import run
from model.join.claims import judge
from model.join.oracle import admission
from model.vocabulary import Event, JoinConfig, Workload
from model.vocabulary.join import NO_WATERMARK_US, REASON_LATE, And, Drop, Match, Quiet, Rejected
from properties.oracles.join import Recomputation
from properties.stream_packs import collect
from straggler.strategies.join import cases

RUNS = 200
SILENT_CASES = ("arrivals late by a floor", "tuples above a floor")


def case(*epochs: str, idle_after_us: int | None = 20, workers: int = 2) -> Workload:
    """Return epochs such as ``R10 S12``: a stream and an event time for each arrival."""
    config = JoinConfig(3, (("all", And()),), workers, lateness_us=5, idle_after_us=idle_after_us)
    arrivals: list[Event] = []
    cuts: list[int] = []
    for epoch in epochs:
        for each in epoch.split():
            seq = len(arrivals)
            arrivals.append(Event(seq, seq, "a", int(each[1:]), 1.0, seq, each[0]))
        cuts.append(len(arrivals))
    return Workload("join", tuple(arrivals), config.to_json(), tuple(cuts), flush=False)


def floors(workload: Workload) -> list[tuple[int | None, int | None]]:
    """Return the floors of R and of S at the beginning of each epoch; ``None``: none yet."""
    return [
        tuple(None if each[s] == NO_WATERMARK_US else each[s] for s in "RS")  # type: ignore[misc]  # two streams
        for each in admission(workload).floors_us
    ]


def late(workload: Workload) -> list[int]:
    return [each.seq for each in run(workload).of(Rejected) if each.reason == REASON_LATE]


def test_a_silent_stream_follows_at_the_beginning_of_an_epoch() -> None:
    # S last showed life when R was at 10: it is idle when R is beyond 30, and then 25 behind R.
    followed = case("R10 S10", "R30", "R31", "R50", "R51")
    assert floors(followed) == [(None, None), (None, None), (None, None), (None, 6), (None, 25)]


def test_a_stream_that_never_sent_follows_from_the_first_tuple_of_the_other_on() -> None:
    assert floors(case("R10", "R30", "R31", "R32")) == [
        *((None, None),) * 3,
        (None, 31 - 25),
    ]


def test_without_idle_after_nothing_follows() -> None:
    assert floors(case("R10 S10", "R90", "R91", idle_after_us=None)) == [(None, None)] * 3


def test_a_stream_that_returns_is_late_below_its_floor_and_lets_it_stay() -> None:
    returned = case("R10 S10", "R60", "R61 S34", "R62 S35 S34", "R63 S34")
    # The floor of the third epoch is 60 - 25 = 35, and S shows life there.
    assert floors(returned) == [(None, None), (None, None), (None, 35), (None, 35), (None, 35)]
    assert late(returned) == [4, 7, 9]


def test_late_arrivals_are_a_sign_of_life() -> None:
    # S is always 50 behind R: without a sign of life its floor would keep its distance to R.
    behind = case("R0 S0", "R60", "R70 S20", "R80 S30", "R90 S40")
    assert floors(behind)[-3:] == [(None, 35)] * 3
    assert late(behind) == [4, 6]


def test_stores_of_the_other_stream_become_empty() -> None:
    steps = run(case("R10 S10", "R40", "R41", "R42", "R60", workers=1))
    held = [each.r_held for each in steps.of(Quiet)]
    assert any(each.stream == "R" for each in steps.of(Drop))
    without = run(case("R10 S10", "R40", "R41", "R42", "R60", workers=1, idle_after_us=None))
    assert held[-1] < [each.r_held for each in without.of(Quiet)][-1] == 5


# ------------------------------------------------------------------------------------- the oracle


def is_recomputed(workload: Workload, oracle: type[Recomputation] = Recomputation) -> bool:
    """Return whether rejections and, after a flush, pairs are those of the oracle."""
    expected, found = oracle(workload.to_json()), run(workload)
    rejected = Counter((e.stream, e.seq, e.source_id, e.reason) for e in found.of(Rejected))
    pairs = Counter((each.query, each.r_id, each.s_id) for each in found.of(Match))
    return rejected == Counter(expected.rejected) and (
        expected.pairs == pairs if workload.flush else not pairs - expected.pairs
    )


@given(workload=cases())
def test_admission_is_that_of_a_recomputation(workload: Workload) -> None:
    assert is_recomputed(workload)


class ForgetsLateness(Recomputation):
    def raise_floor(self, stream: str, floor_us: float) -> None:
        super().raise_floor(stream, floor_us + self.lateness_us + self.idle_after_us)


class AlwaysAlive(Recomputation):
    def set_marks(self, accepted: Collection[str]) -> None:
        super().set_marks("RS")


class NeverAlive(Recomputation):
    def set_marks(self, accepted: Collection[str]) -> None:
        super().set_marks("")


@pytest.mark.parametrize("oracle", [ForgetsLateness, AlwaysAlive, NeverAlive])
def test_drawn_silences_show_a_mistake_of_either_side(
    oracle: type[Recomputation], seed: int
) -> None:
    assert not all(is_recomputed(each, oracle) for each in collect(cases(), RUNS, seed))


def test_drawn_cases_contain_silences_that_matter(seed: int) -> None:
    evidence = [judge(each, run(each)) for each in collect(cases(), RUNS, seed)]
    for guard in SILENT_CASES:
        assert sum(each.guards[guard] > 0 for each in evidence) >= 5, f"there were no {guard}"
    assert not any(v.outcome is Outcome.BROKEN for each in evidence for v in each.verdicts)
