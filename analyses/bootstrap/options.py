"""Options of the bootstrap, and the laws by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Protocol

from pydantic import Field, field_validator, model_validator

from analyses.cells import CellParameters
from analyses.executor import LOCAL
from analyses.laws import BoundedLaw, CoupledLaw, MultiplicativeLaw, SeparableLaw
from analyses.ranges import Box  # noqa: TC001 - pydantic reads annotations
from analyses.resampling import Law

if TYPE_CHECKING:
    from analyses.laws import Solutions

LawName = Literal["separable", "bounded", "multiplicative", "coupled"]
FormName = Literal["separable", "multiplicative", "coupled"]
WEIGHTS = {"equal": ("equal",), "precision": ("precision",), "both": ("equal", "precision")}
SHAPES = {
    "separable": ("alpha", "beta"),
    "bounded": ("alpha", "beta"),
    "multiplicative": ("alpha", "beta"),
    "coupled": ("alpha", "beta", "gamma"),
}
"""Exponents of each law."""
NAMES = {"e": "e_inf", "a": "A_n", "b": "B_r", "c": "C_nr"}
"""Parameters of laws as the paper writes them."""


class SharedLaw(Law, Protocol):
    """What a comparison asks of a law."""

    def fit_shared(self, n: Any, r: Any, error: Any, weights: Any = None) -> Solutions:
        """Problems x groups x cells, the exponents of a problem shared by its groups."""


class Parameters(CellParameters):
    """Options of the bootstrap."""

    replicates: int = Field(default=500, ge=2, description="resamples of the image clusters")
    resampling: Literal["ordinary", "positive"] = Field(
        default="ordinary", description="ordinary: clusters drawn with replacement; positive: Dirichlet weights, no cluster left out"
    )
    law: LawName = Field(default="separable", description="law that is refitted to each group")
    pair: tuple[FormName, ...] = Field(
        default=(), description="two laws with exponents that all groups share, compared by objective and BIC, instead of --law"
    )
    floor: Literal["grid", "continuous", "free"] | None = Field(
        default=None,
        description="error floor: grid (55 values), continuous (0.001 to 0.999), free (any intercept); default: grid, with --pair free",
    )
    box: Box = Field(default=(0.05, 10.0), description="search range of every exponent, such as 0.05,3")
    weights: Literal["equal", "precision", "both"] | None = Field(
        default=None,
        description="weights of cells: equal, in inverse proportion to their cluster variance, or both; default: equal, with --pair both",
    )
    attempts: Literal["all", "last"] = Field(
        default="all", description="all: repeated attempts count as the cells count them; last: the last scored one of each question"
    )
    level: float = Field(default=0.95, gt=0, lt=1, description="level of the percentile intervals")
    executor: str = Field(default=LOCAL, description="local, or dask://HOST:PORT", exclude=True)

    @field_validator("pair")
    @classmethod
    def _two(cls, pair: tuple[FormName, ...]) -> tuple[FormName, ...]:
        if pair and (len(pair) != 2 or pair[0] == pair[1]):
            message = "expected two different laws, such as separable,coupled"
            raise ValueError(message)
        return pair

    @model_validator(mode="after")
    def _bounded_has_its_floor(self) -> Parameters:
        if self.law == "bounded" and not self.pair and self.floor is not None:
            message = "the bounded law has a floor of its own (logit 0.001): --floor does not go with it"
            raise ValueError(message)
        return self

    @property
    def weightings(self) -> tuple[str, ...]:
        """Weights to fit with."""
        return WEIGHTS[self.weights or ("both" if self.pair else "equal")]

    def law_of(self, name: str) -> Law:
        """A law by name, with the options' floor and search range."""
        return BoundedLaw(alpha=self.box, beta=self.box) if name == "bounded" else self.shared_law_of(name)

    def shared_law_of(self, name: str) -> SharedLaw:
        """A law whose exponents groups may share."""
        floor = self.floor or ("free" if self.pair else "grid")
        if name == "coupled":
            return CoupledLaw(alpha=self.box, beta=self.box, gamma=self.box, floor=floor)
        if name == "multiplicative":
            return MultiplicativeLaw(alpha=self.box, beta=self.box, floor=floor)
        return SeparableLaw(alpha=self.box, beta=self.box, floor=floor)


def shown(law: str, name: str) -> str:
    """How tables call a parameter of a law."""
    return "K_nr" if (law, name) == ("multiplicative", "a") else NAMES.get(name, name)
