"""``import straggler``: public names, extras, and what it has for tests of users."""

import re
import subprocess
import sys
import tomllib
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import straggler
from model.checking.claims import Outcome
from model.vocabulary import GroupingConfig, SlackConfig
from model.vocabulary.extras import EXTRAS, describe_missing
from sim.kernel.distributions import mean_us
from straggler import Trace, Workload, assert_keeps_promises
from straggler.errors import UsageError
from straggler.judging import promises
from tests.house.repository import ROOT

HEAVY = "pyspark pyarrow pandas numpy scipy simpy matplotlib rich lark pytest hypothesis"
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
    given = {"control": "fixed", "fixed_slack": timedelta(seconds=1), "speeds": [1, 0.5]}
    run = straggler.simulate("slack", seed=7, scenario="umts", messages=500, tasks=1, **given)
    assert run.workload.seed == 7
    right = straggler.judge_workload(run.workload, lambda _: run.trace)
    assert (right.outcome, right.mismatches) == (Outcome.HOLDS, 0)
    silent = straggler.judge_workload(run.workload, lambda _: straggler.Trace("mine", ()))
    assert silent.outcome is Outcome.BROKEN


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"seed": "x"}, "seed is 'x'; it must be an integer >= 0"),
        ({"seed": 1.5}, "seed is 1.5; it must be an integer >= 0"),
        ({"room": 5}, "room is 5; it must be a text such as 'slack'"),
        (
            {"size_us": timedelta(-1)},
            "size_us is -86400000000; it must be an integer > 0",
        ),
        ({"tasks": None}, "tasks is None; it must be an integer > 0"),
        ({"size_us": "-5 seconds"}, "size_us is -5000000; it must be an integer > 0"),
    ],
)
def test_an_impossible_argument_of_a_simulation_is_named(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(said)}$"):
        straggler.simulate(**{"room": "slack", **given})


def test_settings_are_laid_over_the_example_which_is_fitted_to_the_scenario() -> None:
    run = straggler.simulate("slack", control="max", service_us="20ms", tasks=1)
    cluster = run.plan.cluster
    assert (run.workload.config["control"], mean_us(cluster.service)) == ("max", 20_000)
    assert len({worker.place for worker in cluster.workers}) == 2
    assert [fault.kind for fault in run.plan.faults] == ["fail"]  # there is no worker-1 to slow
    fitted = straggler.simulate("slack", scenario="umts", messages=500)
    assert [fault[1] for fault in fitted.plan.faults] == [300_000_000, 500_000_000]
    assert len({worker.place for worker in fitted.plan.cluster.workers}) == 2
    assert mean_us(fitted.plan.cluster.service) == 31_000


def test_a_time_is_refused_as_it_was_given() -> None:
    with pytest.raises(ValueError, match=r"^size is -5s; it must be a duration > 0$"):
        straggler.simulate("slack", size="-5 seconds")
    for wrong, said in (("-2 ms", "-2ms; it must be at least 0"), ("20 d", "20d; it must be at")):
        with pytest.raises(ValueError, match=f"^latency is {said}"):
            GroupingConfig.of(instances=2, latency=["1 ms", wrong])
    assert GroupingConfig.of(instances=2, latency=["1 ms", timedelta()]).latency_us == (1000, 0)
    with pytest.raises(ValueError, match=r"^size_us is -5; it must be an integer > 0$"):
        SlackConfig.of(size_us=-5, slide="1 s")


def right(workload: Workload) -> Trace:
    from model.join.oracle import make_system

    return make_system()(workload)


def test_a_right_system_passes_and_a_silent_one_does_not(tmp_path: Path) -> None:
    assert_keeps_promises(right, kinds="match", folder=tmp_path)
    assert_keeps_promises("model.slack:make_system", room="slack", level="steps", folder=tmp_path)
    with pytest.raises(AssertionError, match=r"(?s)lost.*straggler replay .*MODULE:FACTORY"):
        assert_keeps_promises(lambda _: Trace("silent", ()), kinds="match", folder=tmp_path)
    with pytest.raises(ValueError, match="effort is 'much'; it must be one of dev, ci, nightly"):
        assert_keeps_promises(right, effort="much")
    with pytest.raises(UsageError, match="level is 'all'; it must be one of answers, steps"):
        assert_keeps_promises(right, level="all")
    with pytest.raises(UsageError, match="system is None; it must be a System"):
        assert_keeps_promises(None)  # type: ignore[arg-type]  # the mistake to refuse


def test_a_system_gets_only_what_it_accepts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Workload] = []

    def with_one_query(workload: Workload) -> Trace:
        given.append(workload)
        return right(workload)

    assert_keeps_promises(with_one_query, accepts=has_one_query, folder=tmp_path)
    assert len(given) == 25
    assert all(map(has_one_query, given))
    monkeypatch.setattr(promises, "TRIES", 1)
    with pytest.raises(AssertionError, match=r"accepts none of 25 workloads$"):
        assert_keeps_promises(right, accepts=lambda _: False, folder=tmp_path)


def has_one_query(workload: Workload) -> bool:
    return len(workload.config["queries"]) == 1
