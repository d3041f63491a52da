"""Errata: each proves itself, the page is current, and nothing unproved is called confirmed.

By day one erratum of each room is searched again, at night all of them.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from model.checking.claims import Outcome, Verdict
from model.grouping.evidence import evidence_of
from model.script.variants import VARIANTS as SCRIPT_VARIANTS
from model.vocabulary import Event, GroupingConfig, Trace, Workload
from model.vocabulary.grouping import Route
from straggler.cli import errata as command
from straggler.cli.errata import confirm
from straggler.pages.errata import Confirmation, Erratum, Findings, Kind, describe, markdown
from straggler.rooms import Room, find_room, find_rooms
from straggler.rooms.grouping.room import balance_of
from straggler.rooms.join import errata as join_errata
from straggler.rooms.script import errata as script_errata
from tests.house.repository import ROOT
from tests.straggler.command import Straggler

PAGE = (ROOT / "docs" / "errata.md").read_text(encoding="utf-8")
BY_DAY = {
    "watermark": "",
    "join": "local-timer",
    "grouping": "one-candidate",
    "script": "load-not-added",
}
"""A quick erratum of each other room that has one; the command is asked for that of ``slack``."""


def check(confirmed: Confirmation) -> None:
    assert confirmed.findings.is_confirmed, describe(confirmed)
    assert confirmed.findings.counterexample
    assert confirmed.erratum.source


@pytest.mark.parametrize("name", BY_DAY)
def test_an_erratum_of_a_room_is_confirmed_as_the_page_says(name: str) -> None:
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
    classes = {line[2:].partition(" |")[0]: line for line in PAGE.splitlines() if line[:2] == "| "}
    for room in find_rooms("all"):
        assert len({each.name for each in room.errata}) == len(room.errata)
        for erratum in room.errata:
            assert f"[{erratum.name}](#{erratum.name})" in classes[erratum.kind.value]


# --------------------------------------------------------------------- rules that are not corrected


def test_a_wrong_correction_is_not_confirmed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(join_errata, "is_idle", join_errata.is_idle_as_written)
    wrong = SCRIPT_VARIANTS["at_every_change"].make_system
    monkeypatch.setattr(script_errata, "make_system", wrong)
    findings = join_errata.scaling()
    assert findings.same.outcome is findings.scope.outcome is Outcome.BROKEN
    assert not script_errata.half_updated().is_confirmed


# ------------------------------------------------------------------------------------- the command


def test_the_command_prints_stores_and_summarises(straggler: Straggler, tmp_path: Path) -> None:
    options = ("--only", "lost-update", "--markdown", "errata.md")
    done = straggler("errata", "slack", *options)
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[0].startswith("1 erratum, confirmed: the wrong rule breaks each")
    page = (tmp_path / "errata.md").read_text(encoding="utf-8")
    assert page.startswith("# Errata\n")
    assert page.partition("\n### lost-update\n")[2].strip() in PAGE


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
    assert done.code == 1
    assert done.out.splitlines()[0] == "1 of 1 erratum not confirmed: doubtful."


# ---------------------------------------------------------------------------------------- grouping


def test_figures_of_a_router_leave_out_window_0_and_sum_up_the_others() -> None:
    config = GroupingConfig(2, times_us=((0, (1, 3)), (2, (3, 1))), window_tuples=4)
    keys = "aaaa" + "aabb" + "aab"
    events = tuple([Event(seq, seq, key, 100, 1.0, 100) for seq, key in enumerate(keys)])
    case = Workload("grouping", events, config.to_json(), (4, 8))
    routes = [Route(seq, 0, int(at)) for seq, at in enumerate("00000100110")]
    found = balance_of(evidence_of(case, Trace("by hand", routes)))
    assert found is not None
    # Window 1: 3 and 1 tuples at 1 and 3 us, work 3 and 3. Window 2: 1 and 2 at 3 and 1, work 3, 2.
    assert found.busiest_us == 3
    assert found.rho == pytest.approx((3 + 3) / (4 / (4 / 3) + 3 / (4 / 3)) - 1)
    assert found.imbalance == pytest.approx((3 + 3) / (3 + 2.5) - 1)
    # a is at two instances and b at one; then a at one and b at one.
    assert found.replication == (2 + 1 + 1 + 1) / 4
    assert balance_of(evidence_of(case, Trace("silent", ()))) is None
