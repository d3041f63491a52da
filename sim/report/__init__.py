"""Results of sweeps as one self-contained page."""
