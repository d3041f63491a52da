"""Input of a soak: drawn tuples, written as files in the way in which a room reads them.

A file appears under its name when it is complete. All deliveries are remembered, for the checks.
"""

import json
import os
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq

from tests.soak.oracles import Arrival

BEGIN_US = 1_000_000_000
MANY = 30
"""Tuples of a file, on average."""
DAY_S = 86_400
PLACES = {
    "slack": ("",),
    "watermark": ("north", "south"),
    "script": ("",),
    "grouping": ("",),
    "join": ("R", "S"),
    "join-load": ("R", "S"),
}
"""Values of the column that parts the stream of a room: sites, or the streams of a join."""
FROM_FILES = ("slack", "grouping")
"""Rooms that read JSON files; others read a history."""
COLUMN = {"watermark": "site", "join": "stream", "join-load": "stream"}


class Feeder:
    """Writes the input of one life of a room into ``folder``."""

    def __init__(self, room: str, folder: Path, random: Random) -> None:
        self.room = room
        self.arrivals: list[Arrival] = []
        """All deliveries, in the order of arrival."""
        self._folder = folder
        self._random = random
        self._now_us = BEGIN_US
        self._files = 0
        self._identities = 0
        folder.mkdir(parents=True, exist_ok=True)

    def feed(self, *, again: bool = False, jump: bool = False) -> int:
        """Write a file; return its number of rows.

        With ``again`` it also holds tuples of earlier files, and is in no order. With ``jump`` the
        clocks of sources jump by up to three seconds ahead, or half a second back, and that of the
        file by up to two days.
        """
        draw = self._random
        if jump:
            self._now_us = max(0, self._now_us + draw.randint(-500_000, 3_000_000))
        tuples = [self._draw_tuple() for _ in range(draw.randint(MANY // 2, 3 * MANY // 2))]
        if again and self.arrivals:
            tuples += draw.sample(self.arrivals, min(len(self.arrivals), 2 * MANY))
            draw.shuffle(tuples)
        first = len(self.arrivals)
        rows = [each._replace(seq=first + at) for at, each in enumerate(tuples)]
        file = self._write(rows)
        # Only after the file was written: a disk may be full.
        self.arrivals += rows
        if jump:
            at_s = file.stat().st_mtime + draw.randint(-2 * DAY_S, 2 * DAY_S)
            os.utime(file, (at_s, at_s))
        return len(rows)

    def _draw_tuple(self) -> Arrival:
        draw = self._random
        self._now_us += draw.randint(1_000, 20_000)
        spread_us = draw.choice((0, 0, 20_000, 150_000, 1_000_000))
        self._identities += 1
        keys = "AABBC" if self.room == "script" else "aaaaabbcd"
        return Arrival(
            seq=0,
            identity=self._identities,
            key=draw.choice(keys),
            ts=max(0, self._now_us - draw.randint(0, spread_us)),
            value=float(draw.randint(0, 20)),
            place=draw.choice(PLACES[self.room]),
        )

    def _write(self, rows: list[Arrival]) -> Path:
        number, self._files = self._files, self._files + 1
        name = f"{number:08d}." + ("json" if self.room in FROM_FILES else "parquet")
        hidden, file = self._folder / f".{name}", self._folder / name
        try:
            if self.room in FROM_FILES:
                lines = (json.dumps(each._asdict()) + "\n" for each in rows)
                hidden.write_text("".join(lines), encoding="utf-8")
            else:
                pq.write_table(self._table(rows), hidden)
        except BaseException:
            self._files = number
            raise
        hidden.rename(file)
        return file

    def _table(self, rows: list[Arrival]) -> pa.Table:
        arrival_us = self._now_us + 10_000_000 * 1_000
        columns = {
            "seq": pa.array([each.seq for each in rows], pa.int64()),
            "source_id": pa.array([each.identity for each in rows], pa.int64()),
            "key": pa.array([each.key for each in rows], pa.string()),
            "event_time_us": pa.array([each.ts for each in rows], pa.int64()),
            "value": pa.array([each.value for each in rows], pa.float64()),
            "arrival_us": pa.array([arrival_us for _ in rows], pa.int64()),
        }
        if self.room in COLUMN:
            columns[COLUMN[self.room]] = pa.array([each.place for each in rows], pa.string())
        return pa.table(columns)
