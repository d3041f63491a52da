"""A join on a range, beside a subquery of its own table, that once found no pair."""

import sys

import duckdb

db = duckdb.connect(":memory:")
db.execute("SET merge_join_threshold = 0; SET nested_loop_join_threshold = 0")
db.execute(
    """
    CREATE TABLE shifts AS
    SELECT ts AS start, ts + INTERVAL 12 HOURS AS stop, date_part('yearweek', ts) AS week
    FROM range(TIMESTAMP '2023-01-01 06:00', TIMESTAMP '2023-06-01', INTERVAL 12 HOURS) t(ts)
    """
)
found = {}
for rows in (100, 1_000, 10_000):
    found[rows] = db.execute(
        f"""
        WITH seen AS (SELECT TIMESTAMP '2023-03-01 08:00' AS ts FROM range({rows})),
        chosen AS (SELECT * FROM shifts WHERE week IN (SELECT week FROM shifts))
        SELECT count(*) FROM seen JOIN chosen ON seen.ts >= start AND seen.ts <= stop
        """
    ).fetchone()[0]
print("expected pairs, by rows:", {rows: rows for rows in found})
print("came:                   ", found)
sys.exit(1 if all(rows == pairs for rows, pairs in found.items()) else 0)
