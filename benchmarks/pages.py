"""Generated pages of ``docs``, which ``make docs`` writes anew.

Rules of this file:

1. ``make bench`` measures into an ignored folder; only ``make docs`` adopts the measurements, so
   that a benchmark alone changes no tracked file.
2. A page is generated from code, docstrings, the stored summary of sweeps and adopted measurements.
   A test compares each page with what this file generates.
"""

import json
import shutil
from pathlib import Path
from typing import Any

from benchmarks import api, settings
from benchmarks.__main__ import MEASURED, RESULTS, readable
from model.vocabulary.settings import JsonObject
from straggler.cli.render import markdown
from straggler.pages import reproduction
from straggler.rooms import room_names
from tests.soak.table import add_to

DOCS = Path(__file__).resolve().parents[1] / "docs"

SPEED = """\
# Measured speed

*Written by `make docs` from `benchmarks/results`; a test checks that it is current.*

This page says what each part of Straggler costs, and against what it was measured. Seconds depend
on the machine; ratios were measured side by side in one run, as medians of several.
`make bench NAME=slack` measures one section again; the docstring of its module in `benchmarks` says
how.
"""

KERNEL = """\
Simulations, from the seed to trace, series and figures, in processor time. A *bare event* is an
event of a SimPy loop that does nothing else, measured right before and after: how many of them take
as long as one tuple depends less on the machine. The goal is 50,000 tuples/s with default settings
and 100,000 in the standard scenario of `join`, or at most 30 bare events a tuple.
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

The faults that each query has survived:

{rooms}
"""


def pages() -> dict[str, str]:
    """Return the text of each generated page, by its name."""
    summary = reproduction.read_summary(DOCS / "reproduction.json")
    return {
        "api.md": api.page(),
        "settings.md": settings.markdown(room_names()),
        "speed.md": speed(RESULTS),
        "reproduction.md": reproduction.page(summary),
        "soak.md": soak(
            (DOCS / "soak.md").read_text(encoding="utf-8"),
            json.loads((DOCS / "soak.json").read_text(encoding="utf-8")),
        ),
    }


def speed(folder: Path) -> str:
    """Return the page of measured speed, from the folder of adopted measurements."""
    stored = {path.stem: json.loads(path.read_text("utf-8")) for path in sorted(folder.iterdir())}
    rows = [
        [f"`{name}`", *(record[each] for each in ("python", "spark", "cores"))]
        for name, record in stored.items()
    ]
    header = dict.fromkeys(["benchmark", "Python", "Spark", "cores"], "")
    parts = [SPEED, markdown(header, rows), ""]
    for name, record in stored.items():
        shown = [[label.replace("_", " "), readable(n)] for label, n in record["figures"].items()]
        parts += [f"## `{name}`\n", *([KERNEL] if name == "kernel" else [])]
        parts += [markdown({"figure": "", "value": ""}, shown), ""]
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


def adopt() -> None:
    """Move new measurements to the tracked results.

    A soak with other seeds is added to the stored summary of soaks.
    """
    soaked = MEASURED / "soak.json"
    if soaked.exists():
        stored, new = (json.loads(path.read_text("utf-8")) for path in (DOCS / "soak.json", soaked))
        text = json.dumps(add_to(stored, new), indent=2) + "\n"
        (DOCS / "soak.json").write_text(text, encoding="utf-8")
        soaked.unlink()
    for path in sorted(MEASURED.glob("*.json")):
        shutil.move(path, RESULTS / path.name)


if __name__ == "__main__":
    adopt()
    for name, text in pages().items():
        (DOCS / name).write_text(text, encoding="utf-8")
