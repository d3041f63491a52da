"""Forecast of the time that jobs take: their time in an earlier sweep, or that of similar jobs.

Times decide the order of jobs and the estimate of the time left, never a figure.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from pathlib import Path
from statistics import fmean

from model.vocabulary.settings import JsonObject
from sim.sweep.jobs import Done, Job

TIMES = "times.jsonl"


def time_of(done: Done) -> JsonObject:
    """Return the record of a job's time, one line of the file of times."""
    return {
        "kind": kind_of(done.job),
        "runs": done.job.addresses,
        "seconds": round(done.seconds, 3),
        "peak_mb": round(done.peak_mb, 1),
    }


def kind_of(job: Job) -> str:
    """Return a digest of what a job does; its seed and the version of the code do not count."""
    whole = [job.room, job.run, job.fan, job.values, sorted(job.settings.items())]
    return hashlib.sha256(json.dumps(whole).encode("ascii")).hexdigest()[:16]


def known_times(folder: Path) -> dict[str, float]:
    """Return the last time (s) of each kind of job in a folder; unreadable lines are skipped."""
    try:
        lines = (folder / TIMES).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return {}
    found = {}
    for line in lines:
        try:
            record = json.loads(line)
            kind, seconds = str(record["kind"]), float(record["seconds"])
        except (ValueError, KeyError, TypeError, OverflowError):
            continue
        if isfinite(seconds):
            found[kind] = max(0.0, seconds)
    return found


def longest_first(jobs: Iterable[Job], known: Mapping[str, float]) -> list[Job]:
    """Return jobs in the order of their experiments, within each the longest first.

    A long job at the end would keep one process busy while the others are idle. Jobs without a
    known time come first in their experiment, in their given order.
    """
    listed = list(jobs)
    place = {name: n for n, name in enumerate(dict.fromkeys(job.experiment for job in listed))}
    unknown = float("inf")
    return sorted(
        listed, key=lambda job: (place[job.experiment], -known.get(kind_of(job), unknown))
    )


class Forecast:
    """Estimate of the time that a running sweep still takes."""

    def __init__(self, jobs: Sequence[Job], known: Mapping[str, float]) -> None:
        """Take the jobs and the times of :func:`known_times`."""
        self._known = {job.addresses: known.get(kind_of(job)) for job in jobs}
        self._known_s = sum(filter(None, self._known.values()))
        unknown = [job.experiment for job in jobs if self._known[job.addresses] is None]
        self._unknown = Counter(unknown)
        self._took: dict[str, list[float]] = {name: [] for name in unknown}
        """Times (s) of jobs that had no known time, by experiment."""
        self._busy_s = 0.0
        self._done = 0

    def note(self, done: Done) -> None:
        """Note that a job is done."""
        known_s = self._known[done.job.addresses]
        if known_s is None:
            self._unknown[done.job.experiment] -= 1
            self._took[done.job.experiment].append(done.seconds)
        else:
            self._known_s -= known_s
        self._busy_s += done.seconds
        self._done += 1

    def left_s(self, elapsed_s: float) -> float:
        """Return the seconds until all jobs are done, with as many at a time as until now.

        A job without a known time counts as the mean of such jobs of its experiment, or of all
        jobs.
        """
        if not self._busy_s:
            return 0.0
        usual_s = self._busy_s / self._done
        work_s = self._known_s + sum(
            count * (fmean(self._took[name]) if self._took[name] else usual_s)
            for name, count in self._unknown.items()
            if count
        )
        return max(0.0, work_s) * elapsed_s / self._busy_s
