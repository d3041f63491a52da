"""``straggler errata``: published rules that break their promises, and corrected rules."""

from collections.abc import Sequence

import click

from straggler.cli import render
from straggler.cli.commands import Command
from straggler.cli.outputs import refuse_unwritable
from straggler.errors import refuse_unknown
from straggler.inputs.text_files import write_output
from straggler.options import PATH, Arguments, Option
from straggler.pages.errata import Confirmation, Erratum, describe, markdown
from straggler.rooms import Room, find_rooms, room_names

EXAMPLES = """\
examples:
  straggler errata                                  errata of every room
  straggler errata slack --only lost-update
  straggler errata --markdown docs/errata.md

Each erratum is run: the wrong rule until it breaks its promise, then the corrected rule on the
same input and on everything that was searched. The class says where the wrong rule comes from: the
text as printed, one reading of a passage that lost its formula, or a gap that the text leaves open.
The exit code is 0 if all errata are confirmed, and 1 otherwise.
"""


def make_command(summary: str) -> Command:
    """Return the command with the options that choose errata and output files."""
    rooms = f"{', '.join(room_names())}, or all (all)"
    only = "run this erratum only; may be repeated"
    page = "also write the errata as a page to FILE"
    parameters = [
        click.Argument(["room"], help=rooms, default="all"),
        Option("--only", only, multiple=True, metavar="NAME"),
        Option("--markdown", page, type=PATH, metavar="FILE"),
    ]
    return Command(summary, EXAMPLES, parameters, run)


def run(args: Arguments) -> int:
    """Run the errata and return 0 if all of them are confirmed."""
    refuse_unwritable("--markdown", args.markdown)
    confirmations = confirm(_chosen(find_rooms(args.room), args.only))
    out = render.console(args.markdown)
    render.print_prose(out, [_summary(confirmations), ""])
    for each in confirmations:
        render.print_prose(out, describe(each))
    write_output(args.markdown, markdown(confirmations))
    return 0 if all(each.findings.is_confirmed for each in confirmations) else 1


def confirm(chosen: Sequence[tuple[Room, Erratum]]) -> list[Confirmation]:
    """Run every erratum, with progress on a terminal."""
    found: list[Confirmation] = []
    with render.progress() as progress:
        task = progress.add_task("", total=len(chosen))
        for room, erratum in chosen:
            progress.update(task, description=f"running {erratum.name}")
            found.append(Confirmation(room.name, erratum, erratum.search()))
            progress.advance(task)
    return found


def _chosen(asked: Sequence[Room], only: Sequence[str]) -> list[tuple[Room, Erratum]]:
    known = [(room, erratum) for room in asked for erratum in room.errata]
    names = [erratum.name for _, erratum in known]
    for name in only:
        refuse_unknown("erratum", name, names)
    return [each for each in known if not only or each[1].name in only]


def _summary(confirmations: Sequence[Confirmation]) -> str:
    doubtful = [each.erratum.name for each in confirmations if not each.findings.is_confirmed]
    number = len(confirmations)
    all_of_them = "1 erratum" if number == 1 else f"{number:,} errata"
    if doubtful:
        return f"{len(doubtful)} of {all_of_them} not confirmed: {', '.join(doubtful)}."
    return f"{all_of_them}, confirmed: the wrong rule breaks each promise, the corrected keeps it."
