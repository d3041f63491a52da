"""``straggler package`` writes an archive, whole or not at all, and over nothing else."""

from pathlib import Path

import pytest

from spark_impl.runtime.packages import archive
from tests.straggler.command import Straggler, assert_refused


def test_package_writes_the_archive_and_says_how_to_submit_it(
    straggler: Straggler, tmp_path: Path
) -> None:
    for _ in range(2):  # an archive may be replaced
        done = straggler("package", "--output", "my job.zip")
        assert (done.code, done.err) == (0, "")
        assert f"{len(archive()):,} bytes" in done.out
        assert done.out.endswith("  spark-submit --py-files 'my job.zip' JOB.py\n")
        assert (tmp_path / "my job.zip").read_bytes() == archive()
    assert [path.name for path in tmp_path.iterdir()] == ["my job.zip"]


@pytest.mark.parametrize(
    ("output", "words"),
    [
        ("straggler.tar", "--output 'straggler.tar': its name must end in .zip"),
        ("nowhere/straggler.zip", "--output 'nowhere/straggler.zip': there is no such folder"),
        ("notes.zip", "--output 'notes.zip' is no archive; it would be overwritten"),
    ],
)
def test_package_refuses_an_output_that_no_worker_could_import(
    straggler: Straggler, tmp_path: Path, output: str, words: str
) -> None:
    (tmp_path / "notes.zip").write_text("mine", encoding="utf-8")
    assert_refused(straggler("package", "--output", output), words)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.zip"]
    assert (tmp_path / "notes.zip").read_text(encoding="utf-8") == "mine"
