"""``make soak``: all rooms on real Spark under seeded faults, checked after every recovery."""
