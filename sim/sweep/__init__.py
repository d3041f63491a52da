"""Sweeps: experiments over grids of settings and seeds, resumable, in parallel (docs/sweeps.md)."""
