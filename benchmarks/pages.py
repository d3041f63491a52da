"""The generated pages of ``docs``, and ``make docs``, which writes them anew.

Rules of this file:

1. ``make bench`` measures into an ignored folder; only ``make docs`` adopts the measurements, so
   that a benchmark alone changes no tracked file.
2. A page is generated from code, from the stored summary of sweeps and from adopted measurements. A
   test compares each page with what this file generates.
"""

import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.__main__ import MEASURED, RESULTS, readable
from benchmarks._cluster_table import with_table
from model.vocabulary.settings import JsonObject
from straggler.cli.render import markdown
from straggler.inputs.schemas import (
    FOLDER,
    calibration_schema,
    trace_schema,
    workload_schema,
    write,
)
from straggler.pages import reproduction, settings
from straggler.rooms import find_rooms, room_names
from straggler.rooms.join import guide as join_guide
from tests.soak.table import add_to

DOCS = Path(__file__).resolve().parents[1] / "docs"

SPEED = """\
# Measured speed

*Written by `make docs` from `benchmarks/results`; a test checks that it is current.*

After reading this page you know what each part of Straggler costs, and against what it was
measured. Seconds depend on the machine; ratios were measured side by side in one run, as medians of
several. `make bench NAME=slack` measures one section again; the docstring of its module in
`benchmarks` says how.
"""

SIMULATIONS = """\
## Simulations

Speed is counted in processor time, from the seed to trace, series and figures, as
`straggler sim ROOM` runs, without judging and drawing. A *bare event* is an event of a SimPy loop
that does nothing else, measured right before and after: the number of bare events that take as long
as one tuple depends less on the machine. *Event loop* is the part of the same run that SimPy's
event loop takes: without drawing what sources send, and without workload, trace, series and
figures. The goal is 50,000 tuples/s with default settings and 100,000 in the standard scenario of
`join`, or at most 30 bare events a tuple.
"""

SOAK_RESULT = "## Result\n\n"
SOAK = """\
*Written by `make docs` from `docs/soak.json`, which `make soak` measures; a test checks that this
section is current.*

Seeds {seeds}: **{faults} faults, {recovered} recovered, {lost} answers lost, {twice} twice,
{wrong} wrong**, in {minutes} minutes. {compared} answers were compared. Queries were started again
{restarts} times; {stalled} drivers did not answer within 90 s and were replaced. A fault with
recovery and check took {mean_s} s on average, at most {slowest_s} s.

{table}

A row is a query, with the faults that it has survived:

{rooms}
"""

_RUNS = {
    "`slack`, default settings": ("slack", "standard_"),
    "`watermark`, default settings": ("watermark", "standard_"),
    "`grouping`, default settings": ("grouping", "standard_"),
    "`join`, standard scenario": ("join", "standard_"),
    "`script`, default settings": ("script", "standard_"),
    "`slack`, 100,000 tuples in five windows each": ("slack", ""),
    "`watermark`, sliding windows": ("watermark", "sliding_"),
    "`grouping`, 60,000 tuples": ("grouping", ""),
    "`join`, standard scenario in blocks of 20": ("join", "blocks_of_20_"),
    "`join`, default settings": ("join", "default_"),
    "`script`, 54,400 tuples, each sensor 20 a second": ("script", "longer_"),
}
"""Room of each timed run, and the prefix of its figures."""
_COLUMNS = {
    "tuples_per_s": "tuples/s",
    "timed_tuples_per_s": "tuples/s, event loop",
    "bare_events_a_tuple": "bare events a tuple",
    "timed_bare_events_a_tuple": "bare events a tuple, event loop",
    "peak_bytes_a_tuple": "peak bytes a tuple",
}


def schemas() -> dict[str, str]:
    """Return the text of each JSON Schema, by the name of its file."""
    rooms = find_rooms("all")
    found = {f"trace-{room.name}": trace_schema(room) for room in rooms}
    found["workload"] = workload_schema({room.name: room.config for room in rooms})
    found["calibration"] = calibration_schema()
    return {f"{name}.schema.json": write(schema) for name, schema in found.items()}


def pages() -> dict[str, str]:
    """Return the text of each generated page, by its name."""
    guide = (DOCS / "join-guide.md").read_text(encoding="utf-8")
    summary = reproduction.read_summary(DOCS / "reproduction.json")
    return {
        "settings.md": settings.markdown(room_names()),
        "speed.md": speed(RESULTS),
        "reproduction.md": reproduction.page(summary, reproduction.figures(RESULTS)),
        "cluster.md": with_table((DOCS / "cluster.md").read_text(encoding="utf-8"), RESULTS),
        "join-guide.md": join_guide.with_tables(guide, RESULTS),
        "soak.md": soak(
            (DOCS / "soak.md").read_text(encoding="utf-8"),
            json.loads((DOCS / "soak.json").read_text(encoding="utf-8")),
        ),
    }


def speed(folder: Path) -> str:
    """Return the page of all figures in a folder of measurements."""
    stored = {path.stem: json.loads(path.read_text("utf-8")) for path in sorted(folder.iterdir())}
    figures = {name: each["figures"] for name, each in stored.items()}
    rows = [[f"`{name}`", *_machine(each)] for name, each in stored.items()]
    header = dict.fromkeys(["benchmark", "Python", "Spark", "cores"], "")
    parts = [SPEED, markdown(header, rows), "", SIMULATIONS, _simulations(figures), ""]
    for name, found in figures.items():
        others = [] if name == "cluster" else list(_others(name, found))  # docs/cluster.md has them
        if others:
            parts += [f"## `{name}`\n", markdown({"figure": "", "value": ""}, others), ""]
    return "\n".join(parts).rstrip() + "\n"


def soak(page: str, summary: JsonObject) -> str:
    """Return the page about soaks with the result of a stored one as its last section."""
    by_kind: dict[str, dict[str, int]] = summary["moments"]
    moments = [*next(iter(by_kind.values()))]
    counts: list[list[Any]] = [
        [kind, *own.values(), sum(own.values())] for kind, own in by_kind.items()
    ]
    totals = [sum(each[at] for each in counts) for at in range(1, len(moments) + 2)]
    rows = [[each or "" for each in row] for row in [*counts, ["all", *totals]]]
    rooms = [[f"`{room}`", faults] for room, faults in summary["rooms"].items()]
    head, _, _ = page.partition(SOAK_RESULT)
    shown = {name: f"{each:,}" for name, each in summary.items() if isinstance(each, int | float)}
    shown |= {
        "seeds": ", ".join(map(str, summary["seeds"])),
        "mean_s": f"{60 * summary['minutes'] / max(1, summary['faults']):.1f}",
        "table": markdown(dict.fromkeys(["fault", *moments, "all"], ""), rows),
        "rooms": markdown({"query": "", "faults": ""}, rooms),
    }
    return head + SOAK_RESULT + SOAK.format(**shown)


def _machine(record: JsonObject) -> list[object]:
    return [record[name] for name in ("python", "spark", "cores")]


def _simulations(figures: Mapping[str, JsonObject]) -> str:
    rows = []
    for label, (room, prefix) in _RUNS.items():
        found = [figures[f"sim_{room}"].get(prefix + name) for name in _COLUMNS]
        rows.append([label, *("" if figure is None else readable(figure) for figure in found)])
    return markdown({"run": "", **dict.fromkeys(_COLUMNS.values(), "")}, rows)


def _others(name: str, figures: JsonObject) -> Iterator[list[str]]:
    """Yield the figures of a benchmark that are not in the table of simulations."""
    prefixes = [prefix for room, prefix in _RUNS.values() if name == f"sim_{room}"]
    shown = {prefix + column for prefix in prefixes for column in _COLUMNS}
    for label, figure in figures.items():
        if label not in shown:
            yield [label.replace("_", " ").replace("|", "\\|"), readable(figure)]


def adopt() -> None:
    """Move new measurements to the tracked results, and their pictures to the docs.

    A soak with other seeds is added to those before it.
    """
    soaked = MEASURED / "soak.json"
    if soaked.exists():
        stored, new = (json.loads(path.read_text("utf-8")) for path in (DOCS / "soak.json", soaked))
        text = json.dumps(add_to(stored, new), indent=2) + "\n"
        (DOCS / "soak.json").write_text(text, encoding="utf-8")
        soaked.unlink()
    for path in sorted(MEASURED.glob("*.json")):
        shutil.move(path, RESULTS / path.name)
    for path in sorted(MEASURED.glob("*.svg")):
        shutil.move(path, DOCS / "figures" / path.name)


if __name__ == "__main__":
    adopt()
    for name, text in pages().items():
        (DOCS / name).write_text(text, encoding="utf-8")
    for name, text in schemas().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
