"""Token sweeps at a fixed model: paired end-point gains and their interaction with source quality (separable-law paper, D.2)."""

from analyses.sweep.analysis import NAME, Parameters, run

__all__ = ["NAME", "Parameters", "run"]
