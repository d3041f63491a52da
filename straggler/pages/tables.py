"""Tables and figures of the guides, and the command line that prints and draws them."""

import argparse
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from straggler.cli import render
from straggler.cli.render import markdown

Row = Sequence[object]
Figures = Mapping[str, Callable[[Path], None]]
"""Functions that draw a figure into a file, by the name of the file."""


class Table(NamedTuple):
    """A table of a guide."""

    header: Mapping[str, str]
    """Formats of its columns, by heading."""
    rows: Callable[[], Iterable[Row]]

    def markdown(self) -> str:
        """Return the table in Markdown."""
        return markdown(self.header, list(self.rows()))


def run(
    tables: Mapping[str, Table], figures: Figures | None = None, arguments: Sequence[str] = ()
) -> None:
    """Print the tables named by the arguments, or all of them; draw figures into a folder."""
    parser = argparse.ArgumentParser(description="Print tables of a guide in Markdown.")
    parser.add_argument("tables", metavar="TABLE", nargs="*", help=f"{', '.join(tables)} (all)")
    if figures:
        parser.add_argument("--figures", type=Path, metavar="FOLDER", help="draw figures there")
    options = parser.parse_args(arguments)
    for name in options.tables:
        if name not in tables:
            parser.error(f"there is no table {name!r}, only {', '.join(tables)}")
    for name in options.tables or tables:
        with render.progress() as progress:
            progress.add_task(f"computing {name}", total=None)
            text = tables[name].markdown()
        sys.stdout.write(f"{text}\n\n")
    if figures and options.figures:
        for name, draw in figures.items():
            with render.progress() as progress:
                progress.add_task(f"drawing {name}", total=None)
                draw(options.figures / name)
