"""Results of sweeps as one page that needs nothing but itself."""
