"""What a benchmark separates, and which axis it rewards (separable-law paper, 5.3 and E.5, Tables 35 and 36)."""

from analyses.profile.analysis import NAME, Parameters, run

__all__ = ["NAME", "Parameters", "run"]
