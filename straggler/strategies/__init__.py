"""Hypothesis strategies of streams, queries and clusters, for tests of your own.

:func:`workloads` draws what a system of a room gets: a query, and the stream that a simulated
network brings. :func:`straggler.strategies.clusters.cases` draws clusters in a named region, such
as ``"late"``, and :mod:`straggler.strategies.queries` the queries of ``pytest properties/``.
:func:`collect` returns examples outside of a property. The extras ``sim`` and ``test`` are needed.
"""

from straggler.strategies.examples import collect, workloads

__all__ = ["collect", "workloads"]
