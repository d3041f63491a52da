"""Tables of docs/grouping-guide.md: ``python -m straggler.rooms.grouping.guide`` prints them."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from model.vocabulary.grouping import POLICIES
from sim.grouping import experiments
from sim.grouping.settings import TIMES
from straggler.cli.render import markdown

Figures = Mapping[str, float | str]


def simulated() -> Figures:
    """Return the figures of all experiments."""
    found = (
        experiments.sides(experiments.policies()),
        experiments.rho_over_windows(),
        experiments.rho_over_senders(),
        experiments.swap(),
        experiments.propagation(),
    )
    return dict(chain.from_iterable(found))


# ------------------------------------------------------------------------------------ all policies

COLUMNS: Mapping[str, tuple[str, str, str]] = {
    "alike": ("alike", "share_of_ideal", ".0%"),
    "alike, z = 2": ("alike, skewed", "share_of_ideal", ".0%"),
    "unequal": ("unequal", "share_of_ideal", ".0%"),
    "latency, ms": ("unequal", "mean_latency_us", "ms"),
    "99%, ms": ("unequal", "p99_latency_us", "ms"),
    "rho": ("unequal", "mean_rho", ".2f"),
    "I": ("unequal", "mean_imbalance", ".2f"),
    "instances a key": ("unequal", "instances_a_key", ".2f"),
}
"""Situation, figure and format, by heading."""


def policies(figures: Figures) -> list[str]:
    """Return the lines of the table of all policies."""
    rows = [
        (
            f"`{policy}`",
            *(
                _as_text(figures[f"{situation}, {policy}: {name}"], form)
                for situation, name, form in COLUMNS.values()
            ),
        )
        for policy in POLICIES
    ]
    return _table(("policy", *COLUMNS), rows)


def _as_text(figure: float | str, form: str) -> str:
    if isinstance(figure, str):
        return figure
    return f"{figure / 1e3:.1f}" if form == "ms" else f"{figure:{form}}"


def windows(figures: Figures) -> list[str]:
    """Return the lines of the table of window lengths with stragglers."""
    header = ("window, tuples", *(f"`{policy}`" for policy in experiments.TAGS))
    rows = [
        (
            f"{window:,}",
            *(f"{figures[f'rho, window {window}: {each}']:.2f}" for each in experiments.TAGS),
        )
        for window in experiments.WINDOWS
    ]
    return _table(header, rows)


def senders(figures: Figures) -> list[str]:
    """Return the lines of the table of senders."""
    rows = [
        (
            f"{each}",
            f"{figures[f'senders {each}: share']:.0%}",
            f"{figures[f'senders {each}: rho']:.2f}",
        )
        for each in experiments.SENDERS
    ]
    return _table(("senders", "throughput", "rho"), rows)


def swap(figures: Figures) -> list[str]:
    """Return the lines of the table of measured times and of times given once."""
    rows = [(times, _as_text(figures[f"swap, times {times}: latency_us"], "ms")) for times in TIMES]
    return _table(("times", "mean latency, ms"), rows)


def propagation(figures: Figures) -> list[str]:
    """Return the lines of the table of times with and without propagation."""
    rows = [
        (
            name,
            f"{figures[f'propagation {name}: share']:.0%}",
            f"{figures[f'propagation {name}: rho']:.2f}",
        )
        for name in ("left out", "included")
    ]
    return _table(("propagation", "throughput", "rho"), rows)


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return markdown(dict.fromkeys(header, ""), rows).splitlines()


def tables(figures: Figures) -> Iterator[list[str]]:
    """Yield all tables of the page."""
    yield policies(figures)
    yield windows(figures)
    yield senders(figures)
    yield swap(figures)
    yield propagation(figures)


if __name__ == "__main__":
    for lines in tables(simulated()):
        sys.stdout.write("\n".join([*lines, "", ""]))
