"""Engines of a chain: its index, and the handshake join."""

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
from tests.sim.test_join import found

# ---------------------------------------------------------------------------------------- the index


def held(ranks: list[int]) -> RankArray:
    return RankArray(np.array(ranks, dtype=np.int64))


def test_pairs_come_in_the_order_of_the_ranks_that_were_given() -> None:
    """Sorts may put equal values in any order, and the order may differ between processors."""
    rng = np.random.default_rng(3)
    index = Index(JoinConfig(100, (("q", Equi("key")),)))
    for stream in (R, S):
        keys = rng.choice(["", "a", "ä", "b"], 60).tolist()
        events = [Event(n, n, key, n // 3, 1.0, n, stream) for n, key in enumerate(keys)]
        index.add(stream, 0, events, 0)
    block, store = list(range(20, 5, -1)), list(range(60))
    index.join(R, held(block).as_ranks(), held(store).as_ranks())
    (found,) = index.take()
    places = [
        (s, block.index(r)) for r, s in zip(found.r_ids.tolist(), found.s_ids.tolist(), strict=True)
    ]
    assert places == sorted(places)
    assert len(places) > 100


# ------------------------------------------------------------------------------- the handshake join


SMALL = {"seconds": "6", "rate_r_hz": "30", "rate_s_hz": "30", "predicate": "equi"}


def run(settings: dict[str, str], seed: int = 1) -> ChainRun:
    values = read_settings({**SMALL, **settings}, SETTINGS)
    return simulate(plan_of(values), config_of(values), seed, machine=HandshakeChain)


@given(
    st.integers(0, 10_000),
    st.fixed_dictionaries(
        {
            "scenario": st.sampled_from(["steady", "bursts", "waves"]),
            "workers": st.sampled_from(["1", "2", "3", "5"]),
            "window_us": st.sampled_from(["1", "200000", "2000000"]),
            "lateness_us": st.sampled_from(["0", "200000", "never"]),
            "trigger_interval_us": st.sampled_from(["never", "1000000"]),
            "loss": st.sampled_from(["0", "0.1"]),
            "speeds": st.sampled_from(["1", "1,0.1"]),
            "message_us": st.sampled_from(["5", "3000"]),
            "faults": st.sampled_from(["none", "fail worker-0 1500000 500000"]),
        }
    ),
)
def test_a_handshake_join_finds_what_the_model_finds(seed: int, settings: dict[str, str]) -> None:
    timed = run({**settings, "seconds": "3"}, seed)
    trace = model_run(timed.workload)
    assert found(timed.trace) == found(trace)
    assert timed.trace.of(Rejected) == trace.of(Rejected)
