"""The chain in one process: every pair exactly once, whatever the network does."""

from collections import Counter
from typing import Any

import pytest

from model.vocabulary import Event, Fault, JoinConfig, Workload
from model.vocabulary.join import (
    PROTOCOL,
    Admit,
    And,
    Equi,
    Match,
    Quiet,
    Receive,
    Rejected,
)
from spark_impl.join.in_process import FIFO, Network, run_in_process
from spark_impl.runtime.storage import InputProblem
from tests.spark_impl.join_cases import admitted, nested_loop, pairs, random_case

NETWORKS = {
    "fifo": FIFO,
    "sends at any time": Network(unforced=0.5),
    "unordered": Network(ordered=False, unforced=0.4),
    "twice": Network(ordered=False, twice=0.2, unforced=0.4),
    "cut": Network(cut=0.02, unforced=0.3),
    "everything": Network(ordered=False, twice=0.2, cut=0.02, unforced=0.3),
}
SEEDS = range(40)


@pytest.mark.parametrize("network", NETWORKS.values(), ids=list(NETWORKS))
def test_every_pair_exactly_once(network: Network) -> None:
    met: Counter[str] = Counter()
    for seed in SEEDS:
        case = random_case(seed)
        trace = run_in_process(case, network)
        assert pairs(trace) == nested_loop(case), f"seed {seed}"
        assert set(trace.of(Rejected)) == admitted(case)[1], f"seed {seed}"
        for step in trace.of(Receive):
            met["store or copies"] += step.pairs
            met["copies"] += step.copies
        met["admission"] += sum(step.pairs for step in trace.of(Admit))
    assert all(met[how] for how in ("admission", "store or copies", "copies")), met


@pytest.mark.parametrize("seed", range(20))
def test_interrupted_batches_leave_nothing_behind(seed: int) -> None:
    case = random_case(seed)
    broken = case.with_(faults=tuple(Fault("kill", at) for at in range(4)))
    assert pairs(run_in_process(broken, NETWORKS["unordered"])) == nested_loop(case)


@pytest.mark.parametrize("between", [0, 3, 30])
@pytest.mark.parametrize("cut", [False, True])
def test_two_tuples_with_one_identity_are_refused(between: int, cut: bool) -> None:
    """The two tuples come in one run of arrivals, in two runs, or in two epochs."""
    config = JoinConfig(1000, (("all", And()),), lateness_us=100)
    ids = [7, *range(8, 8 + between), 7]
    events = tuple(Event(n, i, "a", n, 0.0, n, "S") for n, i in enumerate(ids))
    cuts = (len(ids) - 1,) if cut else ()
    sentence = (
        f"^the identity 7 of the stream S comes with the event times 0 and {between + 1} us:"
        " every tuple needs an identity of its own$"
    )
    with pytest.raises(InputProblem, match=sentence):
        run_in_process(Workload("join", events, config.to_json(), cuts))


@pytest.mark.parametrize("seed", range(20))
def test_without_a_flush_nothing_is_wrong_and_the_rest_is_owed(seed: int) -> None:
    case = random_case(seed)
    found = pairs(run_in_process(case.with_(flush=False), NETWORKS["sends at any time"]))
    assert found <= nested_loop(case)


def test_after_a_flush_nothing_is_held() -> None:
    for seed in SEEDS:
        case = random_case(seed)
        trace = run_in_process(case)
        last = max(step.epoch for step in trace.of(Quiet))
        held = [s.r_held + s.s_held for s in trace.of(Quiet) if s.epoch == last]
        assert held == [0] * JoinConfig.from_json(case.config).workers


def test_the_recording_adds_up() -> None:
    case = random_case(7, tuples=60)
    trace = run_in_process(case)
    found = sum(s.pairs for s in trace.of(Admit)) + sum(s.pairs for s in trace.of(Receive))
    assert found == len(trace.of(Match)) > 0
    numbers: dict[tuple[int, int], list[int]] = {}
    words: tuple[Any, ...] = PROTOCOL
    for word in words:
        for step in trace.of(word):
            fields = step._asdict()
            who = fields["epoch"], fields["worker"]
            numbers.setdefault(who, []).append(fields["number"])
    assert all(sorted(each) == list(range(len(each))) for each in numbers.values())


def test_the_same_seed_gives_the_same_trace() -> None:
    case = random_case(3)
    network = NETWORKS["everything"]
    assert run_in_process(case, network).digest() == run_in_process(case, network).digest()


def case_of(config: JoinConfig, rows: list[tuple[str, int]]) -> Workload:
    events = [Event(seq, seq, "a", ts, 0.0, seq, stream) for seq, (stream, ts) in enumerate(rows)]
    return Workload("join", tuple(events), config.to_json())


@pytest.mark.parametrize("workers", [1, 2, 5])
@pytest.mark.parametrize("present", ["", "R", "S"])
def test_a_stream_may_be_empty(workers: int, present: str) -> None:
    config = JoinConfig(window_us=5, queries=(("all", And()),), workers=workers, lateness_us=0)
    case = case_of(config, [(stream, 100) for stream in present] * 10)
    assert not pairs(run_in_process(case))


def test_both_ends_of_the_window_belong_to_it() -> None:
    config = JoinConfig(window_us=5, queries=(("all", Equi("key")),), workers=2, lateness_us=0)
    case = case_of(config, [("R", 105), ("S", 99), ("S", 100), ("S", 110), ("S", 111)])
    assert pairs(run_in_process(case)) == Counter({("all", 0, 2): 1, ("all", 0, 3): 1})


def test_a_stream_that_is_neither_is_the_callers_error() -> None:
    config = JoinConfig(window_us=5, queries=(("all", And()),))
    with pytest.raises(ValueError, match="arrival 0 is of stream 'T'; it must be 'R' or 'S'"):
        run_in_process(case_of(config, [("T", 100)]))
