"""A lock is waited for and a lease is renewed, on a clock of the test's own."""

import errno
import fcntl
import threading
from types import SimpleNamespace
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_impl.runtime import locks
from spark_impl.runtime.storage import InputProblem, Location, locate

LEASE_S, RENEWED_S, PATIENCE_S = 20, 4, 2
"""Age at which others take a lease for over, time between two renewals, and longest wait."""


class Renewal(NamedTuple):
    """Events until a lease is renewed the next time."""

    suspended_s: int
    """Time in which the process stands still, besides the time between two renewals."""
    is_taken: bool
    """Whether somebody took the lease for over and has removed its file."""
    write_s: int
    """Duration of writing the file."""


RENEWALS = st.lists(
    st.builds(
        Renewal,
        st.sampled_from([0, 0, 0, 5, 11, 12, 30]),
        st.sampled_from([False] * 5 + [True]),
        st.sampled_from([0, 0, 1, 11, 12, 15, 16]),
    ),
    max_size=8,
)


class Holder:
    """A lease whose renewals happen when the test says so."""

    def __init__(self, renewals: list[Renewal]) -> None:
        self.renewals = renewals
        self.lease: locks.Lease
        self.now_s = self.renewed_s = self.begun_s = 0.0
        self.write_s = self.done = 0
        self.is_lost = self._is_set = False

    def hold(self, folder: Location) -> None:
        """Take the lease."""
        self.lease = locks.Lease(folder)
        self.file = next(iter((folder / locks.LOCK).children()))

    def is_held(self) -> bool:
        """Return whether the lease is held, by its definition."""
        return not self.is_lost and self.now_s - self.renewed_s < LEASE_S - RENEWED_S

    def wait(self, seconds: float) -> bool:
        """Let time pass until the next renewal; return whether there is none."""
        self.end_renewal()
        assert self.lease.is_held == (not self.is_lost)
        if self.done == len(self.renewals):
            return True
        suspended_s, is_taken, self.write_s = self.renewals[self.done]
        self.done += 1
        self.now_s += seconds + suspended_s
        if is_taken:
            self.file.remove()
        self.begun_s = self.now_s
        self.is_lost = not self.is_held() or is_taken
        return False

    def end_renewal(self) -> None:
        """Note whether the lease was renewed in time."""
        self.is_lost = not self.is_held()
        if not self.is_lost:
            self.renewed_s = self.begun_s

    def is_set(self) -> bool:
        """Return whether the lease was given up."""
        return self._is_set

    def set(self) -> None:
        """Give the lease up."""
        self._is_set = True


@given(RENEWALS)
def test_a_lease_that_is_not_renewed_in_time_is_lost_for_ever(
    tmp_path_factory: pytest.TempPathFactory, renewals: list[Renewal]
) -> None:
    folder, write = locate(tmp_path_factory.mktemp("store")), Location.write_bytes
    holder = Holder(renewals)

    def write_slowly(file: Location, data: bytes) -> None:
        holder.now_s += holder.write_s
        write(file, data)

    silent = SimpleNamespace(start=lambda: None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(locks, "time", SimpleNamespace(monotonic=lambda: holder.now_s))
        patch.setattr(locks, "LEASE_S", LEASE_S)
        patch.setattr(locks, "RENEWED_S", RENEWED_S)
        patch.setattr(Location, "write_bytes", write_slowly)
        patch.setattr(
            locks,
            "threading",
            SimpleNamespace(Event=lambda: holder, Lock=threading.Lock, Thread=lambda **_: silent),
        )
        holder.hold(folder)
        holder.lease._renew()
        holder.end_renewal()
        assert not holder.lease.is_held
        assert holder.done == len(renewals) or holder.is_lost, "a lease was given up without need"
        was_taken = holder.done and renewals[holder.done - 1].is_taken
        assert holder.file.exists() != bool(was_taken), "a lost lease was written again"


@given(st.integers(0, 40))
def test_a_lock_is_waited_for_as_long_as_patience_lasts(
    tmp_path_factory: pytest.TempPathFactory, tenths: int
) -> None:
    folder, now_s, given_back_s = locate(tmp_path_factory.mktemp("store")), [0.0], tenths / 10
    flock = fcntl.flock

    def flock_later(file: object, how: int) -> None:
        if how & fcntl.LOCK_EX and now_s[0] < given_back_s:
            raise BlockingIOError(errno.EAGAIN, "held by another one")
        flock(file, how)  # type: ignore[arg-type]  # a file of FileLock

    def sleep(seconds: float) -> None:
        assert seconds > 0
        now_s[0] += seconds

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(locks, "time", SimpleNamespace(monotonic=lambda: now_s[0], sleep=sleep))
        patch.setattr(locks, "PATIENCE_S", PATIENCE_S)
        patch.setattr(fcntl, "flock", flock_later)
        if given_back_s > PATIENCE_S + 0.05:
            with pytest.raises(InputProblem, match="is being written by another query; it takes"):
                locks.lock(folder)
            assert PATIENCE_S <= now_s[0] < PATIENCE_S + 0.05
        elif given_back_s <= PATIENCE_S:
            held = locks.lock(folder)
            assert held.is_held
            held.release()
