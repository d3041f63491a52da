"""The control ``aq`` of room ``slack`` on Spark: K follows the longest recent delay, both ways.

The oracle restates sections 2, 4 and 5 of docs/slack.md in plain Python, for counts and for queries
with ``lambda_thr``. It imports nothing of ours.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from math import floor, isfinite, nan
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from model.vocabulary import Event, SlackConfig, Trace, Workload, task_of
from model.vocabulary.slack import Judged, Progress
from model.vocabulary.windows import Late, Result
from spark_impl import slack
from spark_impl.runtime.histories import append
from spark_impl.runtime.systems import arrivals_table
from spark_impl.slack import SLACK, SlackQuery
from spark_impl.slack.delays import DELAY, RecentDelays, sliding_maximum
from spark_impl.windows import kernel, panes

Steps: TypeAlias = Mapping[str, list[tuple[Any, ...]]]

# ---------------------------------------------------------------------------------- the oracle


class OneTask:
    """One task of a query that counts or that has ``lambda_thr``; without grouping columns."""

    def __init__(self, number: int, **settings: Any) -> None:
        self.number, self.set = number, settings
        self.t_max: int | None = None
        self.wm: int | None = None
        self.pairs: list[tuple[int, int]] = []
        self.longest = 0
        self.alpha, self.err_prev, self.judged = 1.0, 0.0, 0
        self.known: dict[int, int] = {}
        self.values: dict[tuple[int, str], list[float]] = defaultdict(list)
        self.late: Counter[tuple[int, str]] = Counter()
        self.closed: set[tuple[int, str]] = set()
        self.done: set[tuple[int, str]] = set()
        self.found: Steps = {"result": [], "late": [], "judged": [], "progress": []}
        self.batch = 0

    def last_end(self, ts: int) -> int:
        end: int = ts // self.set["slide_us"] * self.set["slide_us"] + self.set["size_us"]
        return end

    def slack(self) -> int:
        factor = min(max(self.alpha, 0.0), 1.0)
        k = min(floor(factor * self.longest), self.longest)
        if self.judged * self.set["delta"] < 2:
            k = max(k, self.set["start_slack_us"])
        most = self.set["max_slack_us"]
        return k if most is None else min(k, most)

    def arrive(self, identity: int, key: str, ts: int, value: float) -> bool:
        """Take one arrival; return whether the task has accepted it."""
        feedback = self.set["feedback_us"]
        if not isfinite(value):
            return False
        if self.set["dedup"] and identity in self.known:
            assert self.wm is not None
            if self.last_end(self.known[identity]) + feedback > self.wm:
                return False
        self.known[identity] = ts
        before = self.wm
        self.t_max = ts if self.t_max is None else max(self.t_max, ts)
        self.pairs.append((self.t_max, self.t_max - ts))
        if self.set["control"] == "aq":
            self.pairs = [p for p in self.pairs if p[0] >= self.t_max - self.set["recent_us"]]
        self.longest = max(delay for _, delay in self.pairs)
        reached = self.t_max - self.slack()
        self.wm = reached if before is None else max(before, reached)
        self.close()
        size, slide = self.set["size_us"], self.set["slide_us"]
        for j in range((ts - size) // slide + 1, ts // slide + 1):
            window = j * slide, key
            if window[0] + size > self.wm:
                self.values[window].append(value)
                continue
            self.found["late"].append((self.number, *window, identity, ts, self.batch))
            if before is not None and window[0] + size + feedback <= before:
                self.done.add(window)  # its judgement is over, if it has had one
            self.late[window] += 1
        self.judge()
        return True

    def close(self) -> None:
        assert self.wm is not None
        for window, values in sorted(self.values.items()):
            if window not in self.closed and window[0] + self.set["size_us"] <= self.wm:
                self.closed.add(window)
                value = float(len(values)) if self.set["aggregate"] == "count" else sum(values)
                self.found["result"].append(
                    (self.number, *window, self.batch, value, len(values), self.slack(), self.wm)
                )

    def judge(self) -> None:
        assert self.wm is not None
        lead = self.set["size_us"] + self.set["feedback_us"]
        for window in sorted({*self.values, *self.late} - self.done):
            if window[0] + lead <= self.wm:
                self.done.add(window)
                self.judge_window(window)

    def judge_window(self, window: tuple[int, str]) -> None:
        received, late = len(self.values.get(window, ())), self.late[window]
        total = received + late
        share = self.set["lambda_thr"]
        if share is not None:
            required = -floor(-Fraction(repr(share)) * total)
        else:
            required = total + floor(-Fraction(repr(self.set["eps"])) * total) + 1
        required = min(max(required, 0), total)
        goal = required / total if share is None else share
        err = goal - received / total
        self.alpha += self.set["kp"] * err + self.set["kd"] * (err - self.err_prev)
        self.err_prev = err
        miss = received < required
        step = self.number, self.judged, *window, self.batch, received, late, required, miss
        self.found["judged"].append((*step, self.alpha))
        self.judged += 1

    def end_batch(self) -> None:
        step = self.number, self.batch, self.t_max, self.longest, self.slack(), self.wm
        self.found["progress"].append((*step, self.alpha))

    def flush(self) -> None:
        if self.t_max is None:
            return
        assert self.wm is not None
        self.wm = max(self.wm, self.last_end(self.t_max) + self.set["feedback_us"])
        self.close()
        self.judge()
        self.end_batch()


def stream_side(
    batches: Sequence[Sequence[Any]], owners: Mapping[str, int], flush: bool, settings: Any
) -> Steps:
    """Return the steps of all tasks; an arrival is an identity, a key, an event time, a value."""
    tasks = {number: OneTask(number, **settings) for number in set(owners.values())}
    for number, batch in enumerate(batches):
        moved = set()
        for identity, key, ts, value in batch:
            task = tasks[owners[key]]
            task.batch = number
            if task.arrive(identity, key, ts, value):
                moved.add(owners[key])
        for each in moved:
            tasks[each].end_batch()
    for task in tasks.values() if flush else ():
        task.batch = len(batches)
        task.flush()
    names = "result", "late", "judged", "progress"
    return {
        name: sorted({s for each in tasks.values() for s in each.found[name]}) for name in names
    }


# ------------------------------------------------------------------------------------ in process


def expected(case: Workload) -> Steps:
    """Return the steps that the oracle gives for a workload."""
    config = SlackConfig.from_json(case.config)
    defaults = {"feedback_us": config.feedback, "start_slack_us": config.start_slack}
    owners = {event.key: task_of(event.key, config.tasks) for event in case.arrivals}
    batches = [
        [(e.source_id, e.key, e.event_time_us, e.value) for e in batch] for batch in case.batches()
    ]
    return stream_side(batches, owners, case.flush, {**case.config, **defaults})


def found(trace: Trace) -> Steps:
    words = {"result": Result, "late": Late, "judged": Judged, "progress": Progress}
    return {name: sorted(map(tuple, trace.of(word))) for name, word in words.items()}


class Move(NamedTuple):
    """One arrival, relative to the largest event time so far."""

    ahead_us: int
    delay_us: int
    key: str
    again: int
    """0, or how many arrivals ago the identity came before."""
    value: float


CALM, STORM = st.sampled_from([0, 0, 1, 2]), st.integers(0, 60)


def moves(delays: st.SearchStrategy[int]) -> st.SearchStrategy[list[Move]]:
    step = st.builds(
        Move,
        st.sampled_from([0, 1, 1, 2, 5, 17]),
        delays,
        st.sampled_from("abc"),
        st.sampled_from([0, 0, 0, 0, 1, 3, 8]),
        st.sampled_from([1.0, 2.0, 3.0, 4.0, 5.0, nan]),
    )
    return st.lists(step, min_size=1, max_size=30)


SPELLS = st.lists(moves(CALM) | moves(STORM), min_size=1, max_size=5)
"""Spells of calm and storm in a row."""


@st.composite
def configs(draw: st.DrawFn) -> SlackConfig:
    size_us, slide_us = draw(st.sampled_from([(10, 10), (12, 4), (5, 7), (9, 2)]))
    share = draw(st.sampled_from([0.9, None, 0.5, 1.0]))
    return SlackConfig(
        size_us,
        slide_us,
        aggregate="count" if share is None else draw(st.sampled_from(["sum", "count"])),
        control=draw(st.sampled_from(["aq", "aq", "aq", "pd"])),
        recent_us=draw(st.sampled_from([7, 1, 20, 60])),
        lambda_thr=share,
        eps=draw(st.sampled_from([0.3, 0.05])),
        delta=draw(st.sampled_from([0.4, 0.05])),
        kp=draw(st.sampled_from([0.2, 1.0])),
        kd=draw(st.sampled_from([4.0, 0.5])),
        feedback_us=draw(st.sampled_from([0, 6, None])),
        start_slack_us=draw(st.sampled_from([None, None, 11])),
        max_slack_us=draw(st.sampled_from([None, None, 25])),
        tasks=draw(st.sampled_from([1, 2, 3])),
        dedup=draw(st.booleans()),
    )


def arrivals(spells: Sequence[Sequence[Move]], dedup: bool) -> Iterator[Event]:
    """Yield the arrivals of spells; a redelivery is what came before."""
    given: list[Event] = []
    t_max = 0
    for move in (move for spell in spells for move in spell):
        seq = len(given)
        t_max += move.ahead_us
        event = Event(seq, seq, move.key, t_max - move.delay_us, move.value, seq)
        if dedup and 0 < move.again <= seq:
            event = given[-move.again]._replace(seq=seq, arrival_us=seq)
        given.append(event)
        yield event


@st.composite
def cases(draw: st.DrawFn) -> Workload:
    config, spells = draw(configs()), draw(SPELLS)
    events = tuple(arrivals(spells, config.dedup))
    cuts = draw(st.lists(st.integers(0, len(events)), max_size=4).map(sorted))
    return Workload("slack", events, config.to_json(), tuple(cuts), flush=draw(st.booleans()))


@given(case=cases(), at_once=st.sampled_from([1 << 15, 5, 1]))
def test_steps_are_those_of_the_specification(case: Workload, at_once: int) -> None:
    """A state becomes bytes after each micro-batch; plans end at any arrival.

    Few pairs are answered at a time.
    """
    few = mock.patch.object(kernel, "ROWS_AT_ONCE", at_once)
    with few, mock.patch.object(panes, "PAIRS_AT_ONCE", at_once):
        assert found(slack.run_in_process(case)) == expected(case)


def storm(recent_us: int = 40, **changes: Any) -> Workload:
    """Return a stream with a storm in the midst of a calm."""
    delays = [0] * 60 + [30, 5, 0, 25, 12, 0, 3] * 4 + [7, 0, 0] * 60
    times = [2 * n - delay for n, delay in enumerate(delays)]
    events = [Event(n, n, "ab"[n % 2], ts, 1.0, n) for n, ts in enumerate(times)]
    settings = {"control": "aq", "recent_us": recent_us, "aggregate": "count", "tasks": 2}
    config = SlackConfig(10, 5, **{**settings, **changes})
    return Workload("slack", tuple(events), config.to_json(), (50, 75, 76, 120), name="storm")


def test_the_wait_is_short_again_when_a_storm_is_over() -> None:
    traces = [slack.run_in_process(storm(control=each, tasks=1)) for each in ("aq", "pd")]
    aq, pd = ([step.max_delay_us for step in trace.of(Progress)] for trace in traces)
    assert max(aq) == max(pd) == pd[-1] == 28
    assert aq[-1] == 5


# ------------------------------------------------------------------------------------- whole runs


def test_a_query_of_several_tasks_goes_on_where_it_was(spark: SparkSession, tmp_path: Path) -> None:
    case = storm()
    config = SlackConfig.from_json(case.config)
    for batch in case.batches():
        append(tmp_path / "h", arrivals_table(batch))
        SlackQuery(spark, config, tmp_path / "h", tmp_path / "s").run_available()
    query = SlackQuery(spark, config, tmp_path / "h", tmp_path / "s")
    query.flush()
    wanted, store = expected(case), query.store.at()
    for kind, word in (("judged", Judged), ("progress", Progress)):
        steps = store.read_kind(kind).to_pylist()
        assert sorted(tuple(row[name] for name in word._fields) for row in steps) == wanted[kind]
    largest = [step[3] for step in wanted["progress"]]
    assert max(largest) > largest[-1] > 0
    assert wanted["late"], "there is something to correct"
    sent = Counter(
        (e.key, e.event_time_us // 5 * 5 - back) for e in case.arrivals for back in (0, 5)
    )
    rows = slack.results(spark, tmp_path / "s").collect()
    assert {(row.key, row.start_us): row.value for row in rows} == sent
    assert {row.state for row in rows} == {"exact"}


# -------------------------------------------------------------------------------------- the state


@given(
    values=st.lists(st.integers(0, 9), min_size=1, max_size=70),
    steps=st.lists(st.integers(0, 3), min_size=70, max_size=70),
    span=st.integers(1, 80),
)
def test_a_sliding_maximum_is_that_of_each_run(
    values: list[int], steps: list[int], span: int
) -> None:
    times = np.cumsum(steps)[: len(values)]
    since = np.searchsorted(times, times - span)
    runs = [max(values[lo : i + 1]) for i, lo in enumerate(since.tolist())]
    assert sliding_maximum(np.array(values), since).tolist() == runs


def largest(pairs: Sequence[tuple[int, int]], since: int) -> tuple[int, int]:
    """Return the latest of the largest delays since a time, and the clock after its tuple."""
    return max((delay, clock) for clock, delay in pairs if clock >= since)


@given(
    delays=st.lists(st.integers(0, 9), min_size=2, max_size=40),
    steps=st.lists(st.integers(0, 3), min_size=40, max_size=40),
    recent_us=st.integers(1, 20),
    sizes=st.tuples(st.integers(1, 39), st.integers(1, 39)),
)
def test_the_state_keeps_what_may_become_the_largest_and_nothing_else(
    delays: list[int], steps: list[int], recent_us: int, sizes: tuple[int, int]
) -> None:
    """Not all arrivals that a task looked at have come when it looks again: the plan was wrong."""
    clock = np.cumsum(steps)[: len(delays)].tolist()
    pairs = list(zip(clock, delays, strict=True))
    seen, settled = max(sizes), min(*sizes, len(delays))
    task = RecentDelays(0, recent_us)
    task.look(np.array(clock[:seen]), np.array(delays[:seen]))
    task.settle(settled)
    now, kept = clock[settled - 1], task.kept()
    assert kept.dtype == DELAY
    # Whatever comes next, what is the largest since some time is one of these.
    found = {largest(pairs[:settled], t) for t in range(now - recent_us, now + 1)}
    assert sorted((d, t) for t, d in kept.tolist()) == sorted(each for each in found if each[0])
    assert task.largest_us == largest(pairs[:settled], now - recent_us)[0]
    again = task.look(np.array(clock[settled:]), np.array(delays[settled:]))
    wanted = [largest(pairs[: i + 1], t - recent_us)[0] for i, t in enumerate(clock)]
    assert again.tolist() == wanted[settled:]


def test_a_delay_counts_until_it_is_older_than_recent_us() -> None:
    task = RecentDelays(0, recent_us=10)
    assert task.look(np.array([0, 10, 11]), np.array([7, 3, 2])).tolist() == [7, 7, 3]


@pytest.mark.parametrize("control", ["conformal", "pd", "max", "fixed"])
def test_other_controls_keep_one_number(control: str) -> None:
    config = SlackConfig(10, 10, control=control, recent_us=1)
    assert SLACK.rule(config, 0, 1, SLACK.memory).memory().delays == 0
