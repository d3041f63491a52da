"""Input of strangers: pipes, files without an end, JSON that is too deep, texts that are codes."""

import bz2
import gzip
import io
import json
import lzma
import re
import sys
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from model.vocabulary import Event, Trace
from model.vocabulary.texts import escaped
from model.vocabulary.windows import Final
from sim.report.page import _shown
from straggler.cli.main import main
from straggler.errors import UsageError, format_error
from straggler.inputs import frames, text_files
from straggler.inputs.archives import unpacked
from straggler.inputs.protocol import workload_line
from straggler.inputs.tables import read_table
from straggler.inputs.text_files import read_json, read_lines
from straggler.judging.counterexamples import Counterexample
from straggler.options import STDIO
from straggler.rooms import find_room
from tests.straggler.small_workloads import windows

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


@example(head="", repeated="y\n")  # ends of lines are bytes of a file, too
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


@given(depth=st.integers(1, 3000), opening=st.sampled_from(["[", '{"a":', '[[{"a":']))
@DATA
def test_deep_nesting_is_one_sentence(
    work: Path, capsys: pytest.CaptureFixture[str], depth: int, opening: str
) -> None:
    closing = opening.replace('{"a":', "}").replace("[", "]")[::-1]
    deep = opening * depth + "1" + closing * depth
    right = json.loads((work / "w.jsonl").read_text(encoding="utf-8"))
    for row in (
        deep,
        json.dumps({**right, "arrivals": "DEEP"}).replace('"DEEP"', deep),
        json.dumps({**right, "faults": "DEEP"}).replace('"DEEP"', deep),
    ):
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


# ------------------------------------------------------------------------------ texts of strangers


STRANGE = st.text(
    st.sampled_from([*"ab[]/\\", "\x1b", "\x07", "\x9b", "\n", "\r", "\u202e", "\u2066", "\u2028"])
    | st.characters(exclude_categories=["Cs"]),
    max_size=12,
) | st.sampled_from(["\x1b[2J", "[red]x[/red]", "[/]", ":smile:", "\u202egnol si tahw", "<b>&"])


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


@given(producer=STRANGE, key=STRANGE, told=STRANGE)
@DATA
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


# Packed files: read whole, or refused in one sentence, in bounded memory.


TEXT = b"event_time,value\n" + b"".join(b"%d,%d\n" % (n, n * n % 97) for n in range(200))


def zipped(data: bytes) -> bytes:
    packed = BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("data.csv", data)
    return packed.getvalue()


def by_arrow(data: bytes, codec: str) -> bytes:
    packed = pa.BufferOutputStream()
    with pa.CompressedOutputStream(packed, codec) as stream:
        stream.write(data)
    found: bytes = packed.getvalue().to_pybytes()
    return found


PACKED = {
    "gzip": gzip.compress(TEXT),
    "bzip2": bz2.compress(TEXT),
    "xz": lzma.compress(TEXT),
    "zip": zipped(TEXT),
    "zstd": by_arrow(TEXT, "zstd"),
    "lz4": by_arrow(TEXT, "lz4"),
}


@pytest.mark.parametrize("kind", PACKED)
def test_a_packed_file_is_read_within_a_limit_or_refused(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "data.csv.packed"
    path.write_bytes(PACKED[kind])
    assert len(read_table(path).events) == 200
    path.write_bytes(PACKED[kind][: len(PACKED[kind]) // 2])
    with pytest.raises(UsageError, match=rf"is no {kind} archive of one file that can be read"):
        read_table(path)
    assert unpacked("data.csv", PACKED[kind], len(TEXT)) == TEXT
    with pytest.raises(UsageError, match=r"^what is packed in data.csv has more than 0 MiB$"):
        unpacked("data.csv", PACKED[kind], len(TEXT) - 1)


def test_an_archive_that_is_not_read_is_named(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    encrypted = bytearray(PACKED["zip"])
    encrypted[6] = encrypted[encrypted.index(b"PK\x01\x02") + 8] = 1
    for data, sentence in (
        (bytes(encrypted), "is no zip archive of one file that can be read"),
        (b"7z\xbc\xaf\x27\x1c" + bytes(99), "is a 7z archive, which is not read; unpack it"),
    ):
        path.write_bytes(data)
        with pytest.raises(UsageError, match=f"^data.csv {sentence}$"):
            read_table(path)


@given(
    kind=st.sampled_from(sorted(PACKED)),
    at=st.integers(0, 1 << 16),
    wrong=st.binary(min_size=1, max_size=40),
)
def test_a_damaged_archive_is_read_whole_or_refused(kind: str, at: int, wrong: bytes) -> None:
    data = bytearray(PACKED[kind])
    at = 8 + at % (len(data) - 8)
    data[at : at + len(wrong)] = wrong
    with suppress(UsageError):  # no other error; a byte may also mean nothing
        unpacked("data.csv", bytes(data), 1 << 20)


@pytest.mark.parametrize("first", [b"PAR1", b"event_time,value\n1,1\n"])
def test_an_endless_stream_ends_in_a_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, first: bytes
) -> None:
    path = tmp_path / "endless"
    path.write_bytes(first + b"a" * 3_000_000)
    monkeypatch.setattr(frames, "is_stream", lambda _: True)
    monkeypatch.setattr(Path, "is_file", lambda _: False)
    monkeypatch.setattr(frames, "STREAM_MAX", 1 << 20)
    with pytest.raises(UsageError, match=r"^endless has no end in 1 MiB; save it in a file$"):
        read_table(path)
