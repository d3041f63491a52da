"""Errata: each proves itself, the page is current, and nothing unproved is called confirmed.

By day one erratum of each room is searched again, at night all of them.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from model.checking.claims import Outcome, Verdict
from model.join.variants import VARIANTS, Variant
from model.script.variants import VARIANTS as SCRIPT_VARIANTS
from straggler.cli import errata as command
from straggler.cli.errata import confirm
from straggler.pages.errata import Confirmation, Erratum, Findings, Kind, describe, markdown
from straggler.rooms import Room, find_room, find_rooms
from straggler.rooms.grouping import errata as grouping_errata
from straggler.rooms.join import errata as join_errata
from straggler.rooms.script import errata as script_errata
from straggler.rooms.slack import errata as slack_errata
from tests.house.repository import ROOT
from tests.straggler.command import Straggler

PAGE = (ROOT / "docs" / "errata.md").read_text(encoding="utf-8")
BY_DAY = {
    "slack": "lost-update",
    "watermark": "",
    "join": "local-timer",
    "grouping": "counters-rounded-down",
    "script": "load-not-added",
}
"""A quick erratum of each room that has one."""


def check(confirmed: Confirmation) -> None:
    assert confirmed.findings.is_confirmed, describe(confirmed)
    assert confirmed.findings.counterexample
    assert confirmed.erratum.source


@pytest.mark.parametrize("name", BY_DAY)
def test_an_erratum_of_each_room_is_confirmed_as_the_page_says(name: str) -> None:
    room = find_room(name)
    (*_, chosen) = (each for each in room.errata if each.name == BY_DAY[name] or not BY_DAY[name])
    (confirmed,) = confirm([(room, chosen)])
    check(confirmed)
    section = markdown([confirmed]).partition(f"\n### {chosen.name}\n")[2].strip()
    assert f"\n### {chosen.name}\n\n{section}\n" in PAGE, (
        "straggler errata --markdown docs/errata.md"
    )


@pytest.mark.long
def test_every_erratum_is_confirmed_and_the_page_is_current() -> None:
    confirmed = confirm([(room, each) for room in find_rooms("all") for each in room.errata])
    for each in confirmed:
        check(each)
    assert markdown(confirmed) == PAGE, "straggler errata --markdown docs/errata.md"


def test_the_page_has_every_erratum_with_the_class_that_its_source_supports() -> None:
    by_kind = {kind: set[str]() for kind in Kind}
    for room in find_rooms("all"):
        assert len({each.name for each in room.errata}) == len(room.errata)
        for erratum in room.errata:
            by_kind[erratum.kind].add(erratum.name)
            assert f"| {erratum.name} | {erratum.kind.value} | broken | holds | holds |" in PAGE
    assert by_kind[Kind.READING] == {"closing-rule", "counters-rounded-down", "load-not-added"}
    assert by_kind[Kind.OPEN] == {
        *("lost-update", "missing-flush", "smaller-root", "normal-quantiles"),
        *("both-copies", "local-timer", "half-updated"),
    }


@pytest.mark.parametrize("broken", [1, 2, 3])
def test_one_verdict_that_is_not_as_it_should_be_leaves_it_unconfirmed(broken: int) -> None:
    good = [
        Verdict("p", Outcome.BROKEN, "Seen."),
        Verdict("p", Outcome.HOLDS, "Kept."),
        Verdict("p", Outcome.HOLDS, "Kept."),
    ]
    assert Findings((), *good).is_confirmed
    for outcome in set(Outcome) - {good[broken - 1].outcome}:
        bad = [*good]
        bad[broken - 1] = replace(bad[broken - 1], outcome=outcome)
        assert not Findings((), *bad).is_confirmed


# --------------------------------------------------------------------- rules that are not corrected


def test_a_variant_without_a_mistake_is_no_erratum(monkeypatch: pytest.MonkeyPatch) -> None:
    # It takes a kill, and none of these streams has one.
    findings = slack_errata.smallest("clears_first")
    assert findings.literal.outcome is Outcome.UNDETERMINED
    right = replace(VARIANTS["local_timer"], changes={})
    monkeypatch.setitem(cast("dict[str, Variant]", VARIANTS), "local_timer", right)
    assert join_errata.shortest("local_timer").literal.outcome is Outcome.HOLDS


def test_a_wrong_correction_is_not_confirmed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(join_errata, "is_idle", join_errata.is_idle_as_written)
    monkeypatch.setattr(grouping_errata, "ceil", int)
    wrong = SCRIPT_VARIANTS["at_every_change"].make_system
    monkeypatch.setattr(script_errata, "make_system", wrong)
    for findings in (join_errata.scaling(), grouping_errata.counters()):
        assert findings.same.outcome is findings.scope.outcome is Outcome.BROKEN
    assert not script_errata.half_updated().is_confirmed


# ------------------------------------------------------------------------------------- the command


def test_the_command_prints_stores_and_summarises(straggler: Straggler, tmp_path: Path) -> None:
    options = ("--only", "lost-update", "--json", "errata.json", "--markdown", "errata.md")
    done = straggler("errata", "slack", *options)
    assert (done.code, done.err) == (0, "")
    for word in ("promise ", "source ", "as filled in ", "counterexample", "corrected "):
        assert word in done.out
    assert done.out.splitlines()[-1].startswith("1 erratum, confirmed")
    (row,) = json.loads((tmp_path / "errata.json").read_text(encoding="utf-8"))
    assert (row["room"], row["erratum"], row["confirmed"]) == ("slack", "lost-update", True)
    assert row["class"] == "left open"
    assert row["verdicts"]["literal"]["outcome"] == "broken"
    assert row["verdicts"]["corrected_in_the_scope"]["outcome"] == "holds"
    assert (tmp_path / "errata.md").read_text(encoding="utf-8").startswith("# Errata\n")


def test_an_unconfirmed_erratum_exits_with_1(
    straggler: Straggler, monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing = Verdict("p", Outcome.UNDETERMINED, "Nothing broke it.")
    findings = Findings((), nothing, nothing, nothing)
    doubtful = Erratum(Kind.OPEN, "doubtful", "P.", "S", "L.", "C.", lambda: findings)

    def with_it(name: str) -> list[Room]:
        return [replace(find_room("slack"), errata=(doubtful,))]

    monkeypatch.setattr(command, "find_rooms", with_it)
    done = straggler("errata")
    assert (done.code, done.out.splitlines()[-1]) == (
        1,
        "1 of 1 erratum not confirmed: doubtful.",
    )
