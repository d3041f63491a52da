"""Tables and figures of docs/grouping-guide.md.

``python -m straggler.rooms.grouping.guide [FOLDER]`` simulates, prints the tables, and draws the
figures into the folder.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

from model.vocabulary.grouping import POLICIES
from sim.grouping import experiments
from sim.grouping.experiments import Sweep, plot_sweep
from sim.grouping.settings import TIMES
from straggler.cli.render import markdown

Figures = Mapping[str, float | str]


def simulated() -> Figures:
    """Return the figures of all experiments."""
    found = (
        experiments.sides(experiments.policies()),
        experiments.rho_over_instances(),
        experiments.throughput_over_speeds(),
        experiments.rho_over_windows(),
        experiments.rho_over_senders(),
        experiments.swap(),
        experiments.propagation(),
        experiments.tag_against_dag(),
        experiments.tag_against_nag(),
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


# ------------------------------------------------------------------------------- published claims


def against_dag(figures: Figures) -> list[str]:
    """Return the lines of the table of throughput against ``dag``."""
    header = ("mean / least speed", "Zipf", *(f"alpha {alpha:g}" for alpha in experiments.ALPHAS))
    rows = []
    for spread in experiments.SPREADS:
        for exponent in experiments.EXPONENTS:
            start = f"tag/dag, spread {spread:g}, zipf {exponent:g}"
            more = [
                _advantage(figures[f"{start}, alpha {alpha:g}"]) for alpha in experiments.ALPHAS
            ]
            rows.append((f"{spread:g}", f"{exponent:g}", *more))
    return _table(header, rows)


def against_nag(figures: Figures) -> list[str]:
    """Return the lines of the table of latency against the stand-ins for ``nag``."""
    header = ("instances", "load", *(f"`{each}`" for each in experiments.STAND_INS))
    rows = []
    for place in experiments.PLACES:
        for load in experiments.LOADS:
            more = [
                _advantage(figures[f"tag/{each}, {place}, load {load:g}"], less=0.0)
                for each in experiments.STAND_INS
            ]
            rows.append((place, f"{load:.0%}", *more))
    return _table(header, rows)


def _advantage(figure: float | str, less: float = 1.0) -> str:
    return figure if isinstance(figure, str) else f"{figure - less:+.0%}"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return markdown(dict.fromkeys(header, ""), rows).splitlines()


# ---------------------------------------------------------------------------------------- figures


def over_instances(figures: Figures) -> Sweep:
    """Return the figure of rho, by number of instances."""
    return Sweep(
        "rho where the second half of the instances is ten times slower (Zipf 0.5), simulated",
        "instances",
        "rho",
        experiments.INSTANCES,
        {
            policy: [float(figures[f"rho, n {n}: {policy}"]) for n in experiments.INSTANCES]
            for policy in experiments.BY_SIZE
        },
    )


def over_speeds(figures: Figures) -> Sweep:
    """Return the figure of throughput, by ratio of speeds."""
    return Sweep(
        "Throughput of 12 instances, every second one slower (Zipf 0.5), simulated",
        "times slower",
        "% of a fluid's",
        experiments.SLOWER,
        {
            policy: [
                100 * float(figures[f"share, {slower:g}x: {policy}"])
                for slower in experiments.SLOWER
            ]
            for policy in experiments.BY_SPEED
        },
    )


PLOTS: Mapping[str, Callable[[Figures], Sweep]] = {
    "grouping-instances.svg": over_instances,
    "grouping-speeds.svg": over_speeds,
}


def tables(figures: Figures) -> Iterator[list[str]]:
    """Yield all tables of the page."""
    yield policies(figures)
    yield windows(figures)
    yield senders(figures)
    yield swap(figures)
    yield propagation(figures)
    yield against_dag(figures)
    yield against_nag(figures)


def _show(*folders: str) -> None:
    figures = simulated()
    for lines in tables(figures):
        sys.stdout.write("\n".join([*lines, "", ""]))
    for folder in folders:
        for name, sweep in PLOTS.items():
            plot_sweep(sweep(figures), Path(folder) / name)


if __name__ == "__main__":
    _show(*sys.argv[1:])
