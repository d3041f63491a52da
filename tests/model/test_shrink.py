from itertools import pairwise

from model.checking.shrink import smallest
from model.vocabulary import Event, Fault, Workload


def workload(*values: float, cuts: tuple[int, ...] = (), keys: str = "") -> Workload:
    arrivals = tuple(
        Event(seq, seq, keys[seq] if keys else "a", 100 + seq, value, 200 + seq)
        for seq, value in enumerate(values)
    )
    return Workload("any", arrivals, {}, cuts)


def test_only_the_arrivals_that_matter_are_left() -> None:
    big = workload(*map(float, range(100)), cuts=(10, 50, 60))

    def fails(candidate: Workload) -> bool:
        identities = {event.source_id for event in candidate.arrivals}
        return {17, 55, 93} <= identities

    small = smallest(big, fails)
    assert [event.source_id for event in small.arrivals] == [17, 55, 93]
    assert [event.seq for event in small.arrivals] == [0, 1, 2]
    assert small.cuts == ()


def test_a_cut_that_matters_stays_between_its_arrivals() -> None:
    big = workload(*map(float, range(20)), cuts=(5, 10, 15))

    def fails(candidate: Workload) -> bool:
        batches = [{event.source_id for event in batch} for batch in candidate.batches()]
        return any(8 in left and 12 in right for left, right in pairwise(batches))

    small = smallest(big, fails)
    assert [event.source_id for event in small.arrivals] == [8, 12]
    assert small.cuts == (1,)


def test_values_and_keys_become_plain_in_all_deliveries() -> None:
    big = workload(7.5, 7.5, keys="qz")
    twice = big.with_(arrivals=(*big.arrivals, big.arrivals[0]._replace(seq=2)))
    small = smallest(twice, lambda candidate: len(candidate.arrivals) == 3)
    assert [(event.key, event.value) for event in small.arrivals] == [("q", 1.0)] * 3


def test_a_value_that_matters_is_kept() -> None:
    small = smallest(workload(7.5, 2.0), lambda w: sum(e.value for e in w.arrivals) >= 8)
    assert [event.value for event in small.arrivals] == [7.5, 1.0]


def test_faults_that_do_not_matter_are_dropped() -> None:
    faults = (Fault("kill", 0), Fault("restart", 0))
    small = smallest(workload(1.0).with_(faults=faults), lambda w: Fault("kill", 0) in w.faults)
    assert small.faults == (Fault("kill", 0),)


def test_runs_are_limited() -> None:
    runs = 0

    def fails(candidate: Workload) -> bool:
        nonlocal runs
        runs += 1
        return {3, 999} <= {event.source_id for event in candidate.arrivals}

    small = smallest(workload(*[1.0] * 1_000), fails, runs_max=7)
    assert runs == 7
    assert fails(small)
