"""``import straggler`` gives the public names, and loads packages when they are used."""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib import import_module

import pytest

import straggler
from model.checking.claims import Outcome
from model.vocabulary.extras import EXTRAS, describe_missing
from straggler.errors import UsageError
from tests.house.repository import ROOT, room_names

HEAVY = "pyspark pyarrow pandas numpy scipy simpy matplotlib rich lark jinja2 pytest hypothesis"
LOADED = f"""
import sys
import straggler
print(*sorted(set("{HEAVY}".split()) & set(sys.modules)), end="")
straggler.SlackConfig
print("|", *sorted(set("{HEAVY}".split()) & set(sys.modules)))
"""


def run_python(code: str) -> str:
    """Return what a new interpreter prints."""
    command = [sys.executable, "-c", code]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def test_neither_the_import_nor_a_configuration_loads_a_heavy_package() -> None:
    assert run_python(LOADED).strip() == "|"


def test_every_public_name_can_be_imported() -> None:
    assert dir(straggler) == straggler.__all__ == sorted(straggler.__all__)
    for name in straggler.__all__:
        assert getattr(import_module("straggler"), name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'SlackQuerry'"):
        _ = straggler.SlackQuerry  # type: ignore[attr-defined]  # a type checker finds it too


def test_a_missing_package_names_its_extra() -> None:
    code = """
import sys
sys.modules["simpy"] = None
import straggler
try:
    straggler.simulate
except ImportError as error:
    print(error)
"""
    expected = "straggler.simulate needs the package 'simpy': pip install 'straggler[sim]'\n"
    assert run_python(code) == expected
    unknown = describe_missing(ModuleNotFoundError("No module named 'mine'", name="mine.jobs"))
    assert unknown == "needs the module 'mine.jobs', which is not installed"


def test_the_extras_of_a_missing_module_are_those_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = {
        name: {re.split(r"[^\w-]", each)[0].replace("-", "_") for each in requirements}
        for name, requirements in project["optional-dependencies"].items()
        if name not in ("all", "dev")
    }
    assert declared == {name: set(modules) for name, modules in EXTRAS.items()}
    assert project["optional-dependencies"]["all"] == [f"straggler[{','.join(declared)}]"]


def test_a_system_is_judged_on_a_simulated_workload() -> None:
    run = straggler.simulate("slack", seed=7, control="fixed", fixed_slack_us=1_000_000, tasks=1)
    assert run.workload.seed == 7
    right = straggler.judge_workload(run.workload, lambda _: run.trace)
    assert (right.outcome, right.mismatches) == (Outcome.HOLDS, 0)
    silent = straggler.judge_workload(run.workload, lambda _: straggler.Trace("mine", ()))
    assert silent.outcome is Outcome.BROKEN


def test_a_mistake_in_a_simulation_is_one_sentence() -> None:
    with pytest.raises(UsageError, match="there is no room 'slak'"):
        straggler.simulate("slak")
    with pytest.raises(ValueError, match="there is no setting 'controll'; did you mean 'control'"):
        straggler.simulate("slack", controll="fixed")


def examples() -> Iterator[tuple[str, str]]:
    """Yield the examples in Python of all pages, each with the name of its page."""
    for path in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        for code in re.findall(r"^```python\n(.*?)^```", path.read_text("utf-8"), re.M | re.S):
            yield path.name, code


def test_examples_import_public_names_from_the_library() -> None:
    found = dict.fromkeys(name for name, _ in examples())
    assert {"README.md", "slack.md", "join.md", "grouping.md", "script.md"} <= set(found)
    rooms = {f"spark_impl.{room}" for room in room_names()}
    for page, code in examples():
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.ImportFrom) and node.module != "straggler":
                names = {each.name for each in node.names}
                # Pages on one's own system speak the words of the specification.
                if not (node.module or "").startswith("model.vocabulary"):
                    assert not names & set(straggler.__all__), (page, node.module)
                assert node.module not in rooms, page
            elif isinstance(node, ast.ImportFrom):
                assert {each.name for each in node.names} <= set(straggler.__all__), page
