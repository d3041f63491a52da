"""Timed simulations: when things happen and what they cost.

The package spans every folder ``sim`` on the search path, so that a room may live in another
distribution.
"""

from pkgutil import extend_path

__path__ = extend_path(__path__, __name__)
