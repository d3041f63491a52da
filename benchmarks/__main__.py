"""Run benchmarks: `python -m benchmarks [NAME ...]`, or all of them without a name.

A benchmark is a module in this folder whose function ``measure`` returns figures by name. The
figures go to ``benchmarks/measured/NAME.json`` with versions and the number of cores, and without
dates, so that two files differ only where something changed.
"""

import importlib
import json
import pkgutil
import platform
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

from rich.console import Console
from rich.table import Table

import benchmarks
from sim.sweep.jobs import cores

Figure = float | int | str
Figures = Mapping[str, Figure]
Benchmark = Callable[[], Figures]

MEASURED = Path(__file__).parent / "measured"
RESULTS = Path(__file__).parent / "results"
"""Adopted measurements, which generated pages show; ``make docs`` adopts new ones."""
USAGE_ERROR = 2


def available(names: Iterable[str], package: str) -> dict[str, Benchmark]:
    """Return the benchmarks in modules of a package, by name."""
    modules = {name: importlib.import_module(f"{package}.{name}") for name in sorted(names)}
    return {name: each.measure for name, each in modules.items() if hasattr(each, "measure")}


def write(name: str, figures: Figures, folder: Path) -> None:
    """Write one benchmark's figures to ``folder/NAME.json``."""
    record = {
        "benchmark": name,
        "python": platform.python_version(),
        "spark": version("pyspark"),
        "cores": cores(),
        "figures": dict(figures),
    }
    folder.mkdir(exist_ok=True)
    text = json.dumps(record, indent=2, ensure_ascii=False)
    (folder / f"{name}.json").write_text(text + "\n", encoding="utf-8")


def readable(figure: Figure) -> str:
    """Return a figure in useful digits: 412345.6 -> 412,346 and .012345 -> 0.0123."""
    if isinstance(figure, float) and abs(figure) < 1000:
        return f"{figure:.3g}"
    return figure if isinstance(figure, str) else f"{figure:,.0f}"


def run(chosen: Mapping[str, Benchmark], folder: Path, console: Console) -> None:
    """Measure, write and show benchmarks; the exception of a failing one ends the run."""
    table = Table("benchmark", "figure")
    table.add_column("value", justify="right")
    for name, measure in chosen.items():
        with Console(stderr=True).status(f"measuring {name} ..."):
            figures = measure()
        write(name, figures, folder)
        for row, (label, figure) in enumerate(figures.items()):
            table.add_row("" if row else name, label, readable(figure))
        table.add_section()
    console.print(table)


def main(names: Sequence[str], known: Mapping[str, Benchmark], folder: Path) -> int:
    """Run the named benchmarks, or all without names; return the exit code."""
    for name in names:
        if name not in known:
            names_of_all = ", ".join(known)
            sys.stderr.write(f"There is no benchmark {name!r}: choose from {names_of_all}.\n")
            return USAGE_ERROR
    run({name: known[name] for name in names or known}, folder, Console())
    return 0


if __name__ == "__main__":
    found = (module.name for module in pkgutil.iter_modules(benchmarks.__path__))
    modules = [name for name in found if not name.startswith("_")]
    sys.exit(main(sys.argv[1:], available(modules, "benchmarks"), MEASURED))
