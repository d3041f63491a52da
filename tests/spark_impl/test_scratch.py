"""Scratch folders of killed sessions are removed, all others stay."""

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from spark_impl.runtime import session
from spark_impl.runtime.session import prefix_of, scratch_folder

KILLED = """
import os, signal, subprocess, sys
from spark_impl.runtime.session import scratch_folder
with scratch_folder() as (folder, file):
    (folder / "local").mkdir()
    (folder / "local" / "block").write_bytes(b"1")
    (folder / "packages.zip").write_bytes(b"2")
    # Like Java, this process ends when its input is closed.
    subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stderr=file)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(autouse=True)
def where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a temporary folder for this process and its children."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    return tmp_path


@pytest.fixture
def forsaken(where: Path) -> Path:
    """Make the scratch folder of a session whose processes have ended."""
    folder = where / f"{session.PREFIX}forsaken"
    (folder / "jvm").mkdir(parents=True)
    (folder / session.MESSAGES).touch()
    return folder


def test_folder_is_there_for_a_session_and_gone_afterwards(where: Path) -> None:
    with scratch_folder() as (folder, _file):
        (folder / "local").mkdir()
        (folder / "packages.zip").touch()
        (folder / "elsewhere").symlink_to(where)
        assert list(where.iterdir()) == [folder]
    assert list(where.iterdir()) == []


def test_killed_session_leaves_nothing_once_its_java_has_ended(where: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", KILLED], stdin=subprocess.PIPE) as driver:
        assert driver.wait(60) == -signal.SIGKILL
        (left,) = where.iterdir()
        with scratch_folder():
            assert (left / "local" / "block").exists(), "a process still writes there"
        assert driver.stdin is not None
        driver.stdin.close()
        _wait_for_lock(left / session.MESSAGES)
    with scratch_folder() as (folder, _file):
        assert list(where.iterdir()) == [folder]


def _wait_for_lock(path: Path) -> None:
    """Wait until nobody holds the lock on a file."""
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)


def test_folder_in_use_stays(where: Path) -> None:
    with scratch_folder() as (first, _first), scratch_folder() as (second, _second):
        session.remove_forsaken(where)
        assert sorted(where.iterdir()) == sorted([first, second])


def test_folder_of_another_user_stays(forsaken: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: forsaken.stat().st_uid + 1)
    session.remove_forsaken(forsaken.parent)
    assert (forsaken / "jvm").exists()


@pytest.mark.parametrize("other", ["two", "on", "one-1", "one-1-one", "one/on*"])
def test_folder_of_another_host_stays(
    where: Path, other: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = where / f"{prefix_of(other)}forsaken"
    folder.mkdir()
    (folder / session.MESSAGES).touch()
    monkeypatch.setattr(session, "PREFIX", prefix_of("one"))
    session.remove_forsaken(where)
    assert folder.exists()
    monkeypatch.setattr(session, "PREFIX", prefix_of(other))
    session.remove_forsaken(where)
    assert not folder.exists()


def test_link_and_what_it_names_stay(forsaken: Path, tmp_path: Path) -> None:
    target = tmp_path / "results"
    shutil.move(forsaken, target)
    forsaken.symlink_to(target)
    session.remove_forsaken(tmp_path)
    assert forsaken.is_symlink()
    assert (target / "jvm").exists()


def test_other_folders_and_files_are_not_removed(tmp_path: Path) -> None:
    other = tmp_path / f"{session.PREFIX}other"
    (other / "work").mkdir(parents=True)
    file = tmp_path / f"{session.PREFIX}file"
    file.touch()
    os.utime(other, (0, 0))
    session.remove_forsaken(tmp_path)
    assert sorted(tmp_path.iterdir()) == [file, other]


def test_removal_that_is_cut_short_is_finished_by_the_next_one(
    forsaken: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (forsaken / "packages.zip").touch()
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", lambda _path, **_: None)
        session.remove_forsaken(forsaken.parent)
    assert not (forsaken / "packages.zip").exists()
    assert (forsaken / session.MESSAGES).exists()
    session.remove_forsaken(forsaken.parent)
    assert not forsaken.exists()


def test_half_made_folder_stays_for_a_while(tmp_path: Path) -> None:
    folder = tmp_path / f"{session.PREFIX}empty"
    folder.mkdir()
    session.remove_forsaken(tmp_path)
    assert folder.exists()
    os.utime(folder, (0, 0))
    session.remove_forsaken(tmp_path)
    assert not folder.exists()


def test_start_that_loses_its_folder_before_it_is_locked_makes_another(
    where: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = fcntl.flock
    lost: list[Path] = []

    def overtaken(file: int, how: int) -> None:
        if not lost:
            lost.extend(where.iterdir())
            session.remove_forsaken(where)
        lock(file, how)

    monkeypatch.setattr(fcntl, "flock", overtaken)
    with scratch_folder() as (folder, _file):
        assert len(lost) == 1
        assert list(where.iterdir()) == [folder] != lost


def test_file_system_without_locks_removes_nothing(
    forsaken: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_file: int, _how: int) -> None:
        raise OSError

    monkeypatch.setattr(fcntl, "flock", refuse)
    with scratch_folder() as (folder, _file):
        assert folder.exists()
    assert forsaken.exists()
