"""Senders, the lines to the instances and the instances, in time.

Rules of this file:

* A sender takes its tuples one after the other, each not before it has arrived. A tuple leaves when
  its instance has a place for it; until then the sender stands still (back-pressure). An instance
  has ``queue_limit`` places; one is free again when its tuple has been served and the sender has
  heard of it, a propagation later.
* The line to an instance and the instance itself serve in the order in which tuples come; a line is
  shared by all senders. So whatever happens to a tuple depends on tuples that asked earlier for the
  same instance, and the run is a recurrence over tuples in the order in which they ask: exact, and
  without an event queue. ``tests/sim`` holds it to links and stations of the simulation.
* Times are float microseconds of kernel time. Equal ones are taken in the order of arrival.
"""

from collections import deque
from collections.abc import Sequence
from heapq import heapify, heappop, heapreplace
from math import inf
from typing import NamedTuple

from sim.grouping.crew import Crew


class Passage(NamedTuple):
    """When tuples were where, by their position in what was sent."""

    asked_us: list[float]
    """When the sender turned to the tuple."""
    sent_us: list[float]
    """When the instance had a place for it."""
    began_us: list[float]
    ended_us: list[float]


class Line:
    """All that senders and instances still have to do, from one window to the next."""

    def __init__(self, crew: Crew, instances: int, senders: int) -> None:
        places = range(instances)
        self._senders = senders
        self._ready_us = [0.0] * senders
        self._transfer_us = [crew.transfer_us(i) for i in places]
        self._latency_us = [crew.tier(i).latency_us for i in places]
        self._line_us = [0.0] * instances  # when the line is free
        self._idle_us = [0.0] * instances  # when the instance is
        self._free_us = [deque([-inf] * crew.queue_limit) for _ in places]
        self._spells = [crew.spells(i) for i in places]
        self._slowness = [spells[0][1] for spells in self._spells]
        self._until_us = [spells[0][0] for spells in self._spells]

    @property
    def ready_us(self) -> float:
        """When the last sender has sent what it had."""
        return max(self._ready_us)

    def wait(self, until_us: float) -> None:
        """Nothing is sent before."""
        self._ready_us = [max(each, until_us) for each in self._ready_us]

    def send(
        self,
        first: int,
        arrived_us: Sequence[float],
        instances: Sequence[int],
        work_us: Sequence[float],
    ) -> Passage:
        """Send tuples with the numbers ``first``, ``first`` + 1, ... to their instances."""
        count, senders = len(arrived_us), self._senders
        asked_us, sent_us, began_us, ended_us = ([0.0] * count for _ in Passage._fields)
        free_us, line_us, idle_us = self._free_us, self._line_us, self._idle_us
        transfer_us, latency_us, ready_us = self._transfer_us, self._latency_us, self._ready_us
        slowness, until_us = self._slowness, self._until_us
        asking = [
            (max(arrived_us[n], ready_us[(first + n) % senders]), n)
            for n in range(min(senders, count))
        ]
        heapify(asking)
        while asking:
            now, n = asking[0]
            i = instances[n]
            asked_us[n] = now
            places_us, way_us = free_us[i], latency_us[i]
            place_us = places_us.popleft()
            # Comparisons where a call of max takes longer than all the rest.
            if place_us > now:
                now = place_us
            sent_us[n] = now
            free = line_us[i]
            there_us = line_us[i] = (now if now > free else free) + transfer_us[i]
            begin_us, idle = there_us + way_us, idle_us[i]
            if idle > begin_us:
                begin_us = idle
            began_us[n] = begin_us
            end_us = begin_us + work_us[n] * slowness[i]
            if end_us > until_us[i]:
                end_us = self._across(i, begin_us, work_us[n])
            ended_us[n] = idle_us[i] = end_us
            places_us.append(end_us + way_us)
            following = n + senders
            if following < count:
                came_us = arrived_us[following]
                heapreplace(asking, (now if now > came_us else came_us, following))
            else:
                ready_us[(first + n) % senders] = now
                heappop(asking)
        return Passage(asked_us, sent_us, began_us, ended_us)

    def _across(self, instance: int, now_us: float, work_us: float) -> float:
        """The end of work that is not over before the instance changes its speed."""
        spells = self._spells[instance]
        while True:
            until_us, slowness = spells[0]
            if now_us < until_us:
                left_us = until_us - now_us
                if work_us * slowness <= left_us:
                    break
                work_us -= left_us / slowness
                now_us = until_us
            del spells[0]
        self._until_us[instance], self._slowness[instance] = spells[0]
        return now_us + work_us * slowness
