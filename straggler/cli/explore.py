"""``straggler explore``: every behaviour of a small model, and the effect of planted bugs."""

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from rich.console import Console

from model.checking.claims import Outcome, Verdict, combine
from straggler.cli import render
from straggler.cli.commands import Group, room_group
from straggler.errors import UsageError, refuse_unknown
from straggler.judging.judge import compare_traces
from straggler.options import Arguments, Option
from straggler.rooms import AnyExploration, Explorer, Room, find_room

EXAMPLES = """\
examples:
  straggler explore join
  straggler explore slack --scope large             takes a night
  straggler explore join --scope four               four workers, 35,511 states
  straggler explore slack --variant lost_update     one planted bug, with its shortest path
"""


class Finding(NamedTuple):
    """The way in which a planted bug shows."""

    variant: str
    scope: str | None
    """Scope in which the bug broke a claim; ``None`` if it did so on its example only."""
    claim: str | None
    """Claim that the bug breaks; ``None`` if nothing was noticed."""
    sentences: tuple[str, ...]


def make_command(summary: str) -> Group:
    """Return a command for each room."""
    return room_group(summary, EXAMPLES, _options, run)


def _options(rooms: Sequence[Room]) -> Iterator[Option]:
    """Yield the options that choose scope and variant."""
    for explorer in (room.explorer for room in rooms):
        scopes = f"{', '.join(explorer.scopes)} (all that take seconds)"
        yield Option("--scope", scopes, metavar="NAME")
        bugs = f"look for this planted bug only: {', '.join(explorer.variants)}"
        yield Option("--variant", bugs, metavar="NAME")


def run(args: Arguments) -> int:
    """Explore the scopes, then look for every planted bug."""
    chosen = find_room(args.room)
    scopes = _scopes(chosen, args.scope)
    _known(args.variant, chosen.explorer.variants, "planted bug")
    _refuse_elsewhere(chosen.explorer, args.variant, args.scope)
    out = render.console()
    if args.variant is not None:
        finding = _find(chosen, args.variant, scopes)
        _print_finding(out, chosen, finding)
        return 0 if finding.claim is None else 1
    explored: list[tuple[str, AnyExploration]] = []
    with render.progress() as progress:
        task = progress.add_task("", total=len(scopes) + len(chosen.explorer.variants))
        for scope in scopes:
            progress.update(task, description=f"exploring scope {scope}")
            explored.append((scope, chosen.explorer.explore(scope, None)))
            progress.advance(task)
        findings = []
        for name in chosen.explorer.variants:
            progress.update(task, description=f"looking for {name}")
            findings.append(_find(chosen, name, scopes))
            progress.advance(task)
    for scope, exploration in explored:
        _print_exploration(out, scope, exploration)
    for finding in findings:
        _print_finding(out, chosen, finding)
    return render.EXIT_CODES[_conclude(out, explored, findings)]


def _scopes(chosen: Room, asked: str | None) -> tuple[str, ...]:
    _known(asked, chosen.explorer.scopes, "scope")
    return chosen.explorer.everyday if asked is None else (asked,)


def _known(name: str | None, known: Collection[str], what: str) -> None:
    if name is not None:
        refuse_unknown(what, name, known)


def _refuse_elsewhere(explorer: Explorer, variant: str | None, scope: str | None) -> None:
    """Raise :class:`UsageError` for a planted bug and a scope in which it cannot show."""
    home = None if variant is None else explorer.homes.get(variant)
    if home is not None and scope not in (None, home):
        raise UsageError(
            f"--scope is {scope}, but {variant} shows in scope {home} only; leave out --scope"
        )


def _find(chosen: Room, name: str, scopes: tuple[str, ...]) -> Finding:
    """Find the first scope in which a planted bug breaks a claim, with the shortest path there."""
    explorer = chosen.explorer
    home = explorer.homes.get(name)
    for scope in scopes if home is None else (home,):
        exploration = explorer.explore(scope, name)
        for verdict in exploration.verdicts:
            if verdict.outcome is Outcome.BROKEN:
                path = _describe_path(explorer, scope, name, exploration, verdict)
                return Finding(name, scope, verdict.claim, (*path, verdict.sentence))
    bug = explorer.variants[name]
    example = bug.example
    observed = bug.make_system()(example)
    # A bug that no claim notices may show in a comparison with the reference.
    agreement, _ = compare_traces(
        chosen, example, chosen.reference()(example), observed, chosen.step_types
    )
    for verdict in (*chosen.check(example, observed).verdicts, agreement):
        if verdict.outcome is Outcome.BROKEN:
            # The witness of a single fault repeats the sentence.
            sentences = tuple(dict.fromkeys((verdict.sentence, *verdict.witness)))
            return Finding(name, None, verdict.claim, sentences)
    return Finding(name, None, None, ("Nothing that is claimed is broken.",))


def _describe_path(
    explorer: Explorer,
    scope: str,
    variant: str,
    exploration: AnyExploration,
    verdict: Verdict,
) -> tuple[str, ...]:
    """Return the path to a broken claim, as a chart if the room draws charts."""
    path = exploration.paths.get(verdict.claim)
    if path is None or explorer.chart is None:
        return verdict.witness
    return (*explorer.chart(scope, variant, path), *verdict.witness[len(path.steps) + 1 :])


# ---------------------------------------------------------------------------------------- output


def _print_exploration(out: Console, scope: str, exploration: AnyExploration) -> None:
    limit = "" if exploration.cut is None else f", stopped at {exploration.cut}"
    lines = [
        f"scope {scope}: {exploration.unique_states:,} states,"
        f" {exploration.transitions:,} transitions, depth {exploration.depth}{limit}"
    ]
    width = max(len(verdict.claim) for verdict in exploration.verdicts)
    for verdict in exploration.verdicts:
        lines.append(f"  {verdict.claim:{width}}  {verdict.outcome}  {verdict.sentence}")
        lines += [f"    {line}" for line in verdict.witness]
    render.print_lines(out, [*lines, ""])


def _print_finding(out: Console, chosen: Room, finding: Finding) -> None:
    bug = chosen.explorer.variants[finding.variant]
    where = "on its example" if finding.scope is None else f"in scope {finding.scope}"
    broken = "breaks nothing" if finding.claim is None else f"breaks {finding.claim!r} {where}:"
    lines = [
        f"{finding.variant} ({bug.source}): {bug.mistake}",
        f"  {broken}",
        *(f"    {line}" for line in finding.sentences),
        f"  Correct rule: {bug.corrected}",
        "",
    ]
    render.print_lines(out, lines)


def _conclude(
    out: Console,
    explored: list[tuple[str, AnyExploration]],
    findings: list[Finding],
) -> Outcome:
    verdicts: Iterator[Verdict] = (v for _, found in explored for v in found.verdicts)
    outcome = combine(verdicts)
    missed = [finding.variant for finding in findings if finding.claim is None]
    states = sum(found.unique_states for _, found in explored)
    caught = f"{len(findings) - len(missed)} of {len(findings)} planted bugs are caught"
    if missed:
        caught += f" (not {', '.join(missed)})"
        outcome = Outcome.BROKEN
    render.print_lines(out, [f"Every claim {outcome} in {states:,} states; {caught}."])
    return outcome
