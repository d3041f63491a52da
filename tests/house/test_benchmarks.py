"""The runner of `make bench`."""

import json
from pathlib import Path

import pytest

from benchmarks.__main__ import Benchmark, Figure, main


def measure() -> dict[str, Figure]:
    return {"rows_per_s": 412_345.6, "matches": 335_220}


FAKES: dict[str, Benchmark] = {"join": measure, "slack": lambda: {"ratio": 1.25}}


def test_every_benchmark_runs_and_leaves_its_figures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([], FAKES, tmp_path / "results") == 0
    shown = capsys.readouterr().out
    for text in ("join", "rows_per_s", "412,346", "slack", "ratio", "1.25"):
        assert text in shown
    record = json.loads((tmp_path / "results" / "join.json").read_text(encoding="utf-8"))
    assert set(record) == {"benchmark", "python", "spark", "cores", "figures"}
    assert record["figures"] == {"rows_per_s": 412_345.6, "matches": 335_220}


def test_an_unknown_name_is_refused_before_anything_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["slack", "slakc"], FAKES, tmp_path) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "There is no benchmark 'slakc': choose from join, slack.\n"
    assert not list(tmp_path.iterdir())
