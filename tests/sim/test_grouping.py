"""Room ``grouping``: timed runs equal a recurrence, policies side by side, words, refusals."""

from collections import deque
from heapq import heapify, heappop, heapreplace
from itertools import islice
from math import inf
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.grouping.machine import Machine
from model.vocabulary import GroupingConfig
from model.vocabulary.grouping import POLICIES
from sim.grouping import from_settings, side_by_side, simulate
from sim.grouping.cluster import GroupingCluster
from sim.grouping.record import Passage
from sim.grouping.room import backlog_of
from sim.grouping.settings import prepare
from sim.kernel.distributions import Exponential
from sim.kernel.link import HERE, Place
from sim.kernel.plan import Cluster, Plan, Worker
from sim.kernel.run import run
from sim.kernel.source import Source
from sim.kernel.trigger import EveryTuples
from sim.words import read_words


def test_words_come_in_the_order_of_the_text_but_for_delays() -> None:
    timed = from_settings({"tuples": "3000", "scenario": "words"}, 1)
    sent = sorted(timed.workload.arrivals, key=lambda event: event.source_id)
    first = [word for word, _ in islice(read_words(), len(sent))]
    assert [event.key for event in sent] == first
    assert len(set(first)) > len(first) / 20


def test_a_window_is_as_long_as_a_micro_batch() -> None:
    settings = {"tuples": "2000", "batch_us": "10000", "window_tuples": "1"}
    timed = from_settings(settings, 1)
    arrived_us = [each.arrival_us - timed.plan.epoch_us for each in timed.workload.arrivals]
    assert timed.summary["windows"] == len({each // 10_000 for each in arrived_us}) > 2
    waiting = prepare({**settings, "load": "backlog"})
    windows = simulate(waiting.plan_of(1), waiting.config, 1).summary["windows"]
    assert int(windows) > 2


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("last", [True, False])
def test_keys_are_the_lines_of_a_file_over_and_over(
    tmp_path: Path, mark: bytes, end: bytes, last: bool
) -> None:
    """Editors write a byte order mark, carriage returns, and no end behind the last line."""
    file = tmp_path / "urls.txt"
    file.write_bytes(mark + b"/a b" + end + b"/c" + (end if last else b""))
    settings = {"tuples": "5", "scenario": "words", "keys_file": str(file)}
    timed = from_settings(settings, 1)
    sent = sorted(timed.workload.arrivals, key=lambda event: event.source_id)
    assert [event.key for event in sent] == ["/a b", "/c", "/a b", "/c", "/a b"]
    file.write_bytes(mark)
    with pytest.raises(ValueError, match="a file with a key in each line"):
        from_settings(settings, 1)


# ------------------------------------------------------------------------------------- figures


def test_all_policies_stand_side_by_side() -> None:
    settings = {"tuples": "3000", "window_tuples": "1000", "keys": "200", "instances": "4"}
    found: dict[Any, Any] = {side["policy"]: side for side in side_by_side(settings, 1)}
    assert tuple(found) == POLICIES
    assert found["tag"]["share_of_ideal"] > 0.9 > 2 * found["shuffle"]["share_of_ideal"]
    assert found["tag"]["mean_latency_us"] is not None
    assert found["shuffle"]["mean_latency_us"] is None
    assert found["key"]["instances_a_key"] == 1 < found["tag"]["instances_a_key"] < 2
    assert found["shuffle"]["instances_a_key"] > 2


def test_balance_takes_two_windows() -> None:
    with pytest.raises(ValueError, match="tuples is 100; it takes two windows"):
        side_by_side({"tuples": "100", "policies": "tag"}, 1)


# ------------------------------------------------- a recurrence, which shares no code with the room


PLACES = (None, HERE, Place(process=1), Place(node=1), Place(rack=1))


class Hardware:
    """State of instances and lines that the recurrence keeps from one window to the next."""

    def __init__(self, plan: Plan, n: int) -> None:
        workers = [plan.cluster.worker(i) for i in range(n)]
        tiers = [plan.way(HERE, worker.place) for worker in workers]
        bits = 8 * plan.cluster.tuple_bytes
        self.speed = [worker.speed for worker in workers]
        self.transfer_us = [bits / tier.bandwidth_mbps if tier else 0.0 for tier in tiers]
        self.latency_us = [tier.latency_us if tier else 0.0 for tier in tiers]
        self.line_us = [0.0] * n  # when the line is free
        self.idle_us = [0.0] * n  # when the instance is
        self.free_us = [deque([-inf] * (worker.queue_limit or 10_000)) for worker in workers]

    def pass_on(self, passage: Passage, asked_us: float) -> tuple[float, float, float]:
        """Return when a tuple is sent, when its service begins and when it ends."""
        i = passage.instance
        sent_us = max(asked_us, self.free_us[i].popleft())
        self.line_us[i] = max(sent_us, self.line_us[i]) + self.transfer_us[i]
        began_us = max(self.line_us[i] + self.latency_us[i], self.idle_us[i])
        self.idle_us[i] = began_us + passage.work_us / self.speed[i]
        self.free_us[i].append(self.idle_us[i] + self.latency_us[i])
        return sent_us, began_us, self.idle_us[i]


def recurrence(room: GroupingCluster, senders: int) -> list[tuple[float, float, float]]:
    """Compute the recurrence over the tuples, in the order in which senders process them."""
    hardware = Hardware(room.plan, room.config.instances)
    passages, found = room.record.passages, {}
    ready_us = [0.0] * senders
    for span in room.record.spans:
        ready_us = [max(ready_us)] * senders  # nobody begins a window before the others
        asking = [
            (max(passages[n].arrived_us, ready_us[n % senders]), n)
            for n in range(span.first, min(span.end, span.first + senders))
        ]
        heapify(asking)
        while asking:
            asked_us, n = asking[0]
            found[n] = hardware.pass_on(passages[n], asked_us)
            ready_us[n % senders] = sent_us = found[n][0]
            if n + senders < span.end:
                heapreplace(asking, (max(sent_us, passages[n + senders].arrived_us), n + senders))
            else:
                heappop(asking)
    return [found[n] for n in range(len(passages))]


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Draw streams from too slow to too fast, near and far workers, and small or large queues."""
    workers = st.builds(
        Worker,
        st.sampled_from([1.0, 0.2]),
        queue_limit=st.sampled_from([None, 1, 2, 5]),
        place=st.sampled_from(PLACES),
    )
    interval = Exponential(draw(st.sampled_from([20.0, 100.0, 400.0])))
    return Plan(
        (Source(draw(st.integers(2, 90)), interval, keys=tuple("abcde")),),
        cluster=Cluster(tuple(draw(st.lists(workers, min_size=1, max_size=4))), Exponential(100.0)),
        trigger=EveryTuples(draw(st.sampled_from([1, 7, 20]))),
    )


@given(
    plan=plans(),
    instances=st.integers(1, 4),
    senders=st.integers(1, 3),
    policy=st.sampled_from(["shuffle", "key", "tag"]),
    is_backlog=st.booleans(),
    seed=st.integers(0, 99),
)
def test_runs_equal_a_recurrence(
    plan: Plan, instances: int, senders: int, policy: str, is_backlog: bool, seed: int
) -> None:
    config = GroupingConfig(instances, policy, senders=senders, window_tuples=30)
    plan = backlog_of(plan, seed) if is_backlog else plan
    room, _ = run(
        plan, seed, lambda env, seeds: GroupingCluster(env, seeds, plan, config, Machine(config))
    )
    expected = recurrence(room, senders)
    for passage, times_us in zip(room.record.passages, expected, strict=True):
        found_us = passage.sent_us, passage.began_us, passage.ended_us
        assert found_us == pytest.approx(times_us, rel=1e-9, abs=1e-6), passage.event
