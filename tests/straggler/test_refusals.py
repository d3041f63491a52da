"""Refusals of the command line: one sentence on stderr, exit code 2, and nothing written.

A line of ``refused_commands.txt`` is a command, which goes on after the beginning that follows the
name of its section. ``pytest --snapshot-update`` stores the sentences anew.
"""

import json
import re
import shlex
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from properties.promised import Reached, promised
from tests.harness import fuzzing
from tests.harness.fuzzed_commands import Form, make_forms
from tests.house.repository import ROOT
from tests.sim.experiments import SMALL
from tests.straggler.command import Straggler

STREAM = "event_time,value,key\n1,1,a\n3,2,b\n2,3,a\n"
FILES: dict[str, str | bytes] = {
    **dict.fromkeys(("stream.csv", "r.csv", "s.csv"), STREAM),
    "mine.toml": "a day's work",
    "empty.csv": "",
    "header.csv": "page,bytes\n",
    "hits.csv": "page,bytes\np0,1\nhot,2\n",
    "large.csv": "page,bytes\na,1e308\nb,-1e308\n",
    "twice.csv": "event_time,value,value\n1,2,3\n",
    "picture.csv": b"\x89PNG\r\n\x1a\n\x00\xff\xfe" * 20,
    "fake.parquet": STREAM,
    "packed.csv": b"7z\xbc\xaf\x27\x1c" + bytes(99),
    "deep.json": "[" * 200_000,
    "latin.csv": "page,bytes\ncafé,1\n".encode("latin-1"),
    "users.csv": "event_time,value,key\n" + "".join(f"{n},1,user{n}\n" for n in range(600)),
    "bare.csv": "a,1,5\nb,2,6\n",
    "trades.csv": "when;name;paid\n1000;a;4\n",
    "keyless.csv": "event_time,value\n1,1\n",
    "air.csv": "event_time,pm25,pm10,site,at,ok,seq\n"
    "1,10.5,7,Dongsi,2016-03-01,true,1\n2,20,n.d.,Tiantan,2016-03-02,false,2\n3,30,9,Wanliu,,,3\n",
    "a.script": 'x = max("EWR.temp", 10, 10)\n',
    "l.script": 'x = avg("l", 4_000, 2_000)\n',
    "long.script": 'x = avg("l", 10_000, 1)\n',
    "union.script": "x=\n",
    "bytes.script": b'x = "S"\n\xff',
    "readings.csv": "sensor,at,value\nl,0,1\nl,1,2\n",
    "early.csv": "sensor,at,value\nl,-1,1\n",
    "rare.csv": "sensor,at,value\n" + "".join(f"l,{n * 100_000},1\n" for n in range(20_000)),
    "bad.csv": "sensor,per_hour\nS1,0\n",
    "two.csv": "sensor,per_hour\nS,1\nS,2\n",
    **dict.fromkeys(("small.toml", "copied.toml"), SMALL),
    "my_jobs.py": "",
    "notes.zip": "mine",
    "list.json": "[1]",
    "half.json": "{",
    "empty.json": "{}",
    "other.json": '{"counterexample": 9}',
    "hollow.json": '{"counterexample": 1}',
    "sweeps/runs/0.json": "{}",
    "job.json": json.dumps(
        {
            "counterexample": 3,
            "job": "nowhere:minutes",
            "asked": {"schema": "at timestamp", "event_time": "at"},
        }
    ),
    "asks.json": json.dumps({"counterexample": 3, "job": "a:b", "asked": {"sink": "print"}}),
}
CHAIN = ROOT / "tests" / "golden" / "unreleased" / "store-join.zip"
"""The store of a chain without a history."""
SECTION = re.compile(r"\[(.*)\] ?(.*)")


def commands() -> dict[str, tuple[str, list[str]]]:
    """Return what all commands of a section begin with, and how they go on."""
    found: dict[str, tuple[str, list[str]]] = {}
    lines = Path(__file__).with_name("refused_commands.txt").read_text(encoding="utf-8")
    for line in filter(None, lines.splitlines()):
        if section := SECTION.fullmatch(line):
            rows: list[str] = []
            found[section[1]] = (section[2], rows)
        else:
            rows.append(line)
    return found


REFUSED = commands()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Write files of every kind, good and bad ones."""
    with zipfile.ZipFile(CHAIN) as kept:
        chain = {each.removeprefix("disk/"): kept.read(each) for each in kept.namelist()}
    of_chain = {name: each for name, each in chain.items() if re.match("store/(_delta|kind)", name)}
    files = FILES | {f"chain/{name[6:]}": content for name, content in of_chain.items()}
    for name, content in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return tmp_path


def contents(folder: Path) -> dict[str, bytes]:
    return {str(each): each.read_bytes() for each in folder.rglob("*") if each.is_file()}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_are_one_sentence_and_write_nothing(
    straggler: Straggler, folder: Path, snapshot: SnapshotAssertion, name: str
) -> None:
    before = contents(folder)
    first, rows = REFUSED[name]
    said = [first]
    for row in rows:
        done = straggler(*shlex.split(f"{first} {row}"))
        assert (done.code, done.out, done.err.count("\n")) == (2, "", 1), (row, done)
        sentence = done.err.removeprefix("straggler: ").rstrip("\n").replace(str(folder), "FOLDER")
        said += [f"$ {row}", sentence]
        assert contents(folder) == before, row
    assert "\n".join(said) == snapshot


@pytest.fixture(scope="module")
def forms() -> Mapping[str, Form]:
    return make_forms()


def test_right_commands_are_done_and_unknown_options_refused(forms: Mapping[str, Form]) -> None:
    for name, form in forms.items():
        whole = fuzzing.Input(form, form.words, form.files, is_garbage=False)
        for given_input, codes in ((whole, (0, 3)), (fuzzing.misspelt(form), (2,))):
            done = fuzzing.run(given_input, {})
            assert done.code in codes, (name, done)  # nothing is late in such short streams
            assert list(fuzzing.problems(given_input, {}, done)) == []


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of a slow command
@promised("refused", "done", examples=120)
@given(data=st.data())
def test_damaged_inputs_are_refused_in_one_sentence(
    reached: Reached, forms: Mapping[str, Form], data: st.DataObject
) -> None:
    form = data.draw(st.sampled_from([*forms.values()]))
    given_input = data.draw(fuzzing.damaged(form))
    outputs = dict.fromkeys(form.outputs, fuzzing.BEFORE) if data.draw(st.booleans()) else {}
    done = fuzzing.run(given_input, outputs)
    found = list(fuzzing.problems(given_input, outputs, done))
    assert not found, (
        f"{found}: {shlex.join(given_input.words)[:400]}: {(done.out + done.err)[-400:]}"
    )
    reached.add({"refused": done.code == 2, "done": done.code == 0, "slow": done.code is None})
