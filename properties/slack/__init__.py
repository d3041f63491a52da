"""Room ``slack``: its promises, checked on model, simulation and Spark pipeline."""
