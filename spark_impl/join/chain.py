"""A chain on Spark and its store: one epoch after the other.

Rules of this file:

* When a chain is opened, its store settles the past and the caller decides about the future.
* An epoch is committed once: of two runners the second one fails.
* The commit of an epoch holds what the next one needs: the queries and the decision.
* An epoch that was not committed, because it failed or the driver died, runs again from the states
  of the one before.
* An epoch has the queries that the register has when it begins (:mod:`spark_impl.join.register`).
"""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession

from model.vocabulary import JoinConfig
from model.vocabulary.join import REASON_LATE, REASON_SHED, STREAMS, Decision
from model.vocabulary.join_load import LoadRules, Measured
from spark_impl.join import register
from spark_impl.join.control import (
    Clocks,
    begin,
    begin_epoch,
    config_of,
    decide,
    find_in_force,
)
from spark_impl.join.crew import Crew
from spark_impl.join.given import used_columns
from spark_impl.join.matching import Counts, FreePredicate, ranks_of
from spark_impl.join.register import Register
from spark_impl.join.stage import check_slots, make_commit
from spark_impl.join.store import STATE, ChainStore, Commit, Load, commit_epoch, name_of, open_store
from spark_impl.join.task import Options, Plan, Summary
from spark_impl.runtime import accounts, packages
from spark_impl.runtime.limits import Limits
from spark_impl.runtime.provenance import note_history
from spark_impl.runtime.storage import Address, InputProblem, Location
from spark_impl.runtime.tables import TableWriter


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
        packages.prepare_workers(spark.sparkContext)
        most = config.workers if load is None else load.most
        self._most = max([most, *(each.workers for each in config.decisions)])
        """Largest number of workers."""
        check_slots(spark, self._most)
        self._spark = spark
        self._crew = Crew(spark, self._most)
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
        self._last = self._seen.last()
        self._admitted: dict[int, Counts] = {}
        """Tuples admitted before an epoch, by epoch."""
        self._given = self.config = config
        """The configuration, with all queries that the chain ever had, and the epochs of each."""
        self.absent: tuple[tuple[str, str], ...] = ()
        """Streams and built-in columns that the inputs lack."""
        self._is_noted = False
        """True if the register has what this chain was opened with."""
        self._begun: Register
        """The register as it was when the last epoch began."""
        self._take(self._opened(register.read(self.store, self._last)))
        self._since_ns: int | None = None
        """The moment at which all workers had ended the last epoch, or the first one began."""

    @property
    def _seen(self) -> ChainStore:
        """The store at the version that the next epoch continues."""
        return self.store.at(self.writer.view)

    @property
    def flushed(self) -> bool:
        """Return whether the last epoch was a flush; nothing follows it."""
        return self._last is not None and self._last.flush

    @property
    def epochs(self) -> int:
        """Number of committed epochs, which is the number of the next one."""
        return 0 if self._last is None else self._last.epoch + 1

    def hire(self) -> Crew:
        """Return the workers of the next epochs, which are new ones."""
        self._crew.close()
        self._crew = Crew(self._spark, self._most)
        return self._crew

    def close(self) -> None:
        """End the workers; a later epoch has new ones."""
        self._crew.close()

    def note(self) -> None:
        """Enter into the register what the chain was opened with, unless that is done."""
        if not self._is_noted and not self.flushed:
            self._take(register.change(self.store, self._last, self._opened))
            if {*used_columns(self.config, self.epochs)} & {*self.absent}:
                raise self._moved_on()  # opening it again says which column is absent
            self._is_noted = True

    def _change(self, how: Callable[[Register], Register]) -> None:
        """Change the register, which has what the chain was opened with."""
        self._take(
            register.change(self.store, self._last, lambda known: how(known or self._register))
        )

    def _opened(self, known: Register | None) -> Register:
        given = Register(
            self._given,
            self.epochs,
            functions=tuple(sorted(self._free)),
            absent=self.absent,
            history=self._options.history,
        )
        return register.opened(known, self._last, given)

    def _take(self, found: Register) -> None:
        asked = found.config
        try:
            self.config = replace(self.config, queries=asked.queries, epochs=asked.epochs)
        except ValueError as error:  # a query uses a column that another process has added
            raise self._moved_on() from error
        self._register = found

    def advance(
        self, rows: DataFrame | None, is_awaited: Callable[[], bool] = lambda: True
    ) -> list[Summary]:
        """Run the next epoch.

        ``rows`` are arrivals with ``stream`` and the columns of inputs; ``None`` is a flush. Raise
        :class:`QueryProblem` if it fails or is not awaited any more, and :class:`InputProblem` if
        another chain has run it, or what workers wrote is not in the store; then nothing of it
        counts.
        """
        note_history(self.writer)
        view = self.writer.look()
        if view.last != self.epochs - 1:
            raise self._moved_on()
        self._register._replace(flush=self.flushed).require_open(self.store.root)
        self.writer.require_columns(
            each for stream in STREAMS for each in self.store.fields(stream)
        )
        if self._since_ns is None:
            self._since_ns = time.monotonic_ns()
        try:
            plan = self._begin(rows)
            summaries = self._crew.run(rows, plan, is_awaited)
            ended_ns = time.monotonic_ns()
            done = self._conclude(make_commit(plan, summaries), summaries, ended_ns)
            written = {name_of(each.attempt, each.worker): each.rows for each in summaries}
            account = self._account(done, summaries)
            commit_epoch(self.store, self.writer, done, written, *account, self.limits)
        except BaseException:
            self._crew.close()
            with suppress(InputProblem, OSError):
                self._change(lambda known: register.taken_back(known, self.epochs))
            raise
        self._last = done
        self._since_ns = ended_ns
        with suppress(InputProblem, OSError):  # old files harm nobody
            register.tidy(self.store)
        return summaries

    def _begin(self, rows: DataFrame | None) -> Plan:
        """Begin the next epoch, with the queries that the register has now."""
        self.note()
        flush = rows is None
        self._change(lambda known: register.begun(known, self.epochs, flush=flush))
        self._begun = self._register
        if not self._free.keys() >= {*self._begun.functions}:
            raise self._moved_on()  # with functions of another process
        return self._plan(rows)

    def _admitted_before(self, epoch: int) -> Counts:
        if epoch not in self._admitted:
            self._admitted[epoch] = self._seen.admitted_before(epoch)
        return self._admitted[epoch]

    def _moved_on(self) -> InputProblem:
        return InputProblem(
            f"the chain in {self.store.root} was continued elsewhere: open it again"
        )

    def _plan(self, rows: DataFrame | None) -> Plan:
        config = config_of(self.config, self._decision)
        # A function whose query never began is still there, and another query may have its name.
        names = {name for name, _ in config.queries} & {*self._begun.functions}
        return Plan(
            config=config,
            free={name: each for name, each in self._free.items() if name in names},
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
        """Return the commit of an epoch with its queries and the next decision."""
        if self._load is not None and not done.flush:
            measured = self._measure(done, summaries, ended_ns)
            last = self._last.load if self._last is not None else None
            state = begin(self._load, self.config.workers) if last is None else last.state
            done = done._replace(load=Load(measured, *decide(self._load, state, measured)))
        of = self._begun
        return done._replace(
            functions=of.functions, changed=of.changed, selects=of.selects, absent=self.absent
        )

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
