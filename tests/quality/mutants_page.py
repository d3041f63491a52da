"""The page of judged mutations, made from their verdicts."""

import tomllib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from straggler.cli.render import markdown
from tests.quality.mutants import (
    EQUIVALENT,
    KILLED,
    UNDECIDED,
    VERDICTS,
    is_killed_by_properties,
    read_verdicts,
)
from tests.quality.mutations import ANSWERS, KINDS, PACKAGES, kind_of

_HEAD = """\
# Mutations

*Written by `make docs` from `mutants.jsonl`; a test checks that it is current.*

After reading this page you know how many single mistakes in the code the tests notice.

`make mutants MINUTES=60 SEED=1` draws mutations of `spark_impl`, `sim` and `model`: a comparison
whose boundary moves, `and` for `or`, a number off by one, a statement that is left out. Each is
made in a copy of the repository and judged by the tests that can see it, until one fails. A second
run goes on where the first one ended; `ROOM=spark_impl/join` or `KIND=answers` draws from a part
alone, `QUICK=1` asks no tests that start Spark, and `AGAIN=1` judges once more what no property has
killed. Verdicts are appended to `mutants.jsonl`. The first run records in `build/calls` which test
calls which function; remove that folder when functions have moved.

*By properties* are mutations that a test of `properties` killed first, *by all tests* also those
that another test did. Most verdicts were recorded while tests that are in `tests/properties` now
were part of `properties`. They count as other tests, so the first share is too low for today's
folder until `AGAIN=1` has judged them. Shares leave out *equivalent* mutations, which change
nothing that anybody can see (`tests/quality/equivalent_mutants.toml` says why), and *undecided*
ones, for which tests are left to ask, or whose tests did not end in time. What survived or was
killed by other tests alone led to new properties, which judged it again: shares of a seed that
nobody has looked at may be lower.

Code decides *answers* if it is a rule, a state or an operator of model or Spark, reads or writes a
store or a setting. Claims and comparisons decide *verdicts*; a claim that demands too little passes
every right implementation, so that only planted bugs show it, and these are not in `properties`.
*Simulated runs* decide times. *The rest* are planted bugs, probes of a machine, start-up,
experiments and figures. `KINDS` in `tests/quality/mutations.py` lists the files.
"""
_COLUMNS = (
    "mutations",
    "equivalent",
    "undecided",
    "survive",
    "by properties",
    "by all tests",
)


def page(verdicts: Path = VERDICTS, equivalent: Path = EQUIVALENT) -> str:
    """Return the page: a table by part, and the mutations that survive."""
    known = tomllib.loads(equivalent.read_text(encoding="utf-8"))
    by_part: dict[str, Counter[str]] = {}
    alive, seeds = [], set()
    for name, verdict in sorted(read_verdicts(verdicts).items()):
        kind = "equivalent" if name in known else _kind(verdict)
        package, *folders, _ = str(verdict["file"]).split("/")
        decides = kind_of(str(verdict["file"]))
        own = [f"{ANSWERS}, seed {verdict['seed']}"] if decides == ANSWERS else []
        seeds.update(own)
        for part in (decides, *own, "/".join((package, *folders[:1])), "all"):
            by_part.setdefault(part, Counter())[kind] += 1
        if kind == "survive":
            alive.append(verdict)
    decided = [*[*KINDS][::-1], *sorted(seeds), "all"]
    folders = sorted(by_part.keys() - {*decided})
    parts = [_HEAD]
    for name, chosen in (("decides", decided), ("part", folders)):
        rows = [_row(each, by_part.get(each, Counter())) for each in chosen]
        parts += [markdown(dict.fromkeys((name, *_COLUMNS), ""), rows), ""]
    if alive:
        changes = [
            [
                f"`{each['file']}`",
                f"`{each['function']}`",
                _code(each["right"]),
                _code(each["wrong"]),
            ]
            for each in alive
        ]
        parts += [
            "## Survivors\n",
            markdown(dict.fromkeys(("file", "in", "is", "became"), ""), changes),
        ]
    return "\n".join(parts).rstrip() + "\n"


def _kind(verdict: Mapping[str, object]) -> str:
    if verdict["verdict"] == UNDECIDED:
        return "undecided"
    if verdict["verdict"] != KILLED:
        return "survive"
    return "properties" if is_killed_by_properties(verdict) else "tests"


def _row(part: str, found: Counter[str]) -> list[object]:
    judged = found["properties"] + found["tests"] + found["survive"]
    killed = found["properties"] + found["tests"]
    shares = [
        f"{100 * each / judged:.0f}%" if judged else "" for each in (found["properties"], killed)
    ]
    counts = [found.total(), found["equivalent"], found["undecided"], found["survive"]]
    is_folder = part.partition("/")[0] in PACKAGES
    return [f"`{part}`" if is_folder else part, *counts, *shares]


def _code(text: object) -> str:
    return "`" + str(text).replace("|", "\\|").replace("`", "'") + "`"
