"""Windows aligned to an instant long ago lose items (reported for 0.18)."""

import sys
from datetime import UTC, datetime, timedelta

import bytewax.operators as op
from bytewax.dataflow import Dataflow
from bytewax.operators import windowing as win
from bytewax.testing import TestingSink, TestingSource, run_main

LENGTH, OFFSET = timedelta(milliseconds=1600), timedelta(milliseconds=700)
ALIGNED = datetime(1970, 1, 1, tzinfo=UTC)
first = datetime.fromtimestamp(1709315512.577, UTC)
items = [first + timedelta(milliseconds=100 * number) for number in range(20)]
down, late = [], []
flow = Dataflow("distant_alignment")
keyed = op.key_on("key", op.input("in", flow, TestingSource(items)), lambda _: "key")
clock = win.EventClock(ts_getter=lambda item: item, wait_for_system_duration=timedelta(seconds=10))
windower = win.SlidingWindower(length=LENGTH, offset=OFFSET, align_to=ALIGNED)
out = win.collect_window("window", keyed, clock, windower)
op.output("down", out.down, TestingSink(down))
op.output("late", out.late, TestingSink(late))
# System time is that of the items, so that none is late.
clock.now_getter = lambda: first
run_main(flow)

wanted = {}
for item in items:
    last = (item - ALIGNED) // OFFSET
    for window in range(last - 3, last + 1):
        if ALIGNED + window * OFFSET <= item < ALIGNED + window * OFFSET + LENGTH:
            wanted[window] = wanted.get(window, 0) + 1
came = {window: len(found) for _, (window, found) in down}
print("expected: items by window", wanted)
print("came:", came, "and late:", len(late))
sys.exit(0 if came != wanted else 1)
