"""The page of planted bugs, made from the record of the claims that they broke."""

from collections.abc import Iterable
from pathlib import Path

from properties.cli.render import markdown
from properties.rooms import sort_names
from tests.harness.broken_claims import TESTS, Broken, all_claims, read

RECORD = Path(__file__).resolve().parents[2] / "docs" / "planted-bugs.json"
SHOWN = 3
"""Number of planted bugs that the page names for a claim, at most."""
_HEAD = """\
# Planted bugs

*Written by `make docs` from `planted-bugs.json`; a test checks that it is current.*

After reading this page you know, for every claim, a mistake that breaks it, and how soon.

A row is a planted bug of `tests/quality` that broke the claim. Up to three are shown for each
claim, the quickest first, of different files of tests. The *producer* has the bug or has recorded
the trace that was changed. *Seconds* pass from the start of the test until the verdict. Claims
about one trace are judged together, so that one planted bug may break several.

`python -m pytest -p tests.harness.broken_claims --record-broken docs/planted-bugs.json
--hypothesis-profile=ci tests/quality` records anew. Tests that judge in a process of their own are
not in the record; `tests/quality/test_promises_spark.py` plants bugs in `spark_impl` and runs the
four promises on Spark.
"""
_PRODUCERS = {
    "sim": "timed run",
    "simulated_operators": "Spark's operators in simulated time",
    "script_machine": "Spark's operators in simulated time",
    "script_pipeline": "Spark's operators in process",
    "spark_parts": "Spark's operators in process",
    "variants": "model",
}
"""Producer that a file of tests plants bugs in, by the end of its name."""
_CHANGED = "trace of the model, changed"


def page(record: Path = RECORD) -> str:
    """Return the page: a table of claims, room by room."""
    found = read(record)
    lost = len(claims_without_bug(found))
    known = len(all_claims())
    parts = [_HEAD, f"**{known - lost} of {known} claims are broken by a planted bug.**\n"]
    for room in sort_names({each.room for each in all_claims()}):
        rows = [_row(each) for each in _shown(found, room)]
        header = dict.fromkeys(("claim", "producer", "planted bug", "test", "seconds"), "")
        parts += [f"## `{room}`\n", markdown(header, rows), ""]
    return "\n".join(parts).rstrip() + "\n"


def claims_without_bug(found: Iterable[Broken]) -> list[str]:
    """Return the claims that no planted bug has broken, as ``room: claim``."""
    broken = {(each.room, each.claim) for each in found}
    return [f"{each.room}: {each.claim}" for each in all_claims() if each not in broken]


def _shown(found: Iterable[Broken], room: str) -> list[Broken]:
    """Return the quickest bugs of each claim of a room, in the order of its claims."""
    of_room = sorted(
        (each for each in found if each.room == room), key=lambda each: (each.seconds, each.test)
    )
    return [
        each
        for claim in all_claims()
        if claim.room == room
        for each in [broken for broken in of_room if broken.claim == claim.claim][:SHOWN]
    ]


def _row(broken: Broken) -> list[object]:
    file, _, test = broken.test.partition("::")
    name, _, parameter = test.partition("[")
    bug = parameter.removesuffix("]") or name.removeprefix("test_").replace("_", " ")
    shown = f"`{file.removeprefix(TESTS)}::{name}`"
    return [broken.claim, _producer(file), _plain(bug), shown, f"{broken.seconds:.1f}"]


def _producer(file: str) -> str:
    name = file.removesuffix(".py")
    return next((said for end, said in _PRODUCERS.items() if name.endswith(end)), _CHANGED)


def _plain(text: str) -> str:
    """Return the name of a bug without characters that would end a cell of the table."""
    return text.replace("|", "\\|").replace("\n", " ")
