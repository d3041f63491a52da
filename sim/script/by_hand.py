"""Six workflows as scripts, and as PySpark programs that were written by hand, to count lines.

Rules of this file:

* A program is what a Spark programmer would write for that one workflow: windows that belong
  together are one aggregation, and latest values are combined only where the workflow needs it.
* It is a batch job over a complete table of tuples (``sensor``, ``ts``, ``value``), without
  lateness, state or placement. A streaming job takes more lines.
* A program names its sensors in ``run`` alone, so that many queries can share the rest.
* Lines that are blank or a comment do not count. A test runs the programs, and compares their
  results with those of the scripts.
"""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from model.vocabulary.settings import Setting, read_settings

RUN = "def run("


class ByHand(NamedTuple):
    """A workflow in both languages."""

    script: str
    program: str
    """Module with a function ``run``, from tuples to results by name."""

    def renumber(self, number: int) -> "ByHand":
        """Return the same workflow over sensors of its own, whose names end in ``_number``."""
        script, program = self
        for sensor in sorted(set(re.findall(r'"(.+?)"', script))):
            own = f'"{sensor}_{number}"'
            script = script.replace(f'"{sensor}"', own)
            program = program.replace(f'"{sensor}"', own)
        return ByHand(script, program)


def program_of(queries: Sequence[ByHand]) -> str:
    """Return one program for queries like one workflow: query ``n`` is a function ``run_n``.

    Imports and other functions are written once.
    """
    parts = [each.program.partition(RUN) for each in queries]
    runs = [f"def run_{number}({run}" for number, (_, _, run) in enumerate(parts)]
    return parts[0][0] + "\n\n".join(runs)


PRINTED = ByHand(
    """\
MD1Z = avg("8MD1-AZ", 600_000, 300_000)
UNI = union("8MD2-A", "8MD3-A")
MD23 = avg(UNI, 600_000, 300_000)
MD4Z = avg("8MD4-AZ", 600_000, 300_000)
UNIF = union(MD1Z, MD23, MD4Z)
out_MZ = max(UNIF, 600_000, 300_000)
out_AZ = avg(UNIF, 600_000, 300_000)
""",
    """\
from pyspark.sql import DataFrame
from pyspark.sql import functions as F


def windowed(stream: DataFrame, value) -> DataFrame:
    end = F.col("window.end") - F.expr("INTERVAL 1 MILLISECOND")
    windows = stream.groupBy(F.window("ts", "10 minutes", "5 minutes"))
    return windows.agg(value.alias("value")).select(end.alias("ts"), "value")


def run(tuples: DataFrame) -> dict[str, DataFrame]:
    mean, most = F.avg("value"), F.max("value")
    md1z = windowed(tuples.where(F.col("sensor") == "8MD1-AZ"), mean)
    md23 = windowed(tuples.where(F.col("sensor").isin("8MD2-A", "8MD3-A")), mean)
    md4z = windowed(tuples.where(F.col("sensor") == "8MD4-AZ"), mean)
    unif = md1z.union(md23).union(md4z)
    out = {"out_MZ": windowed(unif, most), "out_AZ": windowed(unif, mean)}
    return {"MD1Z": md1z, "MD23": md23, "MD4Z": md4z, **out}
""",
)
"""The example that the source prints."""

SPREAD = ByHand(
    """\
spread = max("A", 10_000, 5_000) - min("A", 10_000, 5_000)
""",
    """\
from pyspark.sql import DataFrame
from pyspark.sql import functions as F


def run(tuples: DataFrame) -> dict[str, DataFrame]:
    a = tuples.where(F.col("sensor") == "A")
    windows = a.groupBy(F.window("ts", "10 seconds", "5 seconds"))
    spread = windows.agg((F.max("value") - F.min("value")).alias("value"))
    end = F.col("window.end") - F.expr("INTERVAL 1 MILLISECOND")
    return {"spread": spread.select(end.alias("ts"), "value")}
""",
)

STEADINESS = ByHand(
    """\
mean = avg("A", 10_000, 5_000)
noise = stddev("A", 10_000, 5_000)
tuples = count("A", 10_000, 5_000)
steadiness = noise / mean
""",
    """\
from pyspark.sql import DataFrame
from pyspark.sql import functions as F


def run(tuples: DataFrame) -> dict[str, DataFrame]:
    a = tuples.where(F.col("sensor") == "A")
    windows = a.groupBy(F.window("ts", "10 seconds", "5 seconds"))
    both = windows.agg(
        F.avg("value").alias("mean"),
        F.stddev_pop("value").alias("noise"),
        F.count("value").cast("double").alias("tuples"),
    ).withColumn("steadiness", F.try_divide("noise", "mean"))
    end = F.col("window.end") - F.expr("INTERVAL 1 MILLISECOND")
    names = ["mean", "noise", "tuples", "steadiness"]
    return {
        name: both.select(end.alias("ts"), F.col(name).alias("value")).dropna() for name in names
    }
""",
)

EXCESS = ByHand(
    """\
short = avg("A", 2_000, 1_000)
long = avg("A", 10_000, 5_000)
excess = short - long
""",
    """\
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F


def average(tuples: DataFrame, sensor: str, name: str, length: str, slide: str) -> DataFrame:
    windows = tuples.where(F.col("sensor") == sensor).groupBy(F.window("ts", length, slide))
    end = F.col("window.end") - F.expr("INTERVAL 1 MILLISECOND")
    return windows.agg(F.avg("value").alias(name)).select(end.alias("ts"), name)


def run(tuples: DataFrame) -> dict[str, DataFrame]:
    short = average(tuples, "A", "short", "2 seconds", "1 second")
    long = average(tuples, "A", "long", "10 seconds", "5 seconds")
    so_far = Window.orderBy("ts").rowsBetween(Window.unboundedPreceding, 0)
    latest = short.join(long, "ts", "full").select(
        "ts",
        F.last("short", ignorenulls=True).over(so_far).alias("short"),
        F.last("long", ignorenulls=True).over(so_far).alias("long"),
    )
    excess = latest.dropna().select("ts", F.col("short") - F.col("long"))
    return {"short": short, "long": long, "excess": excess}
""",
)

HOTTEST = ByHand(
    """\
a = avg("A", 2_000, 2_000)
b = avg("B", 3_000, 3_000)
hottest = max(a, b)
celsius = (hottest - 32) * 5 / 9
""",
    """\
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F


def average(tuples: DataFrame, sensor: str, length: str) -> DataFrame:
    windows = tuples.where(F.col("sensor") == sensor).groupBy(F.window("ts", length))
    end = F.col("window.end") - F.expr("INTERVAL 1 MILLISECOND")
    return windows.agg(F.avg("value").alias(sensor)).select(end.alias("ts"), sensor)


def run(tuples: DataFrame) -> dict[str, DataFrame]:
    a, b = average(tuples, "A", "2 seconds"), average(tuples, "B", "3 seconds")
    so_far = Window.orderBy("ts").rowsBetween(Window.unboundedPreceding, 0)
    latest = a.join(b, "ts", "full").select(
        "ts",
        F.last("A", ignorenulls=True).over(so_far).alias("A"),
        F.last("B", ignorenulls=True).over(so_far).alias("B"),
    )
    hottest = latest.dropna().select("ts", F.greatest("A", "B").alias("value"))
    celsius = hottest.select("ts", (F.col("value") - 32) * 5 / 9)
    return {"a": a, "b": b, "hottest": hottest, "celsius": celsius}
""",
)

PEAKS = ByHand(
    """\
peak = max("A", 2_000, 2_000)
usual = avg(peak, 10_000, 10_000)
""",
    """\
from pyspark.sql import DataFrame
from pyspark.sql import functions as F


def windowed(stream: DataFrame, value, length: str) -> DataFrame:
    end = F.col("window.end") - F.expr("INTERVAL 1 MILLISECOND")
    windows = stream.groupBy(F.window("ts", length)).agg(value.alias("value"))
    return windows.select(end.alias("ts"), "value")


def run(tuples: DataFrame) -> dict[str, DataFrame]:
    peak = windowed(tuples.where(F.col("sensor") == "A"), F.max("value"), "2 seconds")
    return {"peak": peak, "usual": windowed(peak, F.avg("value"), "10 seconds")}
""",
)

WORKFLOWS: Mapping[str, ByHand] = {
    "printed": PRINTED,
    "spread": SPREAD,
    "steadiness": STEADINESS,
    "excess": EXCESS,
    "hottest": HOTTEST,
    "peaks": PEAKS,
}
ALL = "all"
ALONE, TOGETHER = "alone", "together"


SETTINGS: Mapping[str, Setting] = {
    each.name: each
    for each in (
        Setting("workflow", name="workflow", choices=(*WORKFLOWS, ALL), default=ALL),
        Setting("queries like the workflow", name="queries", kind=int, above=0, default=1),
        Setting("queries in a program", name="style", choices=(ALONE, TOGETHER), default=ALONE),
    )
}


def line_count(text: str) -> int:
    """Return the number of lines that are neither blank nor a comment."""
    lines = [line.strip() for line in text.splitlines()]
    return sum(bool(line) and not line.startswith("#") for line in lines)


def figures(texts: Mapping[str, str], _seed: int) -> dict[str, int]:
    """Return the lines of scripts and programs for many queries, generated from those by hand.

    In the style ``alone`` a query is a program of its own; in the style ``together`` the queries
    like one workflow are one program, as :func:`program_of` writes it.
    """
    asked = read_settings(texts, SETTINGS)
    names = list(WORKFLOWS) if asked["workflow"] == ALL else [str(asked["workflow"])]
    sets = [[WORKFLOWS[name].renumber(n) for n in range(asked["queries"])] for name in names]
    scripts = sum(line_count(each.script) for queries in sets for each in queries)
    if asked["style"] == ALONE:
        programs = sum(line_count(each.program) for queries in sets for each in queries)
    else:
        programs = sum(line_count(program_of(queries)) for queries in sets)
    return {
        "workflows": len(sets),
        "script_lines": scripts,
        "program_lines": programs,
        "lines_saved": programs - scripts,
    }
