"""``straggler join``: queries of a chain that runs in another process, and their answers."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.table import Table

from model.vocabulary.iso_times import write_time
from model.vocabulary.join import END_US, NO_WATERMARK_US
from model.vocabulary.join_conditions import GRAMMAR
from straggler.cli import render
from straggler.cli.commands import Command, Group, examples_of
from straggler.cli.outputs import (
    SUFFIXES,
    refuse_table,
    refuse_unwritable,
    write_json,
    write_table,
)
from straggler.errors import UsageError, counted, refuse_unknown, store_refused
from straggler.options import PATH, STDIO, Arguments, Option

if TYPE_CHECKING:
    import pyarrow as pa

    from spark_impl.join import Status

EXAMPLES = """\
examples:
  straggler join submit /data/chain fine --on 'r.pm25 apart 100 of s.pm25' --select r.pm25 s.pm25
  straggler join submit /data/chain near --on 'key and event_time within 10min'
  straggler join withdraw /data/chain near
  straggler join status /data/chain
  straggler join answers /data/chain fine --complete --output fine.parquet
  straggler join ask /data/chain --on 'r.pm10 > 300' --epochs 3:7 --output peaks.csv

STORE is the checkpoint of a chain, which may be running in another process. The output of submit
and withdraw names the first epoch in which the request holds. Spark is not needed. docs/join.md,
section 12, has the rules.
"""
ACTIONS = {
    "submit": "add a query, from the next epoch on",
    "withdraw": "end a query, before the next epoch",
    "status": "list the queries: how far they are complete, and what is late, shed and pending",
    "answers": "write the pairs of a query so far",
    "ask": "write all pairs among the tuples of past epochs",
}
_EPOCHS = re.compile(r"(\d{1,9}):(\d{1,9})")


def make_command(summary: str) -> Group:
    """Return a command for each action."""
    return Group(summary, EXAMPLES, "action", ACTIONS, _load)


def _load(name: str) -> Command:
    """Return the command of an action."""
    store = click.Argument(["store"], help="folder of a chain", metavar="STORE")
    query = click.Argument(["name"], help="name of a query", metavar="NAME")
    several: dict[str, Any] = {"multiple": True, "takes_several": True, "metavar": "COLUMN..."}
    condition = Option("--on", GRAMMAR, metavar="CONDITION")
    select = Option("--select", "columns of the tuples, such as r.key", **several)
    text = f"write to FILE, {' or '.join(SUFFIXES)} (CSV on stdout)"
    output = Option("--output", text, type=PATH, default=STDIO, metavar="FILE")
    complete = Option("--complete", "leave out pairs that are not final", is_flag=True)
    epochs = Option("--epochs", "first and last epoch (all that are over)", metavar="FIRST:LAST")
    json = Option("--json", "write the status as JSON (- for stdout)", type=PATH, metavar="FILE")
    known: dict[str, tuple[list[click.Parameter], Callable[[Arguments], int]]] = {
        "submit": ([store, query, condition, select], _submit),
        "withdraw": ([store, query], _withdraw),
        "status": ([store, json], _status),
        "answers": ([store, query, select, complete, output], _answers),
        "ask": ([store, condition, epochs, select, output], _ask),
    }
    refuse_unknown("action", name, ACTIONS)
    return Command(ACTIONS[name], examples_of(name, EXAMPLES), *known[name])


def _say(*lines: str, written: Path | None = None) -> None:
    render.print_lines(render.console(written), lines)


def _require_condition(args: Arguments) -> None:
    if args.on is None:
        raise UsageError("--on is missing: it is the condition of the query")


def _submit(args: Arguments) -> int:
    _require_condition(args)
    with store_refused():
        from spark_impl.join import agent

        first = agent.submit(args.store, args.name, args.on, select=args.select)
    _say(f"{args.name}: pairs tuples from epoch {first} on")
    return 0


def _withdraw(args: Arguments) -> int:
    with store_refused():
        from spark_impl.join import agent

        end = agent.withdraw(args.store, args.name)
    _say(f"{args.name}: pairs no tuples from epoch {end} on")
    return 0


def _status(args: Arguments) -> int:
    refuse_unwritable("--json", args.json)
    with store_refused():
        from spark_impl.join import agent

        found = agent.status(args.store)
    out = render.console(args.json)
    out.print(_table(found))
    render.print_lines(out, [_position(found)])
    queries = [{**each._asdict(), "select": [*each.select]} for each in found.queries]
    write_json(args.json, {**found._asdict(), "queries": queries})
    return 0


def _position(found: "Status") -> str:
    over = f"epoch {found.epoch} is over" if found.epoch >= 0 else "no epoch is over"
    if found.flushed:
        return f"{over}; the chain was flushed, and nothing may follow"
    return f"{over}; a request now holds from epoch {found.next} on"


def _table(found: "Status") -> Table:
    """Return the table of a status: a row is a query."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("query", overflow="fold")
    table.add_column("epochs", no_wrap=True)
    table.add_column("T", no_wrap=True)
    for name in ("pairs", "late", "shed", "pending"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("condition", overflow="fold")
    for each in found.queries:
        epochs = f"{each.first}-{'' if each.last is None else each.last}"
        figures = (each.pairs, each.late, each.shed, each.pending)
        table.add_row(
            render.plain(each.name),
            epochs,
            _time(each.complete_us),
            *(f"{figure:,}" for figure in figures),
            render.plain(each.condition),
        )
    return table


def _time(time_us: int) -> str:
    if time_us <= NO_WATERMARK_US:
        return "none"
    return "all" if time_us == END_US else write_time(time_us)


def _answers(args: Arguments) -> int:
    _refuse_output(args.output)
    with store_refused():
        from spark_impl.join import agent

        select = args.select or None
        found = agent.answers(args.store, args.name, select=select, complete=args.complete)
    return _write(found, args.output)


def _ask(args: Arguments) -> int:
    _require_condition(args)
    _refuse_output(args.output)
    first, last = 0, None
    if args.epochs is not None:
        named = _EPOCHS.fullmatch(args.epochs)
        if named is None:
            raise UsageError(f"--epochs is {args.epochs!r}; it must be like 3:7")
        first, last = int(named[1]), int(named[2])
    with store_refused():
        from spark_impl.join import agent

        found = agent.ask(
            args.store,
            args.on,
            first_epoch=first,
            last_epoch=last,
            select=args.select,
        )
    return _write(found, args.output)


def _refuse_output(path: Path) -> None:
    if path != STDIO:
        refuse_table(path)


def _write(found: "pa.Table", path: Path) -> int:
    """Write pairs, and say how many there are."""
    write_table(found, path)
    _say(counted(found.num_rows, "pair"), written=path)
    return 0
