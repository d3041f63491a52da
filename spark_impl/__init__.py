"""PySpark pipelines: what really runs, written without a look at the models."""
