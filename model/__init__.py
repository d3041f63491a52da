"""Reference models: pure and untimed, the statement of what must be true.

The package spans every folder ``model`` on the search path, so that a room may lie elsewhere.
"""

from pkgutil import extend_path

__path__ = extend_path(__path__, __name__)
