"""A left join on two inequalities, with NULLs in one column or the other."""

import sys

import duckdb

db = duckdb.connect(":memory:")
db.execute("SET merge_join_threshold = 0; SET nested_loop_join_threshold = 0")
rows = [(n % 10 or None, n % 11 or None, n) for n in range(200)]
db.execute("CREATE TABLE t (x INTEGER, y INTEGER, z INTEGER)")
db.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
query = "SELECT a.z, b.z FROM t a LEFT JOIN t b ON a.x < b.x AND a.y < b.y"
came = sorted(db.execute(query).fetchall(), key=str)
expected = []
for x, y, z in rows:
    fits = [w for u, v, w in rows if x and y and u and v and x < u and y < v]
    expected += [(z, w) for w in fits] or [(z, None)]
plan = db.execute(f"EXPLAIN {query}").fetchone()[1]
print("operator:", "IE Join" if "IE Join" in plan else "another one than IE Join")
print("expected rows:", len(expected))
print("came:         ", len(came), "" if came == sorted(expected, key=str) else "(other rows)")
sys.exit(1 if came == sorted(expected, key=str) else 0)
