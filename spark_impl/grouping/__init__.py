"""Room ``grouping`` on Spark: balanced routing of skewed streams (docs/grouping.md).

* :mod:`spark_impl.grouping.hashes` turns keys into numbers, all at once.
* :mod:`spark_impl.grouping.summaries` counts keys in little space.
* :mod:`spark_impl.grouping.candidates` says where the keys of a window may go.
* :mod:`spark_impl.grouping.router` sends the tuples of one sender there.
* :mod:`spark_impl.grouping.windows` puts senders, windows and times together.
* :mod:`spark_impl.grouping.partials` is what the instances make of them.
"""
