"""What of the published claims is measured on Spark, too: figures of stored benchmarks."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from properties.errors import UsageError


class Measured(NamedTuple):
    """A figure that stands beside an experiment."""

    says: str
    benchmark: str
    figure: str


Figures = Mapping[tuple[str, str], float]
"""By benchmark and name."""

GROUPING, JOIN, WATERMARK = "grouping", "join", "watermark"
SLACK, SCRIPT = "slack", "script"
OF = "64: tuples/s"
"""Of chains with blocks of 64."""
BYTES = "Bytes between workers by the least there could be, blocks of"

WAIT = "disorder: mean wait, s"
BY_ITSELF = "by the operator of one task by itself"

MEASURED: Mapping[str, tuple[Measured, ...]] = {
    "slack-batches": (
        Measured(
            "Rows read for a correction by those that it needs, five windows a tuple",
            SLACK,
            "5 windows: rows read a correction / rows needed",
        ),
        Measured(
            "Fifty windows a tuple", SLACK, "50 windows: rows read a correction / rows needed"
        ),
        Measured(
            "Tuples/s of the whole query where 30% are late for a window, by those where 1% are",
            SLACK,
            "30% late against 1%",
        ),
    ),
    "grouping-dag": (
        Measured(
            "Tuples/s by those of DAG with alpha 0, half of the instances 1.25 times slower",
            GROUPING,
            "zipf, 1.25x, tag / dag, alpha 0",
        ),
        Measured("By those of DAG with its usual alpha", GROUPING, "zipf, 1.25x, tag / dag"),
        Measured(
            "With alpha 0, half of them 4 times slower", GROUPING, "zipf, 4x, tag / dag, alpha 0"
        ),
    ),
    "grouping-throughput": (
        Measured(
            "Tuples/s by those of DAG, half of the instances 1.25 times slower",
            GROUPING,
            "zipf, 1.25x, tag / dag",
        ),
        Measured("Half of them 4 times slower", GROUPING, "zipf, 4x, tag / dag"),
    ),
    "join-block-bytes": (
        Measured(f"{BYTES} 20 tuples", JOIN, "zeta 20: bytes / least bytes"),
        Measured(f"{BYTES} 64", JOIN, "zeta 64: bytes / least bytes"),
        Measured(f"{BYTES} 256", JOIN, "zeta 256: bytes / least bytes"),
    ),
    "join-efficiency": (
        Measured("Share of comparisons that give a pair, chain", JOIN, "P of the chain"),
        Measured("Spark's own join", JOIN, "P of native"),
        Measured("Every pair compared", JOIN, "P of plain"),
    ),
    "join-queries-bytes": (
        Measured("Bytes with 4 queries by those with one", JOIN, "4 queries: bytes / bytes of one"),
        Measured("With 16", JOIN, "16 queries: bytes / bytes of one"),
    ),
    "join-queries-rate": (
        Measured("Tuples/s with one query", JOIN, "1 queries: tuples/s"),
        Measured("With 4", JOIN, "4 queries: tuples/s"),
        Measured("With 16", JOIN, "16 queries: tuples/s"),
    ),
    "join-rate": (
        Measured("Tuples/s by those of Spark's own join, 2 workers", JOIN, "chain 2, 64 / native"),
        Measured("Tuples/s with one worker, on two cores in all", JOIN, f"chain 1, {OF}"),
        Measured("With 2", JOIN, f"chain 2, {OF}"),
        Measured("With 4", JOIN, f"chain 4, {OF}"),
    ),
    "script-balance": (
        Measured(
            "Largest load by an even share, four workers, 1,024 workflows of 1,000 sensors",
            SCRIPT,
            "largest load by even share, 1,024 workflows",
        ),
    ),
    "script-computations": (
        Measured(
            "Share of bytes that the blocks of 1,024 workflows save beside the hash of sensors",
            SCRIPT,
            "bytes less than by hash, 1,024 workflows",
        ),
    ),
    "script-lines": (
        Measured("Lines of the first script of script.md", SCRIPT, "lines of the script"),
        Measured("Of the same in PySpark", SCRIPT, "lines of PySpark"),
    ),
    "script-shared-sensors": (
        Measured(
            "Share of bytes that blocks save beside the hash of sensors, 8 of 16 shared by a union",
            SCRIPT,
            "bytes less than by hash, printed set",
        ),
    ),
    "watermark-reading": (
        Measured(f"Mean wait in s for the disorder, M = 3 s, {BY_ITSELF}", WATERMARK, WAIT),
    ),
    "watermark-wait": (
        Measured(
            f"Ratio by that of the fixed one, 3 s, {BY_ITSELF}", WATERMARK, "E, disorder / fixed"
        ),
        Measured("Coverage of the dynamic watermark", WATERMARK, "disorder: coverage"),
        Measured("Of the fixed one", WATERMARK, "fixed: coverage"),
    ),
}
"""By the name of the experiment."""


def figures(folder: Path) -> Figures:
    """The figures that are named here, from the results of benchmarks in a folder.

    Raises :class:`UsageError` with one sentence if one is not there.
    """
    found: dict[tuple[str, str], float] = {}
    for measured in (each for several in MEASURED.values() for each in several):
        path = folder / f"{measured.benchmark}.json"
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
            value = float(record["figures"][measured.figure])
        except (OSError, KeyError, TypeError, ValueError) as error:
            raise UsageError(
                f"{str(path)!r} has no figure {measured.figure!r}"
                f" ({type(error).__name__}); `make bench NAME={measured.benchmark}` measures it"
            ) from error
        found[measured.benchmark, measured.figure] = value
    return found
