"""PySpark pipelines: the code that really runs, written without a look at the models.

The package spans every folder ``spark_impl`` on the search path, so that a room may lie elsewhere.
"""

from pkgutil import extend_path

__path__ = extend_path(__path__, __name__)
