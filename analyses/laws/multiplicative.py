"""The multiplicative law L = e + K N^-alpha R^-beta (separable-law paper, Eqs. 2 and 11)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from analyses.laws.limits import checked
from analyses.laws.power_law import BOX, PowerLaw
from analyses.laws.powers import MULTIPLICATIVE
from analyses.laws.terms import in_units, term

if TYPE_CHECKING:
    from collections.abc import Mapping

    from analyses.laws.floor import Floor


def multiplicative(n: Any, r: Any, e: Any, a: Any, alpha: Any, beta: Any) -> Any:
    """The multiplicative law; a is K."""
    return e + term(term(a, n, alpha), r, beta)


class MultiplicativeLaw(PowerLaw):
    """L(N, R) = e_inf + K N^-alpha R^-beta with K >= 0; K is the parameter a of `Solutions`."""

    name = "multiplicative"
    k = 4
    shapes = ("alpha", "beta")
    amplitudes = ("a",)
    amplitude_of: ClassVar[Mapping[str, str]] = {"alpha": "a", "beta": "a"}
    terms = MULTIPLICATIVE
    points = 24
    starts = 6
    function = staticmethod(multiplicative)

    def __init__(
        self,
        *,
        alpha: tuple[float, float] = BOX,
        beta: tuple[float, float] = BOX,
        floor: str | Floor = "continuous",
        reference: tuple[float, float] | None = None,
    ) -> None:
        """`reference` are the N and R at which K_nr is stated (default: geometric means of what is fitted)."""
        checked(alpha=alpha, beta=beta)
        super().__init__(floor=floor, reference=reference)
        self.alpha, self.beta = alpha, beta

    @property
    def bounds(self) -> Mapping[str, tuple[float, float]]:
        """Search range of each exponent."""
        return {"alpha": self.alpha, "beta": self.beta}

    def physical(self, values: dict[str, float], reference: tuple[float, float]) -> dict[str, float]:
        """e_inf, K_nr at the reference, alpha, beta, and K = K_nr Nref^alpha Rref^beta in the units of N and R."""
        alpha, beta = values["alpha"], values["beta"]
        k = in_units(in_units(values["a"], reference[0], alpha), reference[1], beta)
        return {"e_inf": values["e"], "K_nr": values["a"], "alpha": alpha, "beta": beta, "K": k}
