"""Engines of a chain: the order of the pairs of its index, and the handshake join."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from model.join.run import run as model_run
from model.vocabulary import Event, JoinConfig
from model.vocabulary.join import Equi, R, Rejected, S
from model.vocabulary.settings import read_settings
from sim.join import ChainRun, simulate
from sim.join.content import Index, RankArray
from sim.join.handshake import HandshakeChain
from sim.join.settings import SETTINGS, config_of, plan_of
from tests.sim.chains import found

# ---------------------------------------------------------------------------------------- the index


N = 60


def event(stream: str, n: int, rng: np.random.Generator) -> Event:
    key = str(rng.choice(["", "a", "ä", "b"]))
    # Thirds and tenths: differences that are not exact.
    value = float(rng.integers(-9, 9)) / float(rng.choice([3, 10]))
    return Event(n, n, key, int(rng.integers(0, 20)), value, n, stream)


def filled(config: JoinConfig, seed: int) -> tuple[Index, list[Event], list[Event]]:
    rng = np.random.default_rng(seed)
    r, s = ([event(stream, n, rng) for n in range(N)] for stream in (R, S))
    index = Index(config)
    # In turns of twenty, each an epoch.
    for n in range(0, N, 20):
        index.add(R, n, r[n : n + 20], n // 20)
        index.add(S, n, s[n : n + 20], n // 20)
    return index, r, s


def held(ranks: list[int]) -> RankArray:
    return RankArray(np.array(ranks, dtype=np.int64))


def test_pairs_come_in_the_order_of_the_ranks_that_were_given() -> None:
    """Sorts may put equal values in any order, and the order may differ between processors."""
    index, _, _ = filled(JoinConfig(100, (("q", Equi("key")),)), 3)
    block, store = list(range(20, 5, -1)), list(range(N))
    index.join(R, held(block).as_ranks(), held(store).as_ranks())
    (found,) = index.take()
    places = [
        (s, block.index(r)) for r, s in zip(found.r_ids.tolist(), found.s_ids.tolist(), strict=True)
    ]
    assert places == sorted(places)
    assert len(places) > 100


# ------------------------------------------------------------------------------- the handshake join


SMALL = {"seconds": "6", "rate_r_hz": "30", "rate_s_hz": "30", "predicate": "equi"}


def run(
    settings: dict[str, str], seed: int = 1, machine: type[HandshakeChain] = HandshakeChain
) -> ChainRun:
    values = read_settings({**SMALL, **settings}, SETTINGS)
    return simulate(plan_of(values), config_of(values), seed, machine=machine)


@given(
    st.integers(0, 10_000),
    st.fixed_dictionaries(
        {
            "scenario": st.sampled_from(["steady", "bursts", "waves", "racing"]),
            "workers": st.sampled_from(["1", "2", "3", "5"]),
            "window_us": st.sampled_from(["1", "200000", "2000000"]),
            "lateness_us": st.sampled_from(["0", "200000", "never"]),
            "trigger_interval_us": st.sampled_from(["never", "1000000"]),
            "loss": st.sampled_from(["0", "0.1"]),
            "speeds": st.sampled_from(["1", "1,0.1"]),
            "message_us": st.sampled_from(["5", "3000"]),
        }
    ),
)
def test_a_handshake_join_finds_what_the_model_finds(seed: int, settings: dict[str, str]) -> None:
    timed = run({**settings, "seconds": "3"}, seed)
    trace = model_run(timed.workload)
    assert found(timed.trace) == found(trace)
    assert timed.trace.of(Rejected) == trace.of(Rejected)


def test_a_failed_epoch_is_joined_again() -> None:
    timed = run(
        {"workers": "3", "faults": "fail worker-1 3500000 500000", "trigger_interval_us": "2000000"}
    )
    assert int(timed.summary["failures"]) == 1
    assert found(timed.trace) == found(model_run(timed.workload))
