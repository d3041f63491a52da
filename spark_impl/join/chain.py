"""A chain on Spark and its store: one epoch after the other.

Rules of this file:

* When a chain is opened, its store settles the past and the caller decides about the future.
* An epoch is committed once: of two runners the second one fails.
* The commit of an epoch holds what the next one needs: the queries and the decision.
* An epoch that was not committed, because it failed or the driver died, runs again from the states
  of the one before.
"""

import logging
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from threading import Lock

from pyspark.sql import DataFrame, SparkSession

from model.vocabulary import JoinConfig
from model.vocabulary.join import REASON_LATE, REASON_SHED, STREAMS, Decision, Predicate
from model.vocabulary.join_load import LoadRules, Measured
from spark_impl.join import queries
from spark_impl.join.control import (
    Clocks,
    begin,
    begin_epoch,
    config_of,
    decide,
    find_in_force,
    mean_utilisation,
    share_of,
)
from spark_impl.join.matching import FreePredicate, ranks_of
from spark_impl.join.stage import check_slots, make_commit, run_epoch
from spark_impl.join.store import STATE, ChainStore, Commit, Load, commit_epoch, name_of, open_store
from spark_impl.join.task import Options, Plan, Summary
from spark_impl.runtime import accounts, packages
from spark_impl.runtime.limits import Limits
from spark_impl.runtime.provenance import note_history
from spark_impl.runtime.storage import Address, InputProblem, Location
from spark_impl.runtime.tables import TableWriter

log = logging.getLogger("straggler.join")


class Chain:
    """A chain with its store.

    On the store of an earlier run it resumes there. The number of workers may differ, new queries
    begin with the next epoch, and missing ones have ended. Raise :class:`InputProblem` if the store
    belongs to another chain, and :class:`EnvironmentProblem` if there are fewer task slots than
    workers.

    The decisions of ``config`` are taken. With ``load``, the chain decides itself.
    """

    def __init__(
        self,
        spark: SparkSession,
        config: JoinConfig,
        store: Address,
        free: Mapping[str, FreePredicate] | None = None,
        options: Options | None = None,
        *,
        load: LoadRules | None = None,
    ) -> None:
        most = config.workers if load is None else load.most
        packages.prepare_workers(spark.sparkContext)
        check_slots(spark, max([most, *(each.workers for each in config.decisions)]))
        self._spark = spark
        self._free = dict(free or {})
        self._options = options or Options()
        self._load = load
        self.store = open_store(store, config)
        self.writer = TableWriter(self.store.root)
        """The writer of its table."""
        self.history: Location | None = None
        """The history from which both streams come, if they come from one."""
        self.limits = Limits()
        """The limits of refused, late and shed rows."""
        self._last = before = self._seen.last()
        self._admitted_before = cache(
            lambda epoch: self._seen.admitted_before(epoch)  # noqa: PLW0108 (the version changes)
        )
        self._changed: set[str] = set()
        if before is not None:
            config = queries.continue_config(
                before.config,
                before.functions,
                config,
                self._free,
                before.epoch + 1,
                before.changed,
            )
            self._changed.update(before.changed)
        self.config = config
        """The configuration, with all queries that the chain ever had, and the epochs of each."""
        self._changing = Lock()
        self._next = self.epochs
        """The first epoch that has not been planned yet: new queries begin there."""
        self._flushing = False
        self._since_ns: int | None = None
        """The moment at which all workers had ended the last epoch, or the first one began."""

    @property
    def _seen(self) -> ChainStore:
        """The store at the version that the next epoch continues."""
        return self.store.at(self.writer.view)

    @property
    def flushed(self) -> bool:
        """Whether the last epoch was a flush; nothing follows it."""
        return self._last is not None and self._last.flush

    @property
    def epochs(self) -> int:
        """Number of committed epochs, which is the number of the next one."""
        return 0 if self._last is None else self._last.epoch + 1

    def submit(self, name: str, predicate: Predicate, function: FreePredicate | None = None) -> int:
        """Add a query (:meth:`spark_impl.join.query.ChainStream.submit`)."""
        with self._changing:
            self._require_open()
            known = dict(self.config.queries)
            if name not in known:
                self.config = queries.submit(self.config, name, predicate, self._next)
                if function is not None:
                    self._free[name] = function
                self._changed.add(name)
            elif (known[name], name in self._free) != (predicate, function is not None):
                msg = f"the query {name!r} has changed: a changed query needs another name"
                raise InputProblem(msg)
            first, last = self.config.span(name)
            if last is not None and last < self._next:
                msg = f"the query {name!r} ended with epoch {last}: a new query needs another name"
                raise InputProblem(msg)
            return first

    def withdraw(self, name: str) -> int:
        """End a query (:meth:`spark_impl.join.query.ChainStream.withdraw`)."""
        with self._changing:
            self._require_open()
            names = [each for each, _ in self.config.queries]
            if name not in names:
                msg = f"there is no query {name!r}; there are {', '.join(names)}"
                raise InputProblem(msg)
            last = self.config.span(name)[1]
            if last is not None and last < self._next:
                return last + 1
            if names == [name] and self.config.span(name)[0] >= self._next:
                msg = f"the query {name!r} has not begun, and a chain needs a query"
                raise InputProblem(msg)
            self.config = queries.withdraw(self.config, name, self._next)
            if all(name != each for each, _ in self.config.queries):  # it never began
                self._free.pop(name, None)
            self._changed.add(name)
            return self._next

    def advance(self, rows: DataFrame | None) -> list[Summary]:
        """Run the next epoch.

        ``rows`` are arrivals with ``stream`` and the columns of inputs; ``None`` is a flush. Raise
        :class:`ChainProblem` if it fails, and :class:`InputProblem` if another chain has run it, or
        what workers wrote is not in the store; then nothing of it counts.
        """
        try:
            note_history(self.writer)
            view = self.writer.look()
            if view.last != self.epochs - 1:
                msg = f"the chain in {self.store.root} was continued elsewhere: open it again"
                raise InputProblem(msg)
            self._require_open()
            self.writer.require_columns(
                each for stream in STREAMS for each in self.store.fields(stream)
            )
            if self._since_ns is None:
                self._since_ns = time.monotonic_ns()
            with self._changing:
                self._next, self._flushing = self.epochs + 1, rows is None
                plan = self._plan(rows)
            summaries = run_epoch(self._spark, rows, plan)
            ended_ns = time.monotonic_ns()
            done = self._conclude(make_commit(plan, summaries), summaries, ended_ns)
            written = {name_of(each.attempt, each.worker): each.rows for each in summaries}
            account = self._account(done, summaries)
            commit_epoch(self.store, self.writer, done, written, *account, self.limits)
            self._last = done
            self._since_ns = ended_ns
            self._report(plan.config)
            return summaries
        finally:
            with self._changing:  # an epoch that failed has to be planned again
                self._next, self._flushing = self.epochs, False

    def _require_open(self) -> None:
        if self.flushed or self._flushing:
            msg = f"the chain in {self.store.root} was flushed, and nothing may follow that"
            raise InputProblem(msg)

    def _plan(self, rows: DataFrame | None) -> Plan:
        config = config_of(self.config, self._decision)
        return Plan(
            config=config,
            free=dict(self._free),
            ranks=ranks_of(config, self.epochs, self._admitted_before),
            store=self.store,
            states=self._seen.states(STATE, self.epochs - 1),
            clocks=begin_epoch(config, Clocks() if self._last is None else self._last.clocks),
            epoch=self.epochs,
            flush=rows is None,
            options=self._options,
        )

    @property
    def _decision(self) -> Decision | None:
        """The decision that is in force in the next epoch."""
        if self._load is not None and self._last is not None and self._last.load is not None:
            return self._last.load.decision
        return find_in_force(self.config, self.epochs)

    def _conclude(self, done: Commit, summaries: Sequence[Summary], ended_ns: int) -> Commit:
        """Return the commit of an epoch with the next decision and the queries as they are now."""
        if self._load is not None and not done.flush:
            measured = self._measure(done, summaries, ended_ns)
            last = self._last.load if self._last is not None else None
            state = begin(self._load, self.config.workers) if last is None else last.state
            done = done._replace(load=Load(measured, *decide(self._load, state, measured)))
        with self._changing:
            # What was submitted during this epoch survives a crash after it.
            told = replace(done.config, queries=self.config.queries, epochs=self.config.epochs)
            functions, changed = (tuple(sorted(each)) for each in (self._free, self._changed))
        return done._replace(config=told, functions=functions, changed=changed)

    def _account(self, done: Commit, summaries: Sequence[Summary]) -> accounts.Counted:
        """Return what an epoch has read, and the numbers of its rows by place."""
        offered = sum(each.offered for each in summaries)
        admitted, pending = sum(done.admitted), sum(done.held)
        if self._last is not None:
            admitted, pending = admitted - sum(self._last.admitted), pending - sum(self._last.held)
        reasons = Counter(done.reasons)
        late, shed = reasons.pop(REASON_LATE, 0), reasons.pop(REASON_SHED, 0)
        history = None if done.flush else self.history
        reading, places = accounts.read_streams(self.writer, history, done.epoch, offered)
        return reading, {
            **places,
            accounts.REFUSED: reasons.total(),
            accounts.LATE: late,
            accounts.SHED: shed,
            accounts.REDELIVERED: sum(each.redelivered for each in summaries),
            accounts.PENDING: pending,
            accounts.ANSWERED: admitted - pending,
        }

    def _measure(self, done: Commit, summaries: Sequence[Summary], ended_ns: int) -> Measured:
        return Measured(
            epoch=done.epoch,
            elapsed_us=max(1, (ended_ns - (self._since_ns or ended_ns)) // 1000),
            busy_us=tuple(each.busy_us for each in summaries),
        )

    def _report(self, taken: JoinConfig) -> None:
        """Log the next decision, if it changes anything."""
        following = self._decision
        if following is None or self._last is None or self._last.load is None:
            return
        before = (taken.workers, taken.block_size, share_of(taken))
        if before != following[1:]:
            log.info(
                "%s: from epoch %d on %d workers, blocks of %d, shedding %.1f%% (utilisation %.2f;"
                " so far %d workers, blocks of %d, shedding %.1f%%)",
                self.store.root,
                *following[:3],
                100 * following.share,
                mean_utilisation(self._last.load.measured),
                *before[:2],
                100 * before[2],
            )
