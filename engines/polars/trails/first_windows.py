"""group_by_dynamic with overlapping windows: windows that begin before a group are missing."""

import sys

import polars as pl

frame = pl.DataFrame({"ts": [1, 5], "key": ["a", "b"]}).set_sorted("ts")


def windows(**settings):
    """Return the windows [start, start + 9), one every 4, that have a row, as (key, start)."""
    dynamic = frame.group_by_dynamic(
        "ts", every="4i", period="9i", closed="left", group_by="key", **settings
    )
    rows = dynamic.agg(pl.len()).filter(pl.col("len") > 0)
    return sorted(rows.select("key", "ts").rows())


expected = [("a", -4), ("a", 0), ("b", 0), ("b", 4)]
print("expected for a row at 1 of key a, and one at 5 of key b:", expected)
came = windows()
print("came:", came)
print("came with an offset of -12i:", windows(offset="-12i"))
sys.exit(0 if ("b", 0) not in came else 1)
