"""What the shared parts ask of a query's configuration."""

from typing import Any, Protocol

from model.vocabulary import WindowSpec


class Query(Protocol):
    """A windowed query; the configurations of rooms ``slack`` and ``watermark`` are."""

    @property
    def size_us(self) -> int:
        """Window length W."""
        ...

    @property
    def slide_us(self) -> int:
        """Window slide s."""
        ...

    @property
    def windows(self) -> WindowSpec:
        """The windows of the query."""
        ...

    @property
    def aggregate(self) -> str:
        """Name of the aggregate."""
        ...

    @property
    def q(self) -> float:
        """Rank of ``quantile``."""
        ...

    @property
    def keyed(self) -> bool:
        """Whether every key has answers of its own."""
        ...

    @property
    def tasks(self) -> int:
        """Number of tasks."""
        ...

    @property
    def dedup(self) -> bool:
        """Whether redeliveries are recognised."""
        ...

    @property
    def feedback(self) -> int:
        """L in microseconds."""
        ...

    @property
    def max_future_us(self) -> int | None:
        """How far a tuple may lie ahead of its arrival."""
        ...

    @property
    def gamma_us(self) -> int:
        """Gamma."""
        ...

    @property
    def max_age(self) -> int:
        """Age trigger in microseconds."""
        ...

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        ...
