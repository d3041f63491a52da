"""Damaged inputs: every command has to refuse them or to do what it was asked.

The command lines and files of :mod:`tests.harness.fuzzed_commands` are damaged, and each command
runs in this process. :func:`problems` says what has to hold of every one of them: no traceback, one
sentence and exit code 2 for what cannot be read, and of every file that a command writes either the
whole or what was there before.
"""

import io
import json
import os
import re
import signal
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple
from unittest.mock import patch

from hypothesis import strategies as st

from tests.harness.fuzzed_commands import Form, call

BEFORE = b"what was there before\n"
PATIENCE_S = 10.0
"""Processor time (s) until a command counts as slow: a damaged size may ask for a day of work."""
LONGEST_SENTENCE = 1500

WORDS: Sequence[str] = (
    *("", " ", "-1", "0", "1", "2", "1e308", "-1e-320", "nan", "inf", "0x10", "1_000", "٣"),
    *("9" * 20, "1" * 400, "🐀", "a,b", "5 s", "5s", "-5s", "1h30", "true", "null", "None", "[]"),
    *("key", "value <", "a=b", "=", "..", "/", ".", "-", "--", "a\x1bb", "\u202eb", "[red]"),
    *("é" * 300, "%s", "{0}"),
)
VALUES: st.SearchStrategy[Any] = st.sampled_from(
    [
        *(None, True, False, 0, 1, -1, 2**31, 2**63, -(2**63) - 1, 10**30, 0.5, -0.0, 1e308),
        *("", "a", "🐀", "NaN", "-Infinity", "\x00", "\x1b[2J", "\u202e[/red]", "x" * 5000),
        *(1e-320, 10**4200, [], {}, [[]], [0], {"a": 1}, [None]),
    ]
)
TEXTS = st.sampled_from([*WORDS, "NaN", "1e999", "\\u", *'-"{}[],:\n\r\t\x00é'])


class Input(NamedTuple):
    """A damaged command: its words and files, and whether it can only be refused."""

    form: Form
    words: Sequence[str]
    files: Mapping[str, bytes]
    is_garbage: bool


class Outcome(NamedTuple):
    """Outcome of a command: exit code (None if it was slow), output, and files by name."""

    code: int | None
    out: str
    err: str
    files: Mapping[str, bytes]


def spliced(items: Any, more: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, Any, Any]]:
    """Draw what is left before and behind a place of a sequence, and items to put in between."""
    return st.builds(
        lambda at, gone, added: (items[:at], added, items[at + gone :]),
        st.integers(0, len(items)),
        st.sampled_from([0, 1, 1, 3, len(items)]),
        st.lists(more, max_size=2),
    )


def damaged_text(text: str) -> st.SearchStrategy[str]:
    """Draw a text with one damage."""
    return spliced(text, TEXTS).map(lambda each: f"{each[0]}{''.join(each[1])}{each[2]}")


@st.composite
def damaged_tree(draw: st.DrawFn, tree: Any) -> object:
    """Draw JSON with one of its values replaced, removed, repeated or added."""
    if not isinstance(tree, dict | list) or not tree or draw(st.integers(0, 9)) == 0:
        return draw(VALUES)
    items = [*(tree.items() if isinstance(tree, dict) else enumerate(tree))]
    at = draw(st.integers(0, len(items) - 1))
    if draw(st.integers(0, 2)):
        items[at] = items[at][0], draw(damaged_tree(items[at][1]))
    else:
        new = st.tuples(st.sampled_from(["more", items[at][0]]), VALUES | st.just(items[at][1]))
        before, added, behind = draw(spliced(items, new))
        items = [*before, *added, *behind]
    return dict(items) if isinstance(tree, dict) else [each for _, each in items]


@st.composite
def damaged_file(draw: st.DrawFn, name: str, content: bytes) -> bytes:
    """Draw the content of a file with one damage: of bytes, or of a value in JSON."""
    if name.endswith((".json", ".jsonl")) and draw(st.booleans()):
        parts = content.splitlines(keepends=True) if name.endswith("l") else [content]
        at = draw(st.integers(0, max(0, len(parts) - 1)))
        try:
            tree = json.loads(parts[at])
        except (IndexError, ValueError):
            tree = []
        parts[at : at + 1] = [json.dumps(draw(damaged_tree(tree))).encode() + b"\n"]
        return b"".join(parts)
    more = TEXTS.map(str.encode) | st.binary(max_size=100)
    before, added, behind = draw(spliced(content, more))
    return bytes(before + b"".join(added) + behind)


@st.composite
def damaged(draw: st.DrawFn, form: Form) -> Input:
    """Draw a form with one to three damages in its words or in one of its files."""
    words, files = list(form.words), dict(form.files)
    name = draw(st.sampled_from(["", *sorted(files)]))
    for _ in range(draw(st.sampled_from([1, 1, 1, 2, 3]))):
        if name:
            files[name] = draw(damaged_file(name, files[name]))
            continue
        fixed, rest = words[: len(form.command)], words[len(form.command) :]
        other = (
            st.sampled_from(words).flatmap(damaged_text).map(lambda text: text.replace("\0", ""))
        )
        before, added, behind = draw(spliced(rest, other | st.sampled_from([*WORDS, *words])))
        words = [*fixed, *before, *added, *behind]
    is_needed = name not in ("", *form.passes_over)
    return Input(form, words, files, is_needed and not _can_parse(name, files[name]))


def misspelt(form: Form) -> Input:
    """Return a form with an option that no command has."""
    return Input(form, [*form.words, "--no-such-option"], form.files, is_garbage=True)


def _can_parse(name: str, content: bytes) -> bool:
    """Return whether a file is text of its kind, whatever it means."""
    if name.endswith(".parquet"):
        return True
    try:
        text = content.decode("utf-8-sig")
        if name.endswith(".toml"):
            tomllib.loads(text)
        elif name.endswith((".json", ".jsonl")):
            for part in text.rstrip().split("\n") if name.endswith("l") else [text]:
                json.loads(part)
    except (ValueError, RecursionError):
        return False
    return True


def problems(given: Input, outputs_before: Mapping[str, bytes], done: Outcome) -> Iterator[str]:
    """Yield what is wrong with how a command took an input; a slow one is judged by its words."""
    said = done.out + done.err
    if "Traceback" in said or "unexpected error" in said or "Warning:" in said:
        yield "a traceback, an unexpected error or a warning of a library"
    if not re.sub(r"\s", "", said).isprintable():
        yield "a character that a terminal obeys instead of showing it"
    if done.code is None:
        return
    if done.code not in (0, 1, 2, 3):
        yield f"exit code {done.code}"
    if given.is_garbage and done.code != 2:
        yield f"exit code {done.code} for what cannot be read"
    if done.code == 2:
        lines = done.err.splitlines()
        if not given.form.explains and (len(lines) != 1 or not lines[0].startswith("straggler: ")):
            yield "a refusal that is not one sentence"
        if any(len(line) > LONGEST_SENTENCE for line in lines):
            yield "a sentence that nobody can read"
    yield from _damaged_files(given, outputs_before, done)


def _damaged_files(
    given: Input, outputs_before: Mapping[str, bytes], done: Outcome
) -> Iterator[str]:
    for name in sorted({*outputs_before, *done.files} - set(given.files)):
        found, before = done.files.get(name), outputs_before.get(name)
        if found == before:
            continue
        if done.code == 2 and not given.form.keeps_results:
            yield f"{name} was changed although the command was refused"
        elif found is None or not _is_whole(name, found):
            yield f"{name} is half-written"
    for name, content in given.files.items():
        if done.files.get(name) != content and name not in given.form.rewrites:
            yield f"{name}, an input, was changed"


def _is_whole(name: str, content: bytes) -> bool:
    if name.endswith(".svg"):
        return content.rstrip().endswith(b"</svg>")
    is_text = name.endswith((".json", ".jsonl", ".toml", ".xml", ".md"))
    return not is_text or (content.endswith(b"\n") and _can_parse(name, content))


def run(given: Input, outputs_before: Mapping[str, bytes]) -> Outcome:
    """Run a damaged command in a folder of its own, in this process."""
    with tempfile.TemporaryDirectory() as folder, _working_in(Path(folder)):
        for name, content in {**given.files, **outputs_before}.items():
            Path(name).parent.mkdir(parents=True, exist_ok=True)
            Path(name).write_bytes(content)
        out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.TextIOWrapper(io.BytesIO(), "utf-8")
        code: int | None
        with redirect_stdout(out), redirect_stderr(err), _patience():
            try:
                code = call(given.words)
            except _TookTooLong:
                code = None
        for stream in (out, err):
            stream.seek(0)
        files = {str(path): path.read_bytes() for path in Path().rglob("*") if path.is_file()}
        return Outcome(code, out.read(), err.read(), files)


class _TookTooLong(BaseException):
    """The command was slow; no part of it may take this for an error of its own."""


@contextmanager
def _patience() -> Iterator[None]:
    def give_up(_signal: int, _frame: FrameType | None) -> None:
        raise _TookTooLong

    before = signal.signal(signal.SIGVTALRM, give_up)
    # Again every second: an error inside a callback of the collector is swallowed.
    signal.setitimer(signal.ITIMER_VIRTUAL, PATIENCE_S, 1)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


@contextmanager
def _working_in(folder: Path) -> Iterator[None]:
    """Work in a folder, with everything back as it was afterwards; no Java is found there."""
    environment = {"JAVA_HOME": str(folder / "no-java")}
    with patch.dict(os.environ, environment), patch.object(sys, "path", [*sys.path]), chdir(folder):
        yield
