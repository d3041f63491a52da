"""Errata: each proves itself, the page is current, and nothing unproved is called confirmed."""

import json
import re
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from math import ceil, comb
from pathlib import Path
from statistics import fmean, pstdev
from typing import cast

import pytest

from model.checking.claims import Outcome, Verdict
from model.join.variants import VARIANTS, Variant
from model.vocabulary import SlackConfig
from straggler.cli import errata as command
from straggler.cli import main as cli
from straggler.cli.errata import confirm
from straggler.pages.errata import Confirmation, Erratum, Findings, Kind, describe, markdown
from straggler.rooms import Room, find_room, find_rooms, room_names
from straggler.rooms.join import errata as join_errata
from straggler.rooms.slack import control_errata, requirement_errata
from straggler.rooms.slack import errata as slack_errata
from straggler.rooms.slack.control_errata import Pattern, outcome, share
from straggler.rooms.slack.requirement_errata import Window

PAGE = Path(__file__).parents[2] / "docs" / "errata.md"


@pytest.fixture(scope="module")
def confirmations() -> list[Confirmation]:
    """Confirm all errata once for all tests."""
    known = find_rooms("all")
    return confirm([(each, erratum) for each in known for erratum in each.errata])


def test_every_erratum_is_confirmed(confirmations: list[Confirmation]) -> None:
    assert {
        "closing-rule",
        "mixed-tuples",
        "lost-update",
        "gamma-without-age",
        "missing-flush",
        "pd-promise",
        "windup",
        "smaller-root",
        "normal-quantiles",
        "both-copies",
        "quiet-chain",
        "local-timer",
        "scale-in",
        "load-not-added",
        "half-updated",
        "gcd-panes",
    } <= {each.erratum.name for each in confirmations}
    for each in confirmations:
        assert each.findings.is_confirmed, describe(each)
        assert each.findings.counterexample
        assert each.erratum.source


def test_the_page_is_current(confirmations: list[Confirmation]) -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == markdown(confirmations), "straggler errata --markdown docs/errata.md"


def test_every_erratum_has_the_class_that_its_source_supports() -> None:
    by_kind = {kind: set[str]() for kind in Kind}
    for room in find_rooms("all"):
        for erratum in room.errata:
            by_kind[erratum.kind].add(erratum.name)
    assert by_kind[Kind.READING] == {"closing-rule", "counters-rounded-down", "load-not-added"}
    assert by_kind[Kind.OPEN] == {
        "lost-update",
        "missing-flush",
        "smaller-root",
        "normal-quantiles",
        "both-copies",
        "local-timer",
        "half-updated",
    }


@pytest.mark.parametrize("kind", list(Kind))
def test_terminal_page_and_data_show_the_class(kind: Kind) -> None:
    known = next(each for room in find_rooms("all") for each in room.errata if each.kind is kind)
    nothing = Verdict("p", Outcome.UNDETERMINED, "Nothing broke it.")
    shown = Confirmation("slack", known, Findings((), nothing, nothing, nothing))
    assert shown.to_json()["class"] == kind.value
    assert describe(shown)[0] == f"{known.name} (room slack, {kind.value})"
    assert any(line.startswith(f"  {kind.rule} ") for line in describe(shown))
    page = markdown([shown])
    assert f"| {kind.value} | [{known.name}](#{known.name}) |" in page
    assert f"| {known.name} | {kind.value} | " in page
    assert f"**{kind.rule.capitalize()}.** {known.literal}" in page


def test_scale_in_quotes_both_places_of_the_source() -> None:
    (scale_in,) = (each for each in find_room("join").errata if each.name == "scale-in")
    assert "2.2.3 removes workers if tau > tau0" in scale_in.source
    assert "3.4 removes them if tau < tau0 for five minutes" in scale_in.source


def test_the_errata_of_a_room_have_different_names() -> None:
    for name in room_names():
        names = [erratum.name for erratum in find_room(name).errata]
        assert len(set(names)) == len(names)


@pytest.mark.parametrize("broken", [1, 2, 3])
def test_one_verdict_that_is_not_as_it_should_be_leaves_it_unconfirmed(broken: int) -> None:
    good = [
        Verdict("p", Outcome.BROKEN, "Seen."),
        Verdict("p", Outcome.HOLDS, "Kept."),
        Verdict("p", Outcome.HOLDS, "Kept."),
    ]
    assert Findings((), *good).is_confirmed
    for outcome_ in set(Outcome) - {good[broken - 1].outcome}:
        bad = [*good]
        bad[broken - 1] = replace(bad[broken - 1], outcome=outcome_)
        assert not Findings((), *bad).is_confirmed


# ------------------------------------------------------------------------------ the counterexamples


@pytest.mark.parametrize("variant", ["both_visible", "balance_alone", "local_timer"])
def test_the_counterexample_and_the_right_rules_use_the_same_chain(variant: str) -> None:
    findings = join_errata.shortest(variant)
    shown = findings.counterexample[0].removeprefix("A chain of 2 workers with ")
    given = findings.same.sentence.removeprefix("Every behaviour with ")
    assert shown.split(", W =")[0] == given.split(", in blocks")[0]
    blocks = re.search(r"have (up to \d+ tuples?)", shown)
    assert blocks
    assert f", in blocks of {blocks[1]}:" in given


def test_verdicts_on_the_same_tuples_name_the_other_scope() -> None:
    findings = join_errata.shortest("balance_alone")
    same, scope = (each.sentence.split(": ")[0] for each in (findings.same, findings.scope))
    assert same != scope


def test_a_smallest_stream_has_no_smaller_one() -> None:
    findings = slack_errata.smallest("lost_update")
    assert [line[:9] for line in findings.counterexample[1:4]] == [
        "1. Tuple ",
        "2. Tuple ",
        "3. Tuple ",
    ]
    config = {"size_us": 4, "slide_us": 2}
    lengths = [len(workload.arrivals) for workload in slack_errata.streams(config)]
    assert lengths == sorted(lengths)


def test_a_variant_that_breaks_nothing_is_no_erratum() -> None:
    # It takes a kill, and none of these streams has one.
    findings = slack_errata.smallest("clears_first")
    assert findings.literal.outcome is Outcome.UNDETERMINED
    assert not findings.is_confirmed


def test_the_published_law_meets_the_mean_and_breaks_the_promise() -> None:
    found = share(outcome(Pattern(tuples=3, stragglers=2, disordered=400), "pd"))
    assert found.coverage == pytest.approx(found.required, abs=control_errata.NEAR)
    assert found.wrong > 0.4


def test_windup_grows_with_the_time_in_order() -> None:
    plain = Pattern(tuples=3, stragglers=2, disordered=300)
    times = [control_errata.recovery(plain._replace(in_order=n), "pd") for n in (0, 100, 200)]
    assert times == sorted(set(times))
    assert times[2] - times[1] == 100
    clamped = [
        control_errata.recovery(plain._replace(in_order=n), "pd-clamped") for n in (0, 100, 200)
    ]
    assert max(clamped) <= 2


def test_probabilities_are_counts_of_subsets() -> None:
    config = SlackConfig(1, 1, aggregate="quantile", q=0.75, control="pd", eps=0.3)
    values = (1, 1, 2, 4, 4)
    for window in (Window(config, 5), Window(replace(config, aggregate="sum"), 5, values)):
        for n in range(1, 6):
            wrong = 0
            for kept in combinations(range(5), n):
                if window.values:
                    lost = sum(values) - sum(values[at] for at in kept)
                    wrong += lost >= 0.3 * sum(values)
                else:
                    wrong += abs(kept[ceil(0.75 * n) - 1] - (ceil(0.75 * 5) - 1)) >= 1.5
            assert window.probability(n) == Fraction(wrong, comb(5, n)), (window, n)


def test_known_of_a_window_has_its_variation() -> None:
    window = next(each for each in requirement_errata.sums() if len(set(each.values)) > 1)
    values = window.values
    assert window.known.total == len(values)
    expected = (pstdev(values) / fmean(values)) ** 2
    assert window.known.cv_squared == pytest.approx(expected)


def test_a_chain_without_a_mistake_is_no_erratum(monkeypatch: pytest.MonkeyPatch) -> None:
    right = replace(VARIANTS["local_timer"], changes={})
    monkeypatch.setitem(cast("dict[str, Variant]", VARIANTS), "local_timer", right)
    assert join_errata.shortest("local_timer").literal.outcome is Outcome.HOLDS


def test_a_rule_for_workers_that_is_wrong_is_not_confirmed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(join_errata, "is_idle", join_errata.is_idle_as_written)
    findings = join_errata.scaling()
    assert findings.same.outcome is findings.scope.outcome is Outcome.BROKEN


# ------------------------------------------------------------------------------------- the command


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = cli.main(["errata", *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_the_command_prints_stores_and_summarises(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path, page = tmp_path / "errata.json", tmp_path / "errata.md"
    options = ("--only", "closing-rule", "--json", str(path), "--markdown", str(page))
    code, out, err = run(capsys, "slack", *options)
    assert (code, err) == (0, "")
    for word in ("promise ", "source ", "as read ", "counterexample", "corrected "):
        assert word in out
    assert out.splitlines()[-1].startswith("1 erratum, confirmed")
    (row,) = json.loads(path.read_text(encoding="utf-8"))
    assert (row["room"], row["erratum"], row["confirmed"]) == ("slack", "closing-rule", True)
    assert row["class"] == "in one reading"
    assert row["verdicts"]["literal"]["outcome"] == "broken"
    assert row["verdicts"]["corrected_in_the_scope"]["outcome"] == "holds"
    assert page.read_text(encoding="utf-8").startswith("# Errata\n")


def test_an_unconfirmed_erratum_exits_with_1(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing = Verdict("p", Outcome.UNDETERMINED, "Nothing broke it.")
    doubtful = Erratum(
        Kind.OPEN,
        "doubtful",
        "P.",
        "S",
        "L.",
        "C.",
        lambda: Findings((), nothing, nothing, nothing),
    )

    def with_it(name: str) -> list[Room]:
        return [replace(find_room("slack"), errata=(doubtful,))]

    monkeypatch.setattr(command, "find_rooms", with_it)
    code, out, _ = run(capsys)
    assert code == 1
    assert out.splitlines()[-1] == "1 of 1 erratum not confirmed: doubtful."


def test_ctrl_c_is_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_name: str) -> list[Room]:
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "find_rooms", interrupted)
    assert run(capsys) == (130, "", "straggler: interrupted.\n")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["slakc"], ["slakc", "did you mean 'slack'?"]),
        (["--only", "lost-updat"], ["lost-updat", "did you mean 'lost-update'?"]),
        (["--only", ""], ["there is no erratum ''"]),
        (["--json", "no/such/folder.json"], ["--json", "there is no such folder"]),
        (["--markdown", "."], ["--markdown", "is a folder"]),
        (["--makdown", "x.md"], ["--makdown", "did you mean '--markdown'?"]),
    ],
)
def test_typos_are_one_sentence(
    capsys: pytest.CaptureFixture[str], arguments: list[str], words: list[str]
) -> None:
    code, out, err = run(capsys, *arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    for word in words:
        assert word in err
