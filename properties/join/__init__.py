"""Room ``join``: claims on the model (docs/join.md)."""
