"""The page of planted bugs, made from the record of the claims that they broke."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from textwrap import indent, wrap

from straggler.cli.render import markdown
from straggler.errors import counted
from straggler.rooms import sort_names
from tests.harness.broken_claims import TESTS, Broken, Claimed, all_claims, read
from tests.quality.planted_producers import AGAIN, CANNOT, PRODUCERS, producer_of

RECORD = Path(__file__).resolve().parents[2] / "docs" / "planted-bugs.json"
_HEAD = """\
# Planted bugs

*Written by `make docs` from `planted-bugs.json`; a test checks that it is current.*

After reading this page you know, for every claim and every producer of traces, whether a planted
bug has broken the claim there, which one is found first, and how soon.

In the first table of a room a row is a claim, a column a producer, and a number the planted bugs of
`tests/quality` that broke the claim. A bug is a test with one set of parameters, so that one wrong
step under seven queries counts seven times. An empty cell is a gap: no bug has broken the claim
there. *cannot* means that no bug of this producer can break it, for the reason below the table.

In the second table a row is the bug that was found first. *Seconds* pass from the start of its test
until the verdict, with other work on the machine. Claims about one trace are judged together, so
that one bug may break several, also by accident.

Bugs of Spark jobs are those of Spark's operators once more, and some of what only jobs do
(`tests/quality/test_job_claims_spark.py`). Driver and workers make the mistake in a query over a
small workload, which was found in process before the test. Others are planted in a copy of the
packages, on which the four promises run (`tests/quality/test_promises_spark.py`). Their seconds
pass from the start of the promise, and they are recorded for the claims that the traces of this
promise break before it fails.

`python -m pytest -p tests.harness.broken_claims --record-broken docs/planted-bugs.json --long
--hypothesis-profile=ci tests/quality` records anew; with fewer files of tests, only theirs.
"""


def page(record: Path = RECORD) -> str:
    """Return the page: producers, then two tables for each room."""
    found = read(record)
    lost = len(claims_without_bug(found))
    known = len(all_claims())
    parts = [_HEAD, f"**{known - lost} of {known} claims are broken by a planted bug.**\n"]
    parts += [*_producers(found), ""]
    for room in sort_names({each.room for each in all_claims()}):
        claims = [each for each in all_claims() if each.room == room]
        parts += [f"## `{room}`\n", _matrix(found, claims), "", *_reasons(room)]
        header = dict.fromkeys(("claim", "producer", "planted bug", "test", "seconds"), "")
        rows = [_row(*each) for each in quickest(found) if each[0].room == room]
        parts += [markdown(header, rows), ""]
    return "\n".join(parts).rstrip() + "\n"


def claims_without_bug(found: Iterable[Broken]) -> list[str]:
    """Return the claims that no planted bug has broken, as ``room: claim``."""
    broken = {(each.room, each.claim) for each in found}
    return [f"{each.room}: {each.claim}" for each in all_claims() if each not in broken]


def bugs(found: Iterable[Broken]) -> dict[tuple[Claimed, str], int]:
    """Return the number of planted bugs that broke a claim, by claim and producer.

    A bug that several tests of one file plant counts once.
    """
    names: dict[tuple[Claimed, str], set[tuple[str, str]]] = {}
    for each in found:
        place = Claimed(each.room, each.claim), producer_of(each.test)
        own = () if each.function.removeprefix(TESTS) in AGAIN else each.bugs
        names.setdefault(place, set()).update((each.file, bug) for bug in own)
    return {place: max(1, len(known)) for place, known in names.items()}


def quickest(found: Iterable[Broken]) -> list[tuple[Broken, str]]:
    """Return the bug that is found first, for each claim and producer, and the producer."""
    first: dict[tuple[Claimed, str], Broken] = {}
    for each in sorted(found, key=lambda each: (each.seconds, each.test)):
        first.setdefault((Claimed(each.room, each.claim), producer_of(each.test)), each)
    return [
        (first[claim, name], name)
        for claim in all_claims()
        for name in PRODUCERS
        if (claim, name) in first
    ]


def _producers(found: list[Broken]) -> Iterator[str]:
    """Yield a sentence on each producer, which counts its gaps."""
    known, number = all_claims(), bugs(found)
    for name, said in PRODUCERS.items():
        broken = sum((claim, name) in number for claim in known)
        never = sum((claim, name) in _cannot() for claim in known)
        gaps = len(known) - broken - never
        yield _item(
            f"*{name}* ({said}) has bugs that break {counted(broken, 'claim')}, cannot break"
            f" {never}, and has {counted(gaps, 'gap')}."
        )


def _cannot() -> Mapping[tuple[Claimed, str], str]:
    return {
        (Claimed(each.room, claim), each.producer): each.reason
        for each in CANNOT
        for claim in each.claims
    }


def _matrix(found: list[Broken], claims: list[Claimed]) -> str:
    number, never = bugs(found), _cannot()
    header = dict.fromkeys(("claim", *PRODUCERS), "")
    return markdown(
        header,
        [
            [
                claim.claim,
                *(
                    number.get((claim, name), "cannot" if (claim, name) in never else "")
                    for name in PRODUCERS
                ),
            ]
            for claim in claims
        ],
    )


def _reasons(room: str) -> Iterator[str]:
    of_room = [each for each in CANNOT if each.room == room]
    for each in of_room:
        yield _item(f"*{each.producer}* cannot break {_listed(each.claims)}: {each.reason}.")
    if of_room:
        yield ""


def _item(text: str) -> str:
    """Return an item of a list, wrapped."""
    lines = wrap(text, 98, break_long_words=False, break_on_hyphens=False)
    return indent("\n".join(lines), "  ").replace("  ", "- ", 1)


def _listed(claims: tuple[str, ...]) -> str:
    return ", ".join(f"“{each}”" for each in claims)


def _row(broken: Broken, producer: str) -> list[object]:
    name = broken.function.partition("::")[2]
    shown = f"`{broken.file}::{name}`"
    return [broken.claim, producer, _plain(broken.bugs[0]), shown, f"{broken.seconds:.1f}"]


def _plain(text: str) -> str:
    """Return the name of a bug without characters that would end a cell of the table."""
    return text.replace("|", "\\|").replace("\n", " ")
