"""Room ``script``: sensor scripts, their language, and what they are compiled to."""
