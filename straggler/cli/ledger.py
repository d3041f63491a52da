"""``straggler ledger``: where each row is that was handed in to a query."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import click
from rich.table import Table

from straggler.cli import render
from straggler.cli.commands import Command
from straggler.cli.outputs import refuse_unwritable, write_json
from straggler.errors import UsageError, store_refused
from straggler.options import PATH, Arguments, Option

if TYPE_CHECKING:
    from spark_impl.runtime.accounts import Ledger
    from spark_impl.runtime.storage import Location

EXAMPLES = """\
examples:
  straggler ledger /data/power                     what over(...).store_in("/data/power") wrote
  straggler ledger /data/store --json -
  straggler ledger "s3://bucket/store?region=eu-central-1"

STORE is the store of a query of any room, or the history of a landing, whose rows are then pending.
Nothing has to be stopped, and Spark is not needed. The exit code is 1 if some row is in no place,
or in two. docs/production.md says what the places are.
"""


def make_command(summary: str) -> Command:
    """Return the command with the store and the options for files."""
    store = click.Argument(["store"], help="folder of a store", metavar="STORE")
    json = Option("--json", "write the ledger as JSON (- for stdout)", type=PATH, metavar="FILE")
    return Command(summary, EXAMPLES, [store, json], run)


def run(args: Arguments) -> int:
    """Print the ledger, and say whether it balances."""
    refuse_unwritable("--json", args.json)
    with store_refused():
        found = list(_ledgers(args.store))
    out = render.console(args.json)
    for name, ledger in found:
        if name:
            render.print_lines(out, [f"{name}:"])
        said = "no micro-batch with rows has been committed"
        if ledger.read or ledger.accounted:
            out.print(_table(ledger))
            said = f"accounted for: {ledger.accounted:,} of {ledger.read:,}"
        render.print_lines(out, [said])
    plain = {name: _plain(ledger) for name, ledger in found}
    write_json(args.json, plain.get("", plain))
    return 0 if all(ledger.balances for _, ledger in found) else 1


def _ledgers(store: str) -> "Iterator[tuple[str, Ledger]]":
    """Yield the ledgers of a folder, with the names of aggregates if there are several."""
    from spark_impl.runtime.accounts import ledger, ledger_of_landing
    from spark_impl.runtime.provenance import read_note
    from spark_impl.runtime.storage import locate

    folder = locate(store)
    answers = folder / "answers"
    if not folder.is_folder():
        raise UsageError(f"STORE {store!r} is no folder; it must be the store of a query")
    if read_note(folder) is not None:
        yield "", ledger_of_landing(folder)
    elif _is_store(folder) or not answers.is_folder():
        yield "", ledger(folder)
    elif _is_store(answers):
        yield "", ledger(answers)
    else:
        found = answers.children()
        if not found:
            raise UsageError(f"STORE {store!r} has no answers yet: no query has begun")
        for each in found:
            yield each.name, ledger(each)


def _is_store(folder: "Location") -> bool:
    return (folder / "_delta_log").is_folder()


def _table(ledger: "Ledger") -> Table:
    """Return the table of a ledger: a row is a place."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("place")
    table.add_column("rows", justify="right")
    landed = [] if ledger.landed is None else [("landed", ledger.landed)]
    for place, rows in (("read", ledger.read), *landed, *ledger.rows()):
        if rows:
            table.add_row(render.plain(place), f"{rows:,}")
    return table


def _plain(ledger: "Ledger") -> Mapping[str, object]:
    """Return a ledger as plain data."""
    return {**ledger._asdict(), "accounted": ledger.accounted, "balances": ledger.balances}
