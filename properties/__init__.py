"""The promises, checked on real Spark with SimPy as the reference: ``pytest properties/``."""
