"""Words of room ``join``: the chain's configuration, its results, and the steps of its traces.

Source: S2J, a chain of join workers that exchange blocks of tuples by the protocol MP-2PF.
``docs/join.md`` is the specification; names here follow it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, NamedTuple

from model.vocabulary.join_predicates import BUILT_IN as BUILT_IN
from model.vocabulary.join_predicates import OPERATORS as OPERATORS
from model.vocabulary.join_predicates import PREDICATES as PREDICATES
from model.vocabulary.join_predicates import STREAMS as STREAMS
from model.vocabulary.join_predicates import And as And
from model.vocabulary.join_predicates import Apart as Apart
from model.vocabulary.join_predicates import Band as Band
from model.vocabulary.join_predicates import Between as Between
from model.vocabulary.join_predicates import (
    Columns,
    check_columns,
    check_predicate,
    kinds_of,
    predicate_from_json,
    predicate_to_json,
)
from model.vocabulary.join_predicates import Equi as Equi
from model.vocabulary.join_predicates import Ineq as Ineq
from model.vocabulary.join_predicates import Predicate as Predicate
from model.vocabulary.join_predicates import R as R
from model.vocabulary.join_predicates import S as S
from model.vocabulary.join_predicates import Where as Where
from model.vocabulary.settings import (
    JsonObject,
    PlainData,
    Setting,
    Settings,
    is_int,
    is_number,
    is_text,
    one_of,
    require,
)

NO_WATERMARK_US = -(1 << 63)
"""Watermark of a stream that has none (yet): below every event time."""
END_US = (1 << 63) - 1
"""Watermark of a stream that has ended: above every event time."""

REASON_NOT_FINITE = "value is not a finite number"
REASON_LATE = "event time lies below the watermark of the stream"
REASON_SHED = "shed, because utilisation was too high"

# -------------------------------------------------------------------------------- configuration

Span = tuple[int, int | None]
"""First and last epoch whose tuples a query pairs; ``None``: no last one."""
ALWAYS: Span = (0, None)


class Decision(NamedTuple):
    """Workers, blocks and shedding of a chain from an epoch on, until the next decision."""

    epoch: int
    workers: int
    block_size: int
    """Most tuples of a block."""
    share: float
    """Share of the arrivals that is shed."""


@dataclass(frozen=True, slots=True)
class JoinConfig(Settings):
    """Settings of a chain of join workers.

    Raise ``ValueError`` with one sentence that names the offending value.

    Examples:
        >>> JoinConfig.of(window="10 seconds", queries=(("close", close),)).window_us
        10000000
    """

    window_us: Annotated[
        int,
        Setting("W: event times of a pair differ by at most this", at_least=0, at_most=END_US),
    ]
    queries: tuple[tuple[str, Predicate], ...]
    """Names and predicates; all queries share the chain."""
    workers: Annotated[int, Setting("m, workers of the chain", above=0)] = 2
    block_size: Annotated[int, Setting("zeta, most tuples of a block", above=0)] = 64
    credit: Annotated[
        int, Setting("most unacknowledged blocks, a boundary and direction", above=0)
    ] = 4
    lateness_us: Annotated[
        int | None,
        Setting(
            "lag of a stream's watermark behind its largest event time (no watermark)",
            at_least=0,
            at_most=END_US,
            none="never",
        ),
    ] = None
    idle_after_us: Annotated[
        int | None,
        Setting(
            "how far a stream may advance while the other is silent, before the other's watermark"
            " follows (it never does)",
            above=0,
            none="never",
        ),
    ] = None
    epochs: tuple[tuple[str, int, int | None], ...] = ()
    """Name of a query, first and last epoch whose tuples it pairs (``None``: no last one).

    A query without an entry pairs the tuples of all epochs.
    """
    decisions: tuple[Decision, ...] = ()
    """Decisions about workers, block size and shedding, by increasing epoch.

    Until the first one, ``workers`` and ``block_size`` hold and nothing is shed.
    """
    r_columns: Columns = ()
    """Columns of R beside key, value and event time: names and kinds."""
    s_columns: Columns = ()
    """Columns of S."""

    def _check_together(self) -> None:
        require(len(self.queries) > 0, "queries", self.queries, "at least one")
        if self.idle_after_us is not None and self.lateness_us is None:
            msg = f"idle_after_us is {self.idle_after_us}; without lateness_us it must be None"
            raise ValueError(msg)
        names = dict[str, None]()  # in order, for a sentence
        for name, predicate in self.queries:
            good = is_text(name) and name != ""
            require(good, "the name of a query", name, "a text that is not empty")
            require(name not in names, "the name of a query", name, "given once")
            names[name] = None
            require(isinstance(predicate, PREDICATES), f"query {name!r}", predicate, "a predicate")
        self._check_columns()
        limited = set[str]()
        for name, first, last in self.epochs:
            if not (is_text(name) and name in names):
                require(False, "the query of epochs", name, one_of(names))
            require(name not in limited, "the query of epochs", name, "named once")
            limited.add(name)
            good = is_int(first) and first >= 0
            require(good, f"the first epoch of {name!r}", first, "an integer, at least 0")
            good = last is None or (is_int(last) and last >= first)
            require(good, f"the last epoch of {name!r}", last, f"an integer, at least {first}")
        self._check_decisions()

    def _check_columns(self) -> None:
        check_columns("r_columns", self.r_columns)
        check_columns("s_columns", self.s_columns)
        kinds = self.kinds()
        for name, predicate in self.queries:
            check_predicate(name, predicate, kinds[R], kinds[S])

    def _check_decisions(self) -> None:
        after = 0
        for epoch, workers, block_size, share in self.decisions:
            good = is_int(epoch) and epoch >= after
            require(good, "the epoch of a decision", epoch, f"an integer, at least {after}")
            for name, value in (("workers", workers), ("block_size", block_size)):
                good = is_int(value) and value >= 1
                require(good, f"{name} from epoch {epoch} on", value, "an integer, at least 1")
            good = is_number(share) and 0 <= share <= 1
            require(good, f"the share from epoch {epoch} on", share, "a number from 0 to 1")
            after = epoch + 1

    def kinds(self) -> dict[str, dict[str, str]]:
        """Return the kinds of all columns by name, by stream."""
        return {R: kinds_of(self.r_columns), S: kinds_of(self.s_columns)}

    def columns(self, stream: str) -> Columns:
        """Return the columns of a stream beside those that every stream has."""
        return self.r_columns if stream == R else self.s_columns

    def span(self, query: str) -> Span:
        """Return the first and last epoch whose tuples the query pairs; ``None``: no last one."""
        return self.spans().get(query, ALWAYS)

    def spans(self) -> dict[str, Span]:
        """Return the entries of ``epochs``, by the name of the query."""
        return {name: (first, last) for name, first, last in self.epochs}

    def to_json(self) -> dict[str, PlainData]:
        """Return plain data; ``JoinConfig.from_json`` reads it back."""
        data = Settings.to_json(self)
        data["queries"] = [[name, predicate_to_json(predicate)] for name, predicate in self.queries]
        data["epochs"] = [list(each) for each in self.epochs]
        if self.idle_after_us is None:
            del data["idle_after_us"]
        del data["decisions"]
        if self.decisions:
            data["decisions"] = [list(each) for each in self.decisions]
        for name in ("r_columns", "s_columns"):
            columns = data.pop(name)
            if columns:
                data[name] = [list(column) for column in columns]
        return data

    @classmethod
    def _decoded(cls, data: JsonObject) -> dict[str, PlainData]:
        try:
            queries = tuple((name, predicate_from_json(text)) for name, text in data["queries"])
        except (TypeError, ValueError) as error:
            msg = f"queries is {data['queries']!r}; it must be pairs of a name and a predicate"
            raise ValueError(msg) from error
        try:
            epochs = tuple((name, first, last) for name, first, last in data.get("epochs", ()))
        except (TypeError, ValueError) as error:
            msg = f"epochs is {data['epochs']!r}; it must be names with a first and last epoch"
            raise ValueError(msg) from error
        try:
            decisions = tuple(Decision(*each) for each in data.get("decisions", ()))
        except TypeError as error:
            msg = (
                f"decisions is {data['decisions']!r}; "
                "it must be lists of epoch, workers, block size and share"
            )
            raise ValueError(msg) from error
        columns = {name: _columns(name, data.get(name, ())) for name in ("r_columns", "s_columns")}
        return {**data, **columns, "queries": queries, "epochs": epochs, "decisions": decisions}


def _columns(setting: str, data: PlainData) -> Columns:
    try:
        return tuple((name, kind) for name, kind in data)
    except (TypeError, ValueError) as error:
        msg = f"{setting} is {data!r}; it must be pairs of a name and a kind"
        raise ValueError(msg) from error


# ------------------------------------------------------------------------------ results


class Match(NamedTuple):
    """A pair that matches a query."""

    query: str
    r_id: int
    """``source_id`` of the tuple of R."""
    s_id: int
    batch: int
    """Epoch that emitted the pair. It depends on timing and is not compared."""


class Rejected(NamedTuple):
    """An arrival that is in no pair, with the reason."""

    stream: str
    seq: int
    source_id: int
    reason: str


# ---------------------------------------------------------------------- steps of the protocol
# Every worker records these steps on request. ``number`` counts the steps of a worker within an
# epoch, 0, 1, 2, ... The rank of a tuple counts the admitted tuples of its stream, 0, 1, 2, ...


class Admit(NamedTuple):
    """Consecutive admissions of one stream at its source worker."""

    epoch: int
    worker: int
    number: int
    stream: str
    first: int
    """Rank of the first tuple."""
    tuples: int
    pairs: int
    """Pairs with these tuples that were found, over all queries."""


class Forward(NamedTuple):
    """A worker took a block out of its store, kept a copy and sent the block."""

    epoch: int
    worker: int
    number: int
    stream: str
    block: int
    """Number 1, 2, 3, ... within epoch, boundary and stream."""
    seen: int
    """Blocks of the other stream that came over this boundary before."""
    first: int
    """Rank of the first tuple; -1 for an empty block."""
    last: int
    tuples: int
    wm_us: int
    """Watermark that the block carries."""


class Receive(NamedTuple):
    """A worker joined, stored and acknowledged a block."""

    epoch: int
    worker: int
    number: int
    stream: str
    block: int
    copies: int
    """Copies of blocks that the block was joined with; 0 for a block of S."""
    pairs: int
    """Pairs with tuples of the block, over all queries."""
    sent: int
    """Field of the acknowledgement: blocks of the other stream sent over this boundary before."""
    size: int
    """Field of the acknowledgement: tuples of this stream in the store afterwards."""


class Ack(NamedTuple):
    """A worker took the acknowledgement of a block."""

    epoch: int
    worker: int
    number: int
    stream: str
    """Stream of the block that this worker had sent."""
    block: int


class Drop(NamedTuple):
    """A worker removed the stored tuples of a stream with event times below the horizon."""

    epoch: int
    worker: int
    number: int
    stream: str
    horizon_us: int
    tuples: int


class Quiet(NamedTuple):
    """A worker finished its part of an epoch, with the tuples that it holds."""

    epoch: int
    worker: int
    number: int
    r_held: int
    s_held: int
    r_wm_us: int
    s_wm_us: int


RESULTS: tuple[type, ...] = (Match, Rejected)
PROTOCOL: tuple[type, ...] = (Admit, Forward, Receive, Ack, Drop, Quiet)
WORDS: tuple[type, ...] = (*RESULTS, *PROTOCOL)
ANSWERS: Mapping[type, tuple[str, ...]] = {
    Match: ("query", "r_id", "s_id"),
    Rejected: ("stream", "seq", "source_id", "reason"),
}
"""Fields of answers: the pairs, and the arrivals that are in no pair."""
