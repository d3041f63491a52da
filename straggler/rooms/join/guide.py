"""Worked example and measured figures of docs/join-guide.md.

The model computes the example. ``make docs`` writes both tables into the page.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import ceil
from pathlib import Path

from model.join.control import Traffic, block_size, workers_for
from model.vocabulary.join_load import Limits

# ----------------------------------------------------------------------------- the worked example

RATE = 5_000
"""Tuples a second in each stream."""
WINDOW_S, LATENESS_S = 60, 5
TUPLE_BYTES, HEADER_BYTES = 30, 60
CAPACITY = 200_000  # tuples that a worker can hold
LIMITS = Limits(0.25, 0.75, 0.75)
LARGEST = 256  # tuples of a block
ROUND_TRIP_S = 0.05
BUSY = 0.749  # utilisation just below tau1
SIZES_HEADER = ("what", "formula", "here")


def sizes() -> Iterator[Sequence[str]]:
    """Yield the rows of the worked example: quantity, formula, value."""
    held = 2 * RATE * (WINDOW_S + LATENESS_S)
    workers = workers_for(1, held / CAPACITY, LIMITS)
    tau = held / workers / CAPACITY
    zeta = block_size(tau, CAPACITY, workers, LIMITS.tau1, LARGEST)
    small = block_size(BUSY, CAPACITY, workers, LIMITS.tau1, LARGEST)
    traffic = Traffic(2 * RATE, workers, TUPLE_BYTES, HEADER_BYTES)
    yield "tuples held", "`(lambda_R + lambda_S) (W + L)`", f"{held:,}"
    yield "workers", "`max(1, round(held / (C tau*)))`", f"{workers}"
    yield "utilisation then", "`held / (m C)`", f"{tau:.2f}"
    yield "block size", "`zeta(tau)`", f"{zeta}, which is `zeta*`"
    yield f"the same at a utilisation of {BUSY}", "`zeta(tau)`", f"{small}"
    yield "bytes between workers", "`b(zeta)`", f"{traffic.bytes_per_s(zeta) / 1e6:.2f} MB/s"
    bound = traffic.overhead_bound(zeta)
    yield "headers, on top of the tuples", "`k c / (zeta l)`", f"{bound:.1%}"
    more = traffic.overhead_bound(small)
    yield f"the same at a utilisation of {BUSY}", "`k c / (zeta l)`", f"{more:.1%}"
    credit = ceil(RATE * ROUND_TRIP_S / zeta)
    yield "credit, at least", "`lambda * round trip / zeta`, rounded up", f"{credit}"


# ---------------------------------------------------------------------------------------- figures

MEASURED = {
    "chain of 2 workers, blocks of 64, on streams": ("chain 2, 64: tuples/s", ",.0f"),
    "the same, blocks of 20": ("chain 2, 20: tuples/s", ",.0f"),
    "the same, blocks of 256": ("chain 2, 256: tuples/s", ",.0f"),
    "the same, 1 worker": ("chain 1, 64: tuples/s", ",.0f"),
    "the same, 4 workers": ("chain 4, 64: tuples/s", ",.0f"),
    "Spark's join of two streams on buckets": ("native: tuples/s", ",.0f"),
    "chain of 2 workers on tables": ("chain batch: tuples/s", ",.0f"),
    "Spark's join of two tables on buckets": ("batch: tuples/s", ",.0f"),
}
"""Name of each figure in the results and its format, by its name in the guide."""
FIGURES_HEADER = ("what", "tuples/s")


def stored(results: Path) -> Mapping[str, float]:
    """Return the figures of the benchmark from a folder of results, by name."""
    text = (results / "join.json").read_text(encoding="utf-8")
    figures: Mapping[str, float] = json.loads(text)["figures"]
    return figures


def measured(figures: Mapping[str, float]) -> Iterator[Sequence[str]]:
    """Yield the rows of the measured figures."""
    for name, (key, form) in MEASURED.items():
        yield name, f"{figures[key]:{form}}"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table in Markdown."""
    lines = [f"| {' | '.join(line)} |" for line in (header, *rows)]
    return [lines[0], "|---" * len(header) + "|", *lines[1:]]


def with_tables(page: str, results: Path) -> str:
    """Return a page with both tables rewritten; ``results`` is a folder of benchmark results."""
    tables = table(SIZES_HEADER, sizes()), table(FIGURES_HEADER, measured(stored(results)))
    for lines in tables:
        old = re.compile(rf"^{re.escape(lines[0])}\n(\|.*\n)*", re.MULTILINE)
        page = old.sub("\n".join([*lines, ""]), page)
    return page
