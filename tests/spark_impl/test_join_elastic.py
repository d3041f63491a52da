"""Other numbers of workers from epoch to epoch: every pair still comes exactly once."""

from collections import Counter
from itertools import product

import numpy as np
import pytest

from model.vocabulary import JoinConfig, Workload
from model.vocabulary.join import Quiet, Receive, Rejected
from spark_impl.join import checkpoint
from spark_impl.join.admission import NO_IDENTITIES, Admitted
from spark_impl.join.checkpoint import WorkerState, adopt
from spark_impl.join.in_process import Network, run_in_process
from spark_impl.join.matching import Tuples
from spark_impl.join.side import Matcher
from tests.spark_impl.join_cases import admitted, nested_loop, pairs, random_case

SIZES = [(3, 1), (1, 4), (2, 3, 5, 1), (5, 4, 3, 2), (4, 2, 7, 3)]
BATCHES = 5
NETWORK = Network(ordered=False, twice=0.1, unforced=0.3)


def case_of(seed: int) -> Workload:
    """Return a case with several epochs, so that workers hold tuples when their number changes."""
    case = random_case(seed, tuples=60, at_least=40)
    size = len(case.arrivals)
    return case.with_(cuts=tuple(size * n // BATCHES for n in range(1, BATCHES)))


def broken(sizes: tuple[int, ...]) -> list[int]:
    """Return the seeds of cases with wrong results."""
    return [
        seed
        for seed in range(20)
        if pairs(run_in_process(case_of(seed), NETWORK, workers=sizes))
        != nested_loop(case_of(seed))
    ]


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_every_pair_exactly_once(sizes: tuple[int, ...]) -> None:
    met: Counter[str] = Counter()
    for seed in range(30):
        case = case_of(seed)
        trace = run_in_process(case, NETWORK, workers=sizes)
        assert pairs(trace) == nested_loop(case), f"seed {seed}"
        assert set(trace.of(Rejected)) == admitted(case)[1], f"seed {seed}"
        for step in trace.of(Quiet):
            assert step.worker < sizes[step.epoch % len(sizes)]
            met["held"] += step.r_held + step.s_held
        met["blocks"] += len(trace.of(Receive))
    assert met["held"], "nothing was held when the number of workers changed"
    assert met["blocks"], "no block was sent"


def test_pairs_that_a_merge_does_not_join_are_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(states: list[WorkerState], matcher: Matcher) -> object:
        state, found = merged(states, matcher)
        return state, [[] for _ in found]

    merged = checkpoint._merge
    monkeypatch.setattr(checkpoint, "_merge", silent)
    assert broken((3, 1))


def test_pairs_that_a_split_parts_come_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    def halves(state: WorkerState, is_leftmost: bool, is_rightmost: bool) -> WorkerState:
        part = split(state, is_leftmost, is_rightmost)
        if is_leftmost == is_rightmost:
            return part
        return part._replace(r=half(state.r, not is_leftmost), s=half(state.s, is_leftmost))

    def half(tuples: Tuples, first: bool) -> Tuples:
        middle = len(tuples) // 2
        return tuples.take(slice(0, middle) if first else slice(middle, None))

    split = checkpoint._split
    monkeypatch.setattr(checkpoint, "_split", halves)
    assert broken((1, 2))


def test_every_tuple_of_an_old_worker_is_with_one_new_worker() -> None:
    matcher = Matcher(JoinConfig.from_json(random_case(1).config))
    for old, new in product(range(1, 8), range(1, 12)):
        states = [state_of(number, old - 1) for number in range(old)]
        adopted = [adopt(states.__getitem__, old, new, number, matcher)[0] for number in range(new)]
        s = [rank for state in adopted for rank in state.s.rank.tolist()]
        r = [rank for state in reversed(adopted) for rank in state.r.rank.tolist()]
        assert s == list(range(old))
        assert r == s[::-1]
        assert [number for number in range(new) if adopted[number].r_intake] == [0]
        assert [number for number in range(new) if adopted[number].s_intake] == [new - 1]


def state_of(number: int, last: int) -> WorkerState:
    """Return an old worker with a tuple of each stream, and admissions if it is at an end."""
    one = np.array([number])
    tuple_ = Tuples(one, one, one, one.astype(np.float64), np.array(["a"], object))
    taken = Admitted(number, 1, NO_IDENTITIES)
    return WorkerState(
        tuple_, tuple_, 0, 0, taken if number == 0 else None, taken if number == last else None
    )
