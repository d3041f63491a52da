"""join_where on three inequalities, whose order once changed the rows."""

import itertools
import sys

import polars as pl

left = pl.LazyFrame({"a": [1, 2, 3, 1, None], "b": [1, 2, 3, 4, 5]})
right = pl.LazyFrame(
    {"c": [1, 4, 3, 8, None, None, 1], "d": [6, None, 3, 8, -1, 2, 4], "e": [2, 3, 4, 5, 6, 7, 8]}
)
conditions = [
    pl.col("a") < pl.col("d"),
    pl.col("b") < pl.col("e"),
    pl.col("a") < pl.col("c"),
]
crossed = left.join(right, how="cross").filter(*conditions).collect()
expected = sorted(crossed.rows(), key=str)
print("expected in every order:", len(expected), "rows")
wrong = 0
for order in itertools.permutations(range(3)):
    came = left.join_where(right, *[conditions[n] for n in order]).collect()
    wrong += sorted(came.select(crossed.columns).rows(), key=str) != expected
    print("came in the order", order, ":", came.height, "rows")
sys.exit(0 if wrong else 1)
