"""Properties of what all pipelines on Spark share: histories, stores, locks and addresses."""
