"""Answers that are no numbers, and texts of strangers: judged, named, and shown escaped."""

import json
import os
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.console import Console
from rich.table import Table

from model.checking.claims import Outcome
from model.vocabulary import Event, Trace, Workload
from model.vocabulary.texts import escaped
from model.vocabulary.windows import Final
from sim.report.page import _shown
from straggler.cli import render
from straggler.cli.main import main
from straggler.errors import format_error
from straggler.inputs.protocol import workload_line
from straggler.judging.counterexamples import Counterexample
from straggler.judging.judge import Judgement
from straggler.judging.processes import Limits, ProcessSystem
from straggler.judging.references import MODEL
from straggler.judging.workloads import judge_workload
from straggler.rooms import find_room
from tests.straggler.command import Straggler, assert_refused
from tests.straggler.test_levels import windows

WRITTEN = ("NaN", "Infinity", "-Infinity", '"NaN"', '"-Infinity"', "1e999", "null", "9" * 5000)
"""Answers in JSON that are no finite number."""
STRANGE = st.text(
    st.sampled_from([*"ab[]/\\", "\x1b", "\x07", "\x9b", "\n", "\r", "\u202e", "\u2066", "\u2028"])
    | st.characters(exclude_categories=["Cs"]),
    max_size=12,
) | st.sampled_from(["\x1b[2J", "[red]x[/red]", "[/]", ":smile:", "\u202egnol si tahw", "<b>&"])
REPLACES = """\
import sys
path = sys.argv[1]
for line in sys.stdin:
    print(open(path, encoding="utf-8").read(), flush=True, end="")
"""


def right(workload: Workload) -> list[str]:
    """Return the lines of the right answers."""
    return list(find_room("slack").reference()(workload).lines())


def spoilt(workload: Workload, place: int, written: str) -> tuple[list[str], Final]:
    """Return the lines of a trace with one wrong value, and the step that has it."""
    lines = right(workload)
    finals = [number for number, line in enumerate(lines) if '"kind":"final"' in line]
    number = finals[place % len(finals)]
    row: dict[str, Any] = json.loads(lines[number])
    lines[number] = re.sub(r'"value":[^,}]*', f'"value":{written}', lines[number])
    del row["kind"]
    return lines, Final(**row)


def judged(workload: Workload, lines: list[str], folder: Path) -> Judgement:
    """Have a process answer these lines."""
    (folder / "t.jsonl").write_text("".join(lines), encoding="utf-8")
    (folder / "adapter.py").write_text(REPLACES, encoding="utf-8")
    command = shlex.join([sys.executable, str(folder / "adapter.py"), str(folder / "t.jsonl")])
    system = ProcessSystem(command, Limits())
    try:
        return judge_workload(workload, system, step_types=(Final,), reference=MODEL)
    finally:
        system.close(0)


@given(place=st.integers(0, 50), written=st.sampled_from(WRITTEN))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_an_answer_that_is_no_number_is_broken_and_named(
    tmp_path: Path, place: int, written: str
) -> None:
    workload = windows()
    lines, step = spoilt(workload, place, written)
    found = judged(workload, lines, tmp_path)
    assert found.outcome is Outcome.BROKEN
    sentence = str(found.agreement.sentence)
    assert f"start_us {step.start_us}, key {step.key!r}" in sentence
    value = "Infinity" if written[0] in "19" else written.strip('"')
    assert f" is {value}; it must be a finite number" in sentence
    assert found.mismatches == 1  # every other step is judged as usual


def test_no_answer_at_all_is_judged(tmp_path: Path) -> None:
    nothing = ['{"trace":1}\n', '{"end":0}\n']
    assert judged(windows(), nothing, tmp_path).outcome is Outcome.BROKEN
    empty = windows().with_(arrivals=(), cuts=())
    found = judged(empty, nothing, tmp_path)
    assert found.outcome is Outcome.UNDETERMINED  # nothing was due
    assert not found.broken


@pytest.mark.parametrize("written", WRITTEN)
def test_judge_gives_a_file_the_same_verdict(
    straggler: Straggler, tmp_path: Path, written: str
) -> None:
    (tmp_path / "w.jsonl").write_text(workload_line(windows()), encoding="utf-8")
    lines, _ = spoilt(windows(), 0, written)
    (tmp_path / "t.jsonl").write_text("".join(lines), encoding="utf-8")
    done = straggler("judge", "w.jsonl", "t.jsonl", "--kinds", "final")
    assert (done.code, done.err) == (1, "")
    assert "it must be a finite number" in done.out


def test_a_field_that_is_no_answer_may_be_null_but_an_integer_may_not(
    straggler: Straggler, tmp_path: Path
) -> None:
    (tmp_path / "w.jsonl").write_text(workload_line(windows()), encoding="utf-8")
    lines = right(windows())
    for name, written, code in (("needed", "null", 0), ("n", "null", 2), ("n", "NaN", 2)):
        kind = "judged" if name == "needed" else "final"
        chosen = next(i for i, line in enumerate(lines) if f'"kind":"{kind}"' in line)
        text = re.sub(rf'"{name}":[^,}}]*', f'"{name}":{written}', lines[chosen])
        if name == "needed" and text == lines[chosen]:
            continue  # no such field
        (tmp_path / "t.jsonl").write_text(
            "".join([*lines[:chosen], text, *lines[chosen + 1 :]]), encoding="utf-8"
        )
        assert straggler("judge", "w.jsonl", "t.jsonl").code == code, (name, written)


# ------------------------------------------------------------------------------ texts of strangers


def controls(text: str) -> list[str]:
    """Return characters of a text, lines apart, that a terminal would not show as they are."""
    return [each for each in text if not each.isprintable() and each not in "\n\xa0\u3000"]


@given(text=STRANGE)
def test_a_text_is_escaped_once_and_stays_readable(text: str) -> None:
    shown = escaped(text)
    assert escaped(shown) == shown
    assert all(each.isprintable() or each.isspace() for each in shown)
    assert "\n" not in shown
    if text.isprintable():
        assert shown == text
    assert not controls(re.sub(r"\s", " ", format_error(text)))
    page = str(_shown(text))
    assert not controls(re.sub(r"[^\S\n]", " ", page))


@given(text=STRANGE, row=STRANGE)
def test_terminals_get_lines_and_tables_without_codes(text: str, row: str) -> None:
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        out = render.Output(file=nowhere, width=2000, highlight=False, record=True)
        render.print_lines(out, [text])
        grid = Table(box=None)
        grid.add_column("x", overflow="fold", no_wrap=True)
        grid.add_row(render.plain(row))
        out.print(grid)
        said = out.export_text()
    assert escaped(text) in said
    assert not controls(re.sub(r"[^\S\n]", " ", said))
    assert isinstance(out, Console)


@given(producer=STRANGE, key=STRANGE, told=STRANGE)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_what_a_system_says_is_printed_escaped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], producer: str, key: str, told: str
) -> None:
    work, trace = tmp_path / "w.jsonl", tmp_path / "t.jsonl"
    event = Event(0, 0, key, 0, 1.0, 0)
    workload = windows().with_(arrivals=(event,), cuts=(), name=told)
    work.write_text(workload_line(workload), encoding="utf-8")
    wrong = Final(0, 0, key + told, 2.0, 1, 0, True)
    trace.write_text("".join(Trace(producer, [wrong]).lines()), encoding="utf-8")
    assert main(["judge", str(work), str(trace), "--kinds", "final"]) == 1
    said = capsys.readouterr()
    assert not controls(re.sub(r"[^\S\n]", " ", said.out + said.err))
    assert f"broken: {escaped(producer)} does not do" in said.out


@given(told=STRANGE.filter(str.strip))
@settings(
    max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
def test_last_words_of_a_command_are_printed_escaped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, told: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.csv").write_text("event_time,key,value\n1,a,1\n", encoding="utf-8")
    code = f"import sys; sys.stderr.buffer.write({told.encode()!r}); sys.exit(3)"
    (tmp_path / "dies.py").write_text(code, encoding="utf-8")
    system = shlex.join([sys.executable, str(tmp_path / "dies.py")])
    query = ("--time-unit", "s", "--window", "2s", "--aggregate", "sum", "--per", "task")
    asked = ("diff", "slack", "--input", "in.csv", *query, "--reference", "model")
    assert main([*asked, "--system", f"exec:{system}", "--html", "run.html"]) == 1
    said = capsys.readouterr()
    assert "exit code 3" in said.out
    assert not controls(re.sub(r"[^\S\n]", " ", said.out + said.err))
    page = (tmp_path / "run.html").read_text(encoding="utf-8")
    assert not controls(re.sub(r"[^\S\n]", " ", page))
    assert told not in page or not set(told) & set("<&")


# --------------------------------------------------------------------------------- counterexamples


def stored(folder: Path, system: str, claim: str = "no pair lost") -> Path:
    return Counterexample(system, windows(), ("final",), (f"{claim}: it was.",)).store(folder)


@given(systems=st.lists(STRANGE.map("m:{}".format), min_size=2, max_size=5, unique=True))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_counterexamples_of_systems_and_claims_have_files_of_their_own(
    tmp_path_factory: pytest.TempPathFactory, systems: list[str]
) -> None:
    folder = tmp_path_factory.mktemp("stored")
    paths = [
        stored(folder, system, claim) for system in systems for claim in ("no pair lost", "exact")
    ]
    assert len(set(paths)) == 2 * len(systems)
    assert {Counterexample.load(path).system for path in paths} == set(systems)
    again = [stored(folder, system) for system in systems]
    assert set(again) < set(paths)  # the same one has the same name


def test_the_name_tells_room_system_and_claim(tmp_path: Path) -> None:
    name = stored(tmp_path, "exec:python3 ../a b.py", "Eventual exactness").name
    assert name.startswith("slack-python3-a-b-py-eventual-exactness-")


@pytest.mark.parametrize("system", ["exec:touch ran", "ran:make", "exec:", "spark:x"])
def test_replay_runs_what_a_file_names_only_if_it_is_trusted(
    straggler: Straggler, tmp_path: Path, system: str
) -> None:
    (tmp_path / "ran.py").write_text(
        "import pathlib\npathlib.Path('ran').touch()\n", encoding="utf-8"
    )
    path = str(stored(tmp_path / "c", system))
    assert_refused(straggler("replay", path), f"names the system {system!r}", "--trust", "--system")
    assert not (tmp_path / "ran").exists()
    assert straggler("replay", path, "--system", "model.slack:make_system").code == 0
    assert not (tmp_path / "ran").exists()
    trusted = straggler("replay", path, "--trust")
    assert trusted.code in (1, 2)
    assert (tmp_path / "ran").exists() == (system in ("exec:touch ran", "ran:make"))
