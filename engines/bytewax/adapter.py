"""Bytewax behind the judge's protocol: event-time windows, and joins in overlapping windows.

Rules of this file:

* Every key has a watermark of its own. System time stands still.
* Bytewax calls an item late if its timestamp lies below the watermark, even while windows of it are
  open. In tumbling windows whose wait is a multiple of their length, an item's timestamp is the
  start of its window, which makes both meanings of "late" equal.
* Bytewax counts a redelivery again, so a stateful step before lets each identity pass once.
"""

import json
import statistics
import sys
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import bytewax.operators as op
from bytewax.dataflow import Dataflow
from bytewax.operators import windowing as win
from bytewax.testing import TestingSink, TestingSource, run_main

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NEVER_US = 1_000_000_000
AGGREGATES = {"sum": sum, "count": len, "avg": statistics.fmean, "min": min, "max": max}
SOURCE, KEY, AT, VALUE, STREAM = 1, 2, 3, 4, 6


def micros(us):
    """Return a length of time."""
    return timedelta(microseconds=us)


def first_deliveries(flow, arrivals):
    """Return the stream of arrivals without redeliveries."""

    def admit(seen, arrival):
        return True, [] if seen else [arrival]

    source = op.input("in", flow, TestingSource(arrivals))
    delivered = op.key_on("identity", source, lambda at: f"{at[STREAM]}{at[SOURCE]}")
    return op.key_rm("first", op.stateful_flat_map("dedup", delivered, admit))


def run_windows(config, arrivals):
    """Return the steps of a windowed query."""
    size_us, slide_us, wait_us = (config[f"{name}_us"] for name in ("size", "slide", "fixed_slack"))
    if not config["keyed"] or config["control"] != "fixed":
        sys.exit("a fixed wait for each key needs keyed=true, control=fixed")
    if slide_us > size_us:
        sys.exit(f"slide_us is {slide_us}, size_us {size_us}; Bytewax has no windows with gaps")
    if config["aggregate"] not in AGGREGATES:
        sys.exit(f"aggregate {config['aggregate']!r} is none of {', '.join(AGGREGATES)}")
    is_exact = slide_us == size_us and wait_us % size_us == 0
    if not is_exact and wait_us < NEVER_US:
        sys.exit(f"a wait of {wait_us} us would drop late items, and not late pairs")
    grain_us = size_us if is_exact else 1
    clock = win.EventClock(
        ts_getter=lambda arrival: EPOCH + micros(arrival[AT] // grain_us * grain_us),
        wait_for_system_duration=micros(wait_us),
        now_getter=lambda: EPOCH,
        to_system_utc=lambda _: None,
    )
    windower = win.SlidingWindower(micros(size_us), micros(slide_us), EPOCH)
    flow, down, late = Dataflow("windows"), [], []
    keyed = op.key_on("key", first_deliveries(flow, arrivals), lambda at: at[KEY])
    out = win.collect_window("window", keyed, clock, windower)
    op.output("down", out.down, TestingSink(down))
    op.output("late", out.late, TestingSink(late))
    run_main(flow)

    steps = []
    for key, (window, found) in down:
        values = [arrival[VALUE] for arrival in found]
        place = {"task": 0, "start_us": window * slide_us, "key": key}
        answer = {**place, "value": float(AGGREGATES[config["aggregate"]](values))}
        steps.append({"kind": "result", **answer, "n_rcv": len(values)})
        steps.append({"kind": "final", **answer, "n": len(values)})
    for key, (window, arrival) in late:
        place = {"task": 0, "start_us": window * slide_us, "key": key}
        steps.append({"kind": "late", **place, "source_id": arrival[SOURCE]})
    return steps


@dataclass
class _BothClock(win.Clock, win.ClockLogic):
    """The watermark of a join: that of the stream that lies behind."""

    wait_us: int
    latest_us: dict = field(default_factory=dict)

    def build(self, resume_state):
        return _BothClock(self.wait_us)

    def on_item(self, value):
        side, arrival = value
        self.latest_us[side] = max(self.latest_us.get(side, arrival[AT]), arrival[AT])
        return EPOCH + micros(arrival[AT]), self.on_notify()

    def on_notify(self):
        both = len(self.latest_us) == 2
        return EPOCH + micros(min(self.latest_us.values()) - self.wait_us) if both else win.UTC_MIN

    def on_eof(self):
        return win.UTC_MAX

    # System time plays no part, and nothing is resumed.
    before_batch = to_system_utc = snapshot = lambda *_: None


def run_join(config, arrivals):
    """Return the steps of an equi-join: product joins in windows of 2W, one every W.

    A pair at most W apart shares the window in whose first half its earlier tuple lies.
    """
    (query, predicate), *more = config["queries"]
    if more or predicate != ["equi", "key"]:
        sys.exit(f"queries is {config['queries']}; a keyed join needs one query, equi on the key")
    width_us = max(1, config["window_us"])
    clock = _BothClock(NEVER_US if config["lateness_us"] is None else config["lateness_us"])
    windower = win.SlidingWindower(micros(2 * width_us), micros(width_us), EPOCH)
    flow, down, steps = Dataflow("join"), [], []
    streams = op.branch("streams", first_deliveries(flow, arrivals), lambda at: at[STREAM] == "R")
    r_side = op.key_on("R", streams.trues, lambda arrival: arrival[KEY])
    s_side = op.key_on("S", streams.falses, lambda arrival: arrival[KEY])
    out = win.join_window("join", clock, windower, r_side, s_side, insert_mode="product")
    op.output("down", out.down, TestingSink(down))
    run_main(flow)
    for _, (window, (r, s)) in down:
        is_pair = r and s and abs(r[AT] - s[AT]) <= config["window_us"]
        if is_pair and min(r[AT], s[AT]) // width_us == window:
            names = {"query": query, "r_id": r[SOURCE], "s_id": s[SOURCE]}
            steps.append({"kind": "match", **names})
    return steps


for line in sys.stdin:
    workload = json.loads(line)
    if not workload["flush"]:
        sys.exit("flush is false; the end of a source closes every window")
    run = {"join": run_join, "slack": run_windows}.get(workload["room"]) or sys.exit("no such room")
    found = run(workload["config"], workload["arrivals"])
    for row in [{"trace": 1, "producer": "Bytewax"}, *found, {"end": len(found)}]:
        print(json.dumps(row))
    sys.stdout.flush()
