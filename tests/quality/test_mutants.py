"""The tool that judges mutations makes them as it says, and an interrupted run goes on."""

import ast
import json
import tomllib
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from tests.quality.mutants import (
    EQUIVALENT,
    KILLED,
    SURVIVED,
    UNDECIDED,
    VERDICTS,
    Calls,
    Judge,
    copied,
    read_verdicts,
    record_calls,
    stages,
    write_verdict,
)
from tests.quality.mutants_page import page
from tests.quality.mutations import KINDS, Mutation, drawn, kind_of, mutations_of

RULES = '''"""Rules of a small package."""

from collections.abc import Callable

__all__ = ["least"]
Order = Callable[[int, int], bool]


def least(left: int, right: int) -> int:
    """Return the smaller number."""
    return left if left < right else right


def is_far(a: int, b: int) -> bool:
    if not a or b > 3 and a != b:
        return True
    return min(a, b, 7) == [1][0]


def joined(left: list[int], right: list[int]) -> list[object]:
    assert len(left) > -1
    return [*zip(left, right, strict=True), *zip(left, right, strict=False)]


def never_called() -> int:
    return 5
'''
TESTS = """
from sim.rules import is_far, least


def test_the_smaller_number_is_returned():
    assert least(1, 2) == 1 and least(2, 1) == 1
"""
SETTINGS = "[tool.pytest.ini_options]\ntimeout = 60\n"


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a small repository with one module, one test and the plugin."""
    folder = tmp_path_factory.mktemp("small")
    ours = Path(__file__).parents[1] / "harness" / "called_functions.py"
    files = {
        "sim/__init__.py": "",
        "sim/rules.py": RULES,
        "tests/__init__.py": "",
        "tests/harness/__init__.py": "",
        "tests/harness/called_functions.py": ours.read_text("utf-8"),
        "tests/sim/test_rules.py": TESTS,
        "pyproject.toml": SETTINGS,
        "conftest.py": "from hypothesis import settings\n"
        "for name in ('ci', 'dev'):\n    settings.register_profile(name, max_examples=5)\n",
    }
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (folder / ".venv").mkdir()
    record_calls(folder, folder / "build" / "calls")
    return folder


def the_one(root: Path, right: str, wrong: str) -> Mutation:
    [found] = [
        each
        for each in mutations_of(root, "sim/rules.py")
        if (each.right, each.wrong) == (right, wrong)
    ]
    return found


def test_every_mutation_is_one_change_that_python_reads(small: Path) -> None:
    found = mutations_of(small, "sim/rules.py")
    source = (small / "sim/rules.py").read_bytes()
    before = ast.dump(ast.parse(source))
    for each in found:
        assert ast.dump(ast.parse(each.apply(source))) != before
        assert source[each.start : each.end].decode() == each.right
        assert each.right in source.decode().splitlines()[each.line - 1]
    assert len({each.name for each in found}) == len(found)
    assert {each.operator for each in found} == {
        "and/or", "comparison", "condition", "constant", "container", "extremes", "sign and not",
        "truth",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("left < right", "(left <= right)"),
        ("left < right", "(left >= right)"),
        ("not a", "(a)"),
        ("b > 3 and a != b", "(b > 3 or a != b)"),
        ("a != b", "(a == b)"),
        ("True", "False"),
        ("min(a, b, 7)", "(max(a, b, 7))"),
        ("[1]", "[]"),
        ("7", "8"),
        ("left if left < right else right", "(right if left < right else left)"),
    ],
)
def test_a_kind_of_mistake_is_made(small: Path, right: str, wrong: str) -> None:
    the_one(small, right, wrong)


def test_what_nobody_can_see_is_left_alone(small: Path) -> None:
    found = mutations_of(small, "sim/rules.py")
    of_lines = {RULES.splitlines()[each.line - 1] for each in found}
    assert not [line for line in of_lines if "Callable" in line or "__all__" in line]
    assert not [line for line in of_lines if "assert" in line]
    of_joined = [each for each in found if each.function.startswith("joined")]
    changed = [each.right for each in of_joined if each.operator == "truth"]
    assert changed == ["False"], "a strict zip is an assertion, and another one is not"


def test_a_mutation_that_a_test_sees_is_killed_and_an_equivalent_one_survives(small: Path) -> None:
    with copied(small) as copy:
        judge = Judge(copy, Calls.read(small / "build" / "calls"))
        seen = judge.judge(the_one(copy, "left < right", "(left >= right)"))
        assert seen["verdict"] == KILLED
        assert seen["by"] == "tests"
        assert seen["test"] == "tests/sim/test_rules.py::test_the_smaller_number_is_returned"
        # Of two equal numbers either is the smaller one.
        equal = judge.judge(the_one(copy, "left < right", "(left <= right)"))
        assert (equal["verdict"], equal["asked"]) == (SURVIVED, 1)
        assert (copy / "sim/rules.py").read_text("utf-8") == RULES
    assert (small / "sim/rules.py").read_text("utf-8") == RULES


def test_a_failure_that_comes_without_the_mutation_kills_nothing(small: Path) -> None:
    with copied(small) as copy:
        path = copy / "tests/sim/test_rules.py"
        path.write_text(TESTS + "    assert least(3, 3) == 4\n", encoding="utf-8")
        judge = Judge(copy, Calls.read(small / "build" / "calls"))
        seen = judge.judge(the_one(copy, "left < right", "(left >= right)"))
        assert seen["verdict"] == SURVIVED


def test_the_tests_that_call_a_function_are_asked(small: Path) -> None:
    calls = Calls.read(small / "build" / "calls")
    called = the_one(small, "left < right", "(left >= right)")
    assert [list(each.tests) for each in stages(called, calls, {}, small)] == [
        [], [], ["tests/sim/test_rules.py::test_the_smaller_number_is_returned"], [],
    ]  # fmt: skip
    # Nobody calls it, so the tests of its module are asked.
    other = the_one(small, "5", "6")
    assert stages(other, calls, {}, small) == stages(called, calls, {}, small)


def test_what_no_function_uses_is_judged_by_pages_and_modules_that_import_it(
    tmp_path: Path,
) -> None:
    page, user = "tests/straggler/test_pages.py::test_x", "tests/sim/test_user.py::test_y"
    calls = Calls({page: 1.0, user: 1.0}, {"sim/user.py": frozenset([user])})
    (tmp_path / "sim").mkdir()
    (tmp_path / "sim" / "words.py").write_text("LIMIT = 5\n", encoding="utf-8")
    (tmp_path / "sim" / "user.py").write_text("from sim.words import LIMIT\n", encoding="utf-8")
    mutation = mutations_of(tmp_path, "sim/words.py")[0]
    assert calls.of(mutation, tmp_path) == {page, user}


def test_a_seed_draws_one_order_with_every_file_early() -> None:
    root = Path(__file__).resolve().parents[2]
    first, again, other = (
        [each.name for each in drawn(root, seed, "spark_impl/join")] for seed in (1, 1, 2)
    )
    assert first == again
    assert first != other
    assert sorted(first) == sorted(other)
    files = [each.file for each in drawn(root, 1, "spark_impl/join")]
    assert len(set(files[: len(set(files))])) == len(set(files))


def test_an_interrupted_file_of_verdicts_is_read_and_continued(small: Path, tmp_path: Path) -> None:
    path = tmp_path / "verdicts.jsonl"
    one, two = mutations_of(small, "sim/rules.py")[:2]
    write_verdict(path, one, {"verdict": SURVIVED}, seed=1)
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"name": two.name, "verdict": KILLED})[:-9])
    assert set(read_verdicts(path)) == {one.name}
    write_verdict(path, two, {"verdict": SURVIVED}, seed=1)
    write_verdict(path, one, {"verdict": KILLED}, seed=1)
    found = {name: each["verdict"] for name, each in read_verdicts(path).items()}
    assert found == {one.name: KILLED, two.name: SURVIVED}


def test_the_page_counts_verdicts_and_leaves_equivalent_mutations_out(
    small: Path, tmp_path: Path
) -> None:
    verdicts, equivalent = tmp_path / "verdicts.jsonl", tmp_path / "equivalent.toml"
    found = mutations_of(small, "sim/rules.py")[:5]
    kinds = [
        {"verdict": KILLED, "by": "properties on Spark"},
        {"verdict": KILLED, "by": "tests"},
        {"verdict": SURVIVED, "by": ""},
        {"verdict": SURVIVED, "by": ""},
        {"verdict": UNDECIDED, "by": "properties"},
    ]
    for each, verdict in zip(found, kinds, strict=True):
        write_verdict(verdicts, each, verdict, seed=7)
    for seed in (7, 8):
        answers = found[seed - 7]._replace(file="model/rules.py")
        write_verdict(verdicts, answers, kinds[seed - 7], seed)
    equivalent.write_text(f'["{found[2].name}"]\nreason = "none"\n', encoding="utf-8")
    text = page(verdicts, equivalent)
    assert "| `sim` | 5 | 1 | 1 | 1 | 33% | 67% |" in text
    assert "| simulated runs | 5 | 1 | 1 | 1 | 33% | 67% |" in text
    assert "| answers, seed 7 | 1 | 0 | 0 | 0 | 100% | 100% |" in text
    assert "| answers, seed 8 | 1 | 0 | 0 | 0 | 0% | 100% |" in text
    assert text.count("| `sim/rules.py` |") == 1


@pytest.mark.parametrize(
    ("file", "kind"),
    [
        ("model/join/chain.py", "answers"),
        ("spark_impl/runtime/stores.py", "answers"),
        ("spark_impl/join/work_probe.py", "the rest"),
        ("model/windows/exactness_claims.py", "verdicts"),
        ("model/slack/variants.py", "the rest"),
        ("sim/kernel/station.py", "simulated runs"),
        ("sim/slack/stream_figures.py", "the rest"),
    ],
)
def test_a_file_has_a_kind(file: str, kind: str) -> None:
    assert kind_of(file) == kind


def test_every_pattern_of_a_kind_fits_a_file() -> None:
    root = Path(__file__).resolve().parents[2]
    files = [path.relative_to(root).as_posix() for path in root.rglob("*.py")]
    for kind, patterns in KINDS.items():
        for pattern in patterns:
            found = [each for each in files if fnmatchcase(each, pattern)]
            assert [each for each in found if kind_of(each) == kind], pattern


def test_equivalent_mutations_exist_have_reasons_and_are_not_killed() -> None:
    known = tomllib.loads(EQUIVALENT.read_text(encoding="utf-8"))
    root = Path(__file__).resolve().parents[2]
    for name, each in known.items():
        assert name in {mutation.name for mutation in mutations_of(root, each["file"])}, each
        assert each["reason"]
    verdicts = read_verdicts(VERDICTS)
    assert not [name for name in known if verdicts.get(name, {}).get("verdict") == KILLED]


@pytest.mark.parametrize(
    ("file", "seen_by"),
    [
        (
            "spark_impl/join/lane.py",
            ("tests/properties/join/test_spark.py", "properties/test_promises.py"),
        ),
        ("spark_impl/windows/panes.py", ("tests/properties/slack/test_spark.py",)),
        ("spark_impl/retention.py", ("tests/spark_impl/test_retention.py",)),
        ("model/vocabulary/script/tree.py", ("tests/properties/script/test_spark.py",)),
        ("model/join/chain.py", ()),
    ],
)
def test_what_runs_on_spark_is_judged_on_spark(file: str, seen_by: tuple[str, ...]) -> None:
    root = Path(__file__).resolve().parents[2]
    mutation = mutations_of(root, file)[0]
    found = stages(mutation, Calls({}, {}), {}, root)
    asked = [test for stage in found for test in stage.tests]
    assert set(seen_by) <= set(asked)
    assert bool(asked) == bool(seen_by)
