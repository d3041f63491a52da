"""Workers that come and go while tuples flow: every pair once, and gone within the window."""

from functools import cache

import pytest

from model.join.live import LEAVING, REDIRECTED
from model.join.run import run as model_run
from model.vocabulary.settings import read_settings
from properties import profiles
from sim.join import ChainRun, from_settings, simulate
from sim.join.cluster import ChainCluster
from sim.join.line import LOG, Do, Line
from sim.join.live_chain import LiveChain
from sim.join.machine import MachineOf, Service
from sim.join.model_chain import ModelChain
from sim.join.settings import SETTINGS, config_of, plan_of
from tests.sim.chains import found

WINDOW_US = 1_000_000
CASE = {
    "scenario": "case",
    "seconds": "45",
    "rate_r_hz": "20",
    "rate_s_hz": "20",
    "window_us": f"{WINDOW_US}",
    "capacity": "25",
    "workers": "4",
    "scale": "yes",
    "live": "yes",
    "predicate": "equi",
    "intake_us": "20000",
    "tau0": "0.25",
    "out_after_us": "500000",
    "in_after_us": "3000000",
    "control_us": "100000",
    "blocks": "fixed",
    "block_size": "4",
    "tiers": "elsewhere",
    "speeds": "1",
}
"""A case study in which the number of workers doubles and halves within 45 s."""


def run(
    settings: dict[str, str] | None = None, seed: int = 1, machine: MachineOf = LiveChain
) -> ChainRun:
    values = read_settings({**CASE, **(settings or {})}, SETTINGS)
    return simulate(plan_of(values), config_of(values), seed, machine=machine)


def changes(timed: ChainRun) -> list[tuple[int, int]]:
    """Return the numbers of workers before and after each change."""
    text = str(timed.summary["resized"])
    pairs = [one.split(" to ") for one in text.split(", ")] if text != "no" else []
    return [(int(before), int(after)) for before, after in pairs]


def is_course(numbers: list[tuple[int, int]], workers: int) -> bool:
    """Return whether there are changes, each from the number that the one before it left."""
    befores = [before for before, _ in numbers]
    return bool(numbers) and befores == [workers, *[after for _, after in numbers[:-1]]]


def test_workers_come_and_go_within_a_window(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[str, int]] = []
    tell = Line.tell

    def recorded(line: Line, sender: str, to: int, do: Do) -> None:
        told.append((sender, to))
        tell(line, sender, to, do)

    monkeypatch.setattr(Line, "tell", recorded)
    timed = run({"trigger_interval_us": "never"})  # one epoch, so nothing happens between two
    numbers = changes(timed)
    assert any(after > before for before, after in numbers)
    assert any(after < before for before, after in numbers)
    assert 100_000 < int(timed.summary["longest_change_us"]) < WINDOW_US
    # MARK goes to the old end, and END from the first worker that leaves to the new end.
    ends = [(LOG, a - 1) if b > a else (f"worker-{b}", b - 1) for a, b in numbers]
    assert [message for message in told if message in ends] == ends
    assert all(sender in (LOG, f"worker-{to + 1}") for sender, to in told)
    assert found(timed.trace) == found(model_run(timed.workload))


@pytest.mark.parametrize(
    "settings",
    [
        {"workers": "1", "trigger_interval_us": "1000000"},
        {"workers": "2", "lateness_us": "0", "message_us": "3000", "trigger_interval_us": "never"},
        pytest.param(
            {"blocks": "adaptive", "loss": "0.1", "trigger_interval_us": "7000000"},
            marks=pytest.mark.long,
        ),
        {"faults": "fail worker-0 16500000 500000"},
        pytest.param(
            {"faults": "fail worker-1 30500000 500000; slow worker-0 15000000 4000000 40"},
            marks=pytest.mark.long,
        ),
    ],
    ids=["one worker", "slow", "lost", "failure", "failure and slowness"],
)
def test_every_pair_of_admitted_tuples_comes_out_once(settings: dict[str, str]) -> None:
    for seed in range(profiles.choose(1, nightly=3)):
        timed = run(settings, seed)
        assert is_course(changes(timed), int(settings.get("workers", CASE["workers"])))
        assert found(timed.trace) == found(model_run(timed.workload))


def test_a_change_between_epochs_takes_as_long_as_moving_the_tuples(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    moved: list[int] = []
    rests_us: list[float] = []
    resize, change = ModelChain.resize, ChainCluster._resize

    def resized(chain: ModelChain, workers: int) -> Service:
        moved.append((service := resize(chain, workers)).tuples)
        return service

    def changed(cluster: ChainCluster, wanted: int) -> float:
        rests_us.append(change(cluster, wanted))
        return rests_us[-1]

    monkeypatch.setattr(ModelChain, "resize", resized)
    monkeypatch.setattr(ChainCluster, "_resize", changed)
    settings = {**CASE, "live": "no", "trigger_interval_us": "1000000"}
    values = read_settings(settings, SETTINGS)
    plan = plan_of(values)
    simulate(plan, config_of(values), 1, machine=ModelChain)
    tier = plan.way(plan.cluster.worker(0).place, plan.cluster.worker(1).place)
    assert tier is not None
    bits = [8 * plan.cluster.tuple_bytes * tuples for tuples in moved]
    # A megabit a second is a bit in a microsecond.
    assert rests_us == [tier.latency_us + each / tier.bandwidth_mbps for each in bits]
    assert max(moved) > 0


class RedirectedAtOnce(LiveChain):
    """Redirects S while the leaving workers still hold R."""

    def can_redirect(self) -> bool:
        return self.phase == LEAVING


class LeavingAtOnce(LiveChain):
    """Sends END before the leaving workers have sent what they hold."""

    def can_leave(self) -> bool:
        return self.phase == REDIRECTED


@cache
def pairs_of(machine: MachineOf) -> frozenset[object]:
    """Return what a chain finds in two changes of its size, with blocks of one tuple."""
    more = {"rate_r_hz": "60", "rate_s_hz": "60", "capacity": "75", "block_size": "1"}
    timed = run({**more, "seconds": "20"}, machine=machine)
    assert len(changes(timed)) == 2
    return frozenset(found(timed.trace))


@pytest.mark.long
@pytest.mark.parametrize("mistake", [RedirectedAtOnce, LeavingAtOnce])
def test_a_planted_mistake_loses_pairs(mistake: MachineOf) -> None:
    assert pairs_of(mistake) < pairs_of(LiveChain)


def test_only_a_chain_of_its_kind_changes_while_it_runs() -> None:
    with pytest.raises(ValueError, match="live is 'yes'; it must be no for a ModelChain"):
        run(machine=ModelChain)
    with pytest.raises(ValueError, match="live is 'yes'; it must be no unless scale is yes"):
        from_settings({"live": "yes"}, 0)
