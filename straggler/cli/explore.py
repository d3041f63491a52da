"""``straggler explore``: every behaviour of a small model."""

from collections.abc import Iterator, Sequence

from rich.console import Console

from model.checking.claims import combine
from straggler.cli import render
from straggler.cli.commands import Group, room_group
from straggler.errors import UsageError, refuse_unknown
from straggler.options import Arguments, Option
from straggler.rooms import AnyExploration, Room, find_room, find_rooms

EXAMPLES = """\
examples:
  straggler explore join
  straggler explore slack --scope large             takes a night
  straggler explore join --scope four               four workers, 35,511 states

Only rooms join and slack have scopes.
"""


def make_command(summary: str) -> Group:
    """Return the command, with a subcommand for each room."""
    return room_group(summary, EXAMPLES, _options, run)


def _options(rooms: Sequence[Room]) -> Iterator[Option]:
    """Yield the option that chooses a scope."""
    for explorer in filter(None, [room.explorer for room in rooms]):
        scopes = f"{', '.join(explorer.scopes)} (all that take seconds)"
        yield Option("--scope", scopes, metavar="NAME")


def run(args: Arguments) -> int:
    """Explore the scopes, and return the exit code of the worst outcome."""
    explorer = find_room(args.room).explorer
    if explorer is None:
        explored_ones = [room.name for room in find_rooms("all") if room.explorer is not None]
        names = " and ".join(explored_ones)
        raise UsageError(f"the model of {args.room} has no scopes; there are some of {names}")
    scopes = explorer.everyday
    if args.scope is not None:
        refuse_unknown("scope", args.scope, explorer.scopes)
        scopes = (args.scope,)
    explored: list[tuple[str, AnyExploration]] = []
    with render.progress() as progress:
        task = progress.add_task("", total=len(scopes))
        for scope in scopes:
            progress.update(task, description=f"exploring scope {scope}")
            explored.append((scope, explorer.explore(scope)))
            progress.advance(task)
    out = render.console()
    outcome = combine(verdict for _, found in explored for verdict in found.verdicts)
    states = sum(found.unique_states for _, found in explored)
    render.print_lines(out, [f"Every claim {outcome} in {states:,} states."])
    for scope, exploration in explored:
        _print(out, scope, exploration)
    return render.EXIT_CODES[outcome]


# ---------------------------------------------------------------------------------------- output


def _print(out: Console, scope: str, exploration: AnyExploration) -> None:
    lines = [
        "",
        f"scope {scope}: {exploration.unique_states:,} states,"
        f" {exploration.transitions:,} transitions, depth {exploration.depth}",
    ]
    width = max(len(verdict.claim) for verdict in exploration.verdicts)
    for verdict in exploration.verdicts:
        lines.append(f"  {verdict.claim:{width}}  {verdict.outcome}  {verdict.sentence}")
        lines += [f"    {line}" for line in verdict.witness]
    render.print_lines(out, lines)
