"""How long jobs will take: as long as before, or as others of their experiment.

Times decide in which order jobs are done and what is said of the time left, never what comes out.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from pathlib import Path
from statistics import fmean
from typing import Any

from sim.sweep.runs import Job
from sim.sweep.work import Done

TIMES = "times.jsonl"


def time_of(done: Done) -> dict[str, Any]:
    """A line of the file of times."""
    return {
        "kind": kind_of(done.job),
        "runs": done.job.addresses,
        "seconds": round(done.seconds, 3),
        "peak_mb": round(done.peak_mb, 1),
    }


def kind_of(job: Job) -> str:
    """A digest of what a job does, whatever its seed and the version of the code."""
    whole = [job.room, job.run, job.fan, job.values, sorted(job.settings.items())]
    return hashlib.sha256(json.dumps(whole).encode("ascii")).hexdigest()[:16]


def known_times(folder: Path) -> dict[str, float]:
    """Seconds that jobs took the last time, by their kinds; what cannot be read is not known."""
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
    """In the order of their experiments; in each what took longest comes first.

    A long job at the end keeps one process busy while the others have nothing to do. Those of which
    nothing is known come before all others of their experiment, as they are.
    """
    listed = list(jobs)
    place = {name: n for n, name in enumerate(dict.fromkeys(job.experiment for job in listed))}
    unknown = float("inf")
    return sorted(
        listed, key=lambda job: (place[job.experiment], -known.get(kind_of(job), unknown))
    )


class Forecast:
    """Of the jobs of a sweep, while they are done."""

    def __init__(self, jobs: Sequence[Job], known: Mapping[str, float]) -> None:
        """``known`` is what :func:`known_times` says."""
        self._known = {job.addresses: known.get(kind_of(job)) for job in jobs}
        self._known_s = sum(filter(None, self._known.values()))
        unknown = [job.experiment for job in jobs if self._known[job.addresses] is None]
        self._unknown = Counter(unknown)
        self._took: dict[str, list[float]] = {name: [] for name in unknown}
        """By experiment, jobs of which nothing was known."""
        self._busy_s = 0.0
        self._done = 0

    def note(self, done: Done) -> None:
        """A job is done."""
        known_s = self._known[done.job.addresses]
        if known_s is None:
            self._unknown[done.job.experiment] -= 1
            self._took[done.job.experiment].append(done.seconds)
        else:
            self._known_s -= known_s
        self._busy_s += done.seconds
        self._done += 1

    def left_s(self, elapsed_s: float) -> float:
        """Seconds until all are done, if as many are under way at a time as until now.

        Jobs of which nothing is known take as long as others such of their experiment, or as all.
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
