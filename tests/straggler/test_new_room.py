"""A sixth room is one folder in each layer: no list of rooms has to be changed.

The room ``toy`` lies in a temporary folder on the search path of a process of its own. It sums the
values of its arrivals. Parts that the test does not look at are taken from room ``slack``.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

MODEL = '''
"""The model of room ``toy``: one answer, the sum of all values."""

from model.vocabulary import Trace, Workload
from model.vocabulary.windows import Final


def run(workload: Workload) -> Trace:
    values = [event.value for event in workload.arrivals]
    return Trace("toy", [Final(0, 0, "", sum(values), len(values), 0, True)])


def make_system():
    return run
'''

MEASURABLES = '''
"""Room ``toy`` in experiments."""

from typing import Annotated, NamedTuple

from model.vocabulary.settings import Setting, settings_of
from sim.sweep.measurable import Measurable


class ToySettings(NamedTuple):
    size: Annotated[int, Setting("number of ones")] = 1


def measure(settings, seed):
    return {"answer": float(settings["size"])}


MEASURABLES = {"sim": Measurable(settings_of(ToySettings), measure)}
'''

EXPERIMENT = """
name = "toy-size"
room = "toy"
title = "The answer of a toy"
seeds = 1
measures = ["answer"]

[factors]
size = [1, 2]

[full]
"""

ROOM = '''
"""Room ``toy``, wired together."""

from dataclasses import replace

from model.checking.claims import Judgement, Outcome, Verdict
from model.toy import make_system
from model.vocabulary import Event, SlackConfig, Workload
from model.vocabulary.windows import Final
from straggler.pages.errata import Erratum, Findings, Kind
from straggler.rooms import Case
from straggler.rooms.slack.room import ROOM as SLACK


def cases(args, columns):
    events = tuple(Event(n, n, "", n, 1.0, n) for n in range(5))
    workload = Workload("toy", events, SlackConfig(10, 10).to_json(), (), name="five ones")
    yield Case("ones", "five ones", "their sum", workload, in_order=False)


def check(workload, trace, *, recording):
    total = sum(event.value for event in workload.arrivals)
    is_right = [final.value for final in trace.of(Final)] == [total]
    outcome = Outcome.HOLDS if is_right else Outcome.BROKEN
    return Judgement((Verdict("the sum is right", outcome, f"It is {total}."),), {})


def simulate(settings, seed):
    run = SLACK.simulate({"messages": "50", **settings}, seed)
    return replace(run, trace=make_system()(run.workload))


def search():
    broken = Verdict("a toy lasts", Outcome.BROKEN, "It broke.")
    kept = Verdict("a toy lasts", Outcome.HOLDS, "It held.")
    return Findings(("Drop it.",), broken, kept, kept)


ROOM = replace(
    SLACK,
    name="toy",
    position=60,
    step_types=(Final,),
    cases=cases,
    reference=make_system,
    check=check,
    simulate=simulate,
    figures=lambda seen: dict.fromkeys([figure.name for figure in SLACK.shown], 1),
    guard=lambda case, figures: Verdict("it was played with", Outcome.HOLDS, "it was"),
    remarks=lambda seen: (),
    summarise_agreement=lambda figures: "one sum",
    errata=(
        Erratum(
            Kind.PRINTED, "toy-breaks", "A toy lasts.", "A shop.", "Drop it.", "Hold it.", search
        ),
    ),
)
'''

COMMANDS = """\
diff toy --reference model --system model.toy:make_system
explore toy --scope small --variant lost_update
sim toy --json run.json
sweep --list
sweep toy-size --out results --jobs 1
errata toy
diff --help
errata --help
"""
PROGRAM = """\
import sys
from straggler.cli.main import main
if __name__ == "__main__":
    for line in sys.stdin.read().splitlines():
        print(">", line, main(line.split()), flush=True)
"""

FILES: Mapping[str, str] = {
    "model/toy/__init__.py": MODEL,
    "sim/toy/__init__.py": "",
    "sim/toy/measurables.py": MEASURABLES,
    "sim/toy/experiments/toy-size.toml": EXPERIMENT,
    "straggler/rooms/toy/__init__.py": "",
    "straggler/rooms/toy/room.py": ROOM,
    "program.py": PROGRAM,
}


def test_every_command_takes_a_new_room(tmp_path: Path) -> None:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.lstrip(), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "program.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])},
        input=COMMANDS,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    codes = [int(line.split()[-1]) for line in done.stdout.splitlines() if line.startswith("> ")]
    assert codes == [0, 1, 0, 0, 0, 0, 0, 0], done.stderr
    for said in (
        "agrees with the reference in one sum",
        "lost_update",
        "all 1 steps are the same",
        "toy-size: The answer of a toy",
        "1 erratum, confirmed",
    ):
        assert said in done.stdout
    assert json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))["verdict"] == "holds"
    assert (tmp_path / "results" / "toy-size-quick.json").is_file()
