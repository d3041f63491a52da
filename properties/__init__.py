"""Promises checked on model, simulation and Spark, and the ``straggler`` command line.

The package spans every folder ``properties`` on the search path, so that a room may lie elsewhere.
"""

from pkgutil import extend_path

__path__ = extend_path(__path__, __name__)
