"""Error floors by task: the separable law per series, suite and subset (separable-law paper, 3.1 and C.1; Tables 1, 18, 19)."""

from analyses.floors.analysis import NAME, Parameters, run

__all__ = ["NAME", "Parameters", "run"]
