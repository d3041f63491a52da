"""A key whose windows are all closed forgets its watermark: a late item opens a window again."""

import sys
from datetime import UTC, datetime, timedelta

import bytewax.operators as op
from bytewax.dataflow import Dataflow
from bytewax.operators import windowing as win
from bytewax.testing import TestingSink, TestingSource, run_main

SECOND = timedelta(seconds=1)
start = datetime.now(UTC)
items = [
    ("in time", start),
    # The clock of the system goes on, passes the end of the window, and closes it.
    TestingSource.PAUSE(3 * SECOND),
    ("late", start + SECOND / 2),
]
down, late = [], []
flow = Dataflow("forgotten_watermark")
keyed = op.key_on("key", op.input("in", flow, TestingSource(items)), lambda _: "key")
clock = win.EventClock(ts_getter=lambda item: item[1], wait_for_system_duration=timedelta(0))
out = win.collect_window("window", keyed, clock, win.TumblingWindower(SECOND, align_to=start))
op.output("down", out.down, TestingSink(down))
op.output("late", out.late, TestingSink(late))
run_main(flow)

answers = [(window, [name for name, _ in found]) for _, (window, found) in down]
print("expected: window 0 has one answer, ['in time'], and 'late' is reported as late")
print("came:", "; ".join(f"window {window} has the answer {names}" for window, names in answers))
print("reported as late:", [name for _, (_, (name, _)) in late])
sys.exit(0 if len(answers) == 2 and not late else 1)
