"""Damaged inputs by the hundred: every command has to refuse or to do what it was asked.

The command lines and files of :mod:`tests.harness.fuzzed_commands` are damaged, and each command
runs in this process. :func:`problems` says what has to hold of every one of them: no traceback, one
sentence and exit code 2 for what cannot be read, and of every file that a command writes either the
whole or what was there before.
"""

import io
import json
import os
import random
import re
import shlex
import signal
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple
from unittest.mock import patch

from tests.harness.fuzzed_commands import Form, call

UNKNOWN = "--no-such-"
"""Beginning of an option that no command has."""
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
VALUES: Sequence[object] = (
    *(None, True, False, 0, 1, -1, 2**31, 2**63, -(2**63) - 1, 10**30, 0.5, -0.0, 1e308, 1e-320),
    *("", "a", "🐀", "NaN", "-Infinity", "\x00", "\x1b[2J", "\u202e[/red]", "x" * 5000),
    *(10**4200, [], {}, [[]], [0], {"a": 1}, [None]),
)
TEXTS: Sequence[str] = ("NaN", "1e999", "\\u", *'-"{}[],:\n\r\t\x00é')


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


def damaged(form: Form, rng: random.Random) -> Input:
    """Return a form with one to three damages in its words or in one of its files."""
    words, files = list(form.words), dict(form.files)
    damages = rng.choice((1, 1, 1, 2, 3))
    if not files or rng.random() < 1 / 3:
        for _ in range(damages):
            _damage_words(words, rng, len(form.command))
        return Input(form, words, files, any(word.startswith(UNKNOWN) for word in words))
    name = rng.choice(sorted(files))
    for _ in range(damages):
        files[name] = _damage_file(name, files[name], rng)
    is_needed = name not in form.passes_over
    return Input(form, words, files, is_needed and not _can_parse(name, files[name]))


def misspelt(form: Form) -> Input:
    """Return a form with an unknown option."""
    return Input(form, [*form.words, f"{UNKNOWN}option"], form.files, is_garbage=True)


def _damage_words(words: list[str], rng: random.Random, fixed: int) -> None:
    """Damage words in place, but not the name of the command."""
    places = range(fixed, len(words))
    match rng.randrange(6) if places else 5:
        case 0:
            del words[rng.choice(places)]
        case 1:
            words.insert(rng.choice(places), rng.choice(words))
        case 2:
            place = rng.choice(places)
            words[place] = _damage_text(words[place], rng).replace("\x00", "")  # ends a word
        case 3:
            words.insert(rng.choice(places), rng.choice(WORDS))
        case 4:
            words[rng.choice(places)] = rng.choice(WORDS)
        case _:
            words.append(f"{UNKNOWN}{rng.randrange(100)}")


def _damage_file(name: str, content: bytes, rng: random.Random) -> bytes:
    lines = content.splitlines(keepends=True)
    if name.endswith((".json", ".jsonl")) and rng.random() < 0.6:
        parts = lines if name.endswith(".jsonl") else [content]
        place = rng.randrange(len(parts)) if parts else 0
        try:
            tree = json.loads(parts[place])
        except (IndexError, ValueError):
            tree = []
        line = json.dumps(_damage_tree(tree, rng)).encode() + b"\n"
        return b"".join([*parts[:place], line, *parts[place + 1 :]])
    if len(lines) > 1 and rng.random() < 0.3:
        first, second = (rng.randrange(len(lines)) for _ in range(2))
        moved = [*lines[:first], *lines[first + 1 :]]
        return b"".join([*moved[:second], lines[first], *moved[second:]])
    place, gone = rng.randrange(len(content) + 1), rng.choice((0, 1, 1, 50, len(content)))
    text = _damage_text("", rng).encode()
    added = rng.choice((text, text, b"", rng.randbytes(rng.choice((1, 4, 100)))))
    return content[:place] + added + content[place + gone :]


def _damage_tree(tree: object, rng: random.Random) -> object:
    """Return JSON with one of its values replaced, removed, repeated or added."""
    if not isinstance(tree, dict | list) or not tree or rng.random() < 0.1:
        return rng.choice(VALUES)
    is_object = isinstance(tree, dict)
    items: list[tuple[Any, Any]] = [*(tree.items() if isinstance(tree, dict) else enumerate(tree))]
    place = rng.randrange(len(items))
    key, value = items[place]
    match rng.randrange(8):
        case 0:
            del items[place]
        case 1:
            items[place : place + 1] = [(f"{key}x", value)] * (1 if is_object else 2)
        case 2:
            items.append(("more", rng.choice(VALUES)))
        case _:
            items[place] = key, _damage_tree(value, rng)
    return dict(items) if is_object else [each for _, each in items]


def _damage_text(text: str, rng: random.Random) -> str:
    place, length = rng.randrange(len(text) + 1), rng.choice((0, 1, 1, 3, 20))
    return text[:place] + rng.choice((*WORDS, *TEXTS)) + text[place + length :]


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
    if name.endswith((".html", ".svg")):
        return content.rstrip().endswith((b"</html>", b"</svg>"))
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


class Report(NamedTuple):
    """Summary of many inputs: how often each form ended how, and what was wrong."""

    ends: Counter[tuple[str, str]]
    found: list[str]


def fuzz(forms: Mapping[str, Form], numbers: Iterable[int], seed: int) -> Report:
    """Run damaged inputs, the forms in turn; input ``n`` depends on the seed and on ``n`` alone.

    The first input of each form has an option that no command knows, so that each is refused once.
    """
    report, names = Report(Counter(), []), list(forms)
    for number in numbers:
        rng = random.Random(f"{seed} {number}")
        name = names[number % len(names)]
        given = damaged(forms[name], rng) if number >= len(names) else misspelt(forms[name])
        outputs = dict.fromkeys(forms[name].outputs, BEFORE) if rng.random() < 0.5 else {}
        done = run(given, outputs)
        report.ends[name, "slow" if done.code is None else str(done.code)] += 1
        said = f"  {shlex.join(given.words)[:400]}\n  {(done.out + done.err)[-400:]}"
        report.found.extend(
            f"{name}, {number}: {each}\n{said}" for each in problems(given, outputs, done)
        )
    return report
