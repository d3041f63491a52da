"""The same sweep on Spark and on processes leaves the same files."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from spark_impl.runtime.session import EnvironmentProblem
from straggler.errors import UsageError
from straggler.sweeps import on_spark
from tests.sim.experiments import SMALL
from tests.straggler.test_cli_spark import PATIENCE_S, start

FAILS = '0 = { faults = "explode worker-0 1 2" }'
HAS_NO_BALANCE = "'1.5' = { window_tuples = 300 }"
"""Levels of an experiment. Only full windows after the first one have a balance."""


@pytest.mark.timeout(PATIENCE_S)
def test_spark_and_processes_give_the_same_files(tmp_path: Path) -> None:
    text = SMALL.replace("[full]", f"{FAILS}\n{HAS_NO_BALANCE}\n[full]")
    text = text.replace('"mean_rho"', '"mean_rho", "offered_hz"')  # which a backlog has not
    (tmp_path / "small.toml").write_text(text, encoding="utf-8")
    written = []
    for place in ("processes", "local[2]"):
        with start(tmp_path, "sweep", "small.toml", "--on", place, "--out", place) as straggler:
            out, err = straggler.communicate(timeout=PATIENCE_S)
        assert straggler.returncode == 3, (out, err)
        assert "1 experiment, 12 runs, 4 failed: 1 undetermined" in out
        assert err.count("there is no fault 'explode'") == 4
        (tmp_path / "scratch").rmdir()  # nothing is left in it
        folder = tmp_path / place
        table = pq.read_table(folder / "small-quick.parquet")
        empty = {name: table.column(name).null_count for name in table.column_names}
        assert {name: n for name, n in empty.items() if n} == {"mean_rho": 4, "offered_hz": 12}
        files = [*folder.glob("*.parquet"), *folder.glob("*.json"), *folder.glob("runs/*")]
        assert len(files) == 14
        written.append({path.relative_to(folder): path.read_bytes() for path in files})
    assert written[0] == written[1]


def test_a_master_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise EnvironmentProblem("Spark does not start: nobody answers")

    monkeypatch.setattr(on_spark, "session", refused)
    expected = r"^--on 'yarn': Spark does not start: nobody answers$"
    with (
        pytest.raises(UsageError, match=expected),
        on_spark.on_spark("yarn"),
    ):
        pass
