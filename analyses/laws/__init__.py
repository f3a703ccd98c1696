"""Functional forms of inference error over model size N and visual tokens R, and their fitting: NumPy and SciPy, no database."""

from analyses.laws.axes import MomentAxis
from analyses.laws.ces import CESLaw
from analyses.laws.coupled import CoupledLaw
from analyses.laws.criteria import aic, bic, r2
from analyses.laws.fit import Fit
from analyses.laws.floor import CONTINUOUS, FREE, GRID, Floor
from analyses.laws.multiplicative import MultiplicativeLaw
from analyses.laws.pnorm import PNormLaw
from analyses.laws.separable import BoundedLaw, SeparableLaw
from analyses.laws.solutions import Solutions
from analyses.laws.three import ThreeAxisLaw

__all__ = [
    "CONTINUOUS",
    "FREE",
    "GRID",
    "BoundedLaw",
    "CESLaw",
    "CoupledLaw",
    "Fit",
    "Floor",
    "MomentAxis",
    "MultiplicativeLaw",
    "PNormLaw",
    "SeparableLaw",
    "Solutions",
    "ThreeAxisLaw",
    "aic",
    "bic",
    "r2",
]
