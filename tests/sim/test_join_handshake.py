"""The handshake join: the model's pairs, each once, by its own rules."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.join.run import run as model_run
from model.vocabulary.join import Rejected
from model.vocabulary.settings import read_settings
from sim.join import ChainRun, from_settings, simulate
from sim.join.handshake import EMPTY, HandshakeChain, Message
from sim.join.machine import Service
from sim.join.settings import SETTINGS, config_of, plan_of
from tests.sim.chains import found

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


def test_tuples_move_one_by_one_and_are_shared_evenly() -> None:
    timed = run(
        {
            "workers": "3",
            "rate_r_hz": "200",
            "rate_s_hz": "200",
            "speeds": "1",
            "comparison_us": "9",
        }
    )
    assert timed.summary["mean_block"] == 1
    busy = [float(timed.summary[f"busy_{n}"]) for n in range(3)]
    assert max(busy) < 2 * min(busy)


class WithoutCopies(HandshakeChain):
    """Forgets a tuple of S when it is sent, and not when it is acknowledged."""

    def receive(self, worker: int, sender: int, message: object) -> Service:
        for number, core in enumerate(self._cores):
            self._cores[number] = core._replace(copies=EMPTY)
        return super().receive(worker, sender, message)


class WithLastingCopies(HandshakeChain):
    """Never forgets a copy."""

    def receive(self, worker: int, sender: int, message: object) -> Service:
        oldest = self._cores[worker].copies[:1]
        service = super().receive(worker, sender, message)
        assert isinstance(message, Message)
        if message.rank is None:
            core = self._cores[worker]
            self._cores[worker] = core._replace(copies=oldest + core.copies)
        return service


@pytest.mark.parametrize(
    ("mistake", "goes"), [(WithoutCopies, "lost"), (WithLastingCopies, "twice")]
)
def test_a_planted_mistake_is_found(mistake: type[HandshakeChain], goes: str) -> None:
    settings = {"workers": "3", "message_us": "3000", "window_us": "1000000", "tiers": "elsewhere"}
    right, wrong = (found(run(settings, machine=each).trace) for each in (HandshakeChain, mistake))
    lost, twice = set(right) - set(wrong), len(wrong) - len(set(wrong))
    assert (bool(lost), bool(twice)) == (goes == "lost", goes == "twice")


def test_workers_cannot_come_and_go() -> None:
    with pytest.raises(ValueError, match="scale is 'yes'; it must be no for a handshake join"):
        from_settings({"engine": "handshake", "scale": "yes"}, 0)
    with pytest.raises(ValueError, match="record is 'yes'; it must be no for a handshake join"):
        from_settings({"engine": "handshake", "record": "yes"}, 0)
    with pytest.raises(ValueError, match="engine is 'tree'; it must be one of chain, handshake"):
        from_settings({"engine": "tree"}, 0)
