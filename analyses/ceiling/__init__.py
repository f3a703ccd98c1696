"""The question-level analysis: which questions does scaling not move? (separable-law paper, 3.2, C.2 and the head of C.3)."""

from analyses.ceiling.analysis import NAME, Parameters, run

__all__ = ["NAME", "Parameters", "run"]
