"""Files that commands read: pipes, files without an end, and JSON that is too deep or too long."""

import io
import json
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from model.vocabulary.trace import parse_object
from straggler.cli.main import main
from straggler.errors import UsageError
from straggler.inputs import text_files
from straggler.inputs.protocol import workload_line
from straggler.inputs.text_files import read_json, read_lines
from straggler.judging.counterexamples import Counterexample
from straggler.options import STDIO
from straggler.rooms import find_room
from tests.straggler.command import Straggler, assert_refused
from tests.straggler.test_levels import windows

DATA = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """Write a workload, its right trace, and a counterexample; return their folder."""
    (tmp_path / "w.jsonl").write_text(workload_line(windows()), encoding="utf-8")
    trace = find_room("slack").reference()(windows())
    (tmp_path / "t.jsonl").write_text("".join(trace.lines()), encoding="utf-8")
    found = Counterexample("model.slack:make_system", windows(), ("final",), ("nothing",))
    found.store(tmp_path).rename(tmp_path / "c.json")
    return tmp_path


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_every_file_may_be_a_pipe(straggler: Straggler, work: Path) -> None:
    for words in (("judge", "w.jsonl", "t.jsonl"), ("replay", "c.json", "--trust")):
        plain = straggler(*words)
        assert (plain.code, plain.err) == (0, "")
        writers = []
        piped = list(words)
        for place, name in enumerate(words):
            if (work / name).is_file():
                os.mkfifo(work / f"pipe-{name}")
                piped[place] = f"pipe-{name}"
                content = (work / name).read_bytes()
                target = (work / f"pipe-{name}").write_bytes
                writers.append(threading.Thread(target=target, args=(content,), daemon=True))
                writers[-1].start()
        done = straggler(*piped)
        assert (done.code, done.err) == (0, "")
        for writer in writers:
            writer.join(10)
            assert not writer.is_alive()


def test_closed_standard_input_is_one_sentence(
    straggler: Straggler, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert work.is_dir()
    monkeypatch.setattr(sys, "stdin", None)
    for words in (("-", "t.jsonl"), ("w.jsonl", "-")):
        assert_refused(straggler("judge", *words), "standard input is closed")


class Endless(io.RawIOBase):
    """A stream that repeats some bytes for ever, and counts what was read of it."""

    def __init__(self, head: bytes, repeated: bytes) -> None:
        self.read_bytes = 0
        self._unread, self._repeated = head, repeated

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while len(self._unread) < len(buffer):
            self._unread += self._repeated * (1 + len(buffer) // len(self._repeated))
        buffer[:] = self._unread[: len(buffer)]
        self._unread = self._unread[len(buffer) :]
        self.read_bytes += len(buffer)
        return len(buffer)


LIMIT = 1 << 16
HEADS = ["", '{"trace":1}\n', "\ufeff"]
REPEATED = st.sampled_from(
    ["\0", "\n", " ", "y\n", "[", '{"a":', "1", "1,", '"', "\\", "é", '{"kind":"clea', " \r\n"]
) | st.text(min_size=1, max_size=5)


@given(head=st.sampled_from(HEADS), repeated=REPEATED)
@DATA
def test_files_without_an_end_are_refused_in_bounded_memory(head: str, repeated: str) -> None:
    for read in (list_of_lines, read_json):
        with pytest.MonkeyPatch.context() as patch:
            for name in ("LINE_MAX", "FILE_MAX"):
                patch.setattr(text_files, name, LIMIT)
            patch.setattr(text_files, "CHUNK", 1 << 10)
            endless = Endless(head.encode(), repeated.encode("utf-8", "replace"))
            stdin = io.TextIOWrapper(io.BufferedReader(endless, 1 << 10))
            patch.setattr(sys, "stdin", stdin)
            with pytest.raises((UsageError, ValueError)):
                read(STDIO)
            assert endless.read_bytes <= 2 * LIMIT


def list_of_lines(path: Path) -> Iterator[tuple[int, str]]:
    return iter(list(read_lines(path)))


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="there is no /dev/zero")
def test_a_device_that_never_ends_is_refused(straggler: Straggler, work: Path) -> None:
    assert work.is_dir()
    for words in (
        ("judge", "/dev/zero", "t.jsonl"),
        ("judge", "w.jsonl", "/dev/zero"),
        ("replay", "/dev/zero"),
        ("plan", "join", "--calibration", "/dev/zero"),
    ):
        assert_refused(straggler(*words), "zero" if words[0] != "plan" else "")


@given(depth=st.integers(1, 3000), opening=st.sampled_from(["[", '{"a":', '[[{"a":']))
@DATA
def test_deep_nesting_is_one_sentence(
    work: Path, capsys: pytest.CaptureFixture[str], depth: int, opening: str
) -> None:
    closing = opening.replace('{"a":', "}").replace("[", "]")[::-1]
    deep = opening * depth + "1" + closing * depth
    right = json.loads((work / "w.jsonl").read_text(encoding="utf-8"))
    for name, value in (("config", "whole"), ("arrivals", "field"), ("faults", "field")):
        row = (
            deep
            if value == "whole"
            else json.dumps({**right, name: 0}).replace(f'"{name}": 0', f'"{name}": {deep}')
        )
        (work / "deep.jsonl").write_text(row + "\n", encoding="utf-8")
        head = '"counterexample": 1, "system": "x:y", "kinds": [], "broken": []'
        (work / "deep.json").write_text(f'{{{head}, "workload": {row}}}', encoding="utf-8")
        for words in (
            ("judge", str(work / "deep.jsonl"), str(work / "t.jsonl")),
            ("judge", str(work / "w.jsonl"), str(work / "deep.jsonl")),
            ("replay", str(work / "deep.json")),
        ):
            assert main(list(words)) == 2
            said = capsys.readouterr().err
            assert said.count("\n") == 1
            assert "unexpected" not in said, said[:300]


INTEGERS = st.integers(64, 20_000).map(lambda bits: 10 ** (bits * 3 // 10)) | st.just(1 << 63)


@given(number=INTEGERS, sign=st.sampled_from([1, -1]), place=st.sampled_from(range(7)))
@DATA
def test_integers_beyond_64_bits_are_named_with_file_and_field(
    work: Path, capsys: pytest.CaptureFixture[str], number: int, sign: int, place: int
) -> None:
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    text = str(sign * number - (sign < 0))
    sys.set_int_max_str_digits(before)
    row = json.loads((work / "w.jsonl").read_text(encoding="utf-8"))
    name = ("seed", "gamma_us", "cut", "fault", "source_id", "event_time_us", "arrival_us")[place]
    match name:
        case "seed":
            row["seed"] = "HERE"
        case "gamma_us":
            row["config"]["gamma_us"] = "HERE"
        case "cut":
            row["cuts"] = ["HERE"]
        case "fault":
            row["faults"] = [["kill", "HERE", ""]]
        case _:
            row["arrivals"][0][{"source_id": 1, "event_time_us": 3, "arrival_us": 5}[name]] = "HERE"
    (work / "long.jsonl").write_text(
        json.dumps(row).replace('"HERE"', text) + "\n", encoding="utf-8"
    )
    assert main(["judge", str(work / "long.jsonl"), str(work / "t.jsonl")]) == 2
    said = capsys.readouterr().err
    assert said.startswith("straggler: long.jsonl, line 1")
    assert said.count("\n") == 1
    assert name in said or (name == "fault" and "a kill is at" in said)
    assert "unexpected" not in said


def test_numbers_of_64_bits_are_taken() -> None:
    assert parse_object('{"a": [-9223372036854775808, 9223372036854775807]}') == {
        "a": [-(1 << 63), (1 << 63) - 1]
    }


@pytest.mark.parametrize("time", ["2026-W05-1", "2026-01-01T00:00:00+24:00", "2026-01-01"])
def test_a_time_that_is_a_text_is_named_with_file_line_and_field(
    straggler: Straggler, work: Path, time: str
) -> None:
    row = json.loads((work / "w.jsonl").read_text(encoding="utf-8"))
    row["arrivals"][1][3] = time
    (work / "w.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    done = straggler("judge", "w.jsonl", "t.jsonl")
    assert_refused(done, f"w.jsonl, line 1: event_time_us of arrival 1 is {time!r}", "integer")
