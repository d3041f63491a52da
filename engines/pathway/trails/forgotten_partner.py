"""An interval join with a cutoff forgets a record although its partner is in time."""

import logging
import sys

import pathway as pw


class Record(pw.Schema):
    at: int


logging.disable(logging.INFO)
# R runs ahead; then the first record of S comes, 5 after the first one of R.
r = pw.debug.table_from_rows(Record, [(0, 2, 1), (100, 4, 1), (101, 6, 1)], is_stream=True)
s = pw.debug.table_from_rows(Record, [(5, 8, 1)], is_stream=True)
came = {}
for cutoff in (10, None):
    behavior = pw.temporal.common_behavior(cutoff=cutoff)
    pairs = r.interval_join(s, r.at, s.at, pw.temporal.interval(-10, 10), behavior=behavior)
    table = pw.debug.table_to_pandas(pairs.select(r=r.at, s=s.at), include_id=False)
    came[cutoff] = [tuple(int(at) for at in row) for row in table.to_numpy()]
print("expected: the pair (0, 5), because no record is late in its own stream")
for cutoff, found in came.items():
    print(f"came, with cutoff {cutoff}:", *found or ["no pair"])
sys.exit(0 if came[10] == [] and came[None] == [(0, 5)] else 1)
