"""Fits of the candidate forms to the same cells: shapes shared by all groups, or a group's own. No database."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from analyses.laws import CESLaw, CoupledLaw, MultiplicativeLaw, PNormLaw, SeparableLaw, criteria
from analyses.laws.pnorm import BOX as PNORM_BOX
from analyses.progress import report
from analyses.result import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from analyses.cells import Groups
    from analyses.laws import Solutions
    from analyses.resampling import Batch, Layout

Form = Literal["separable", "multiplicative", "coupled", "ces", "pnorm"]
FORMS: tuple[Form, ...] = ("separable", "multiplicative", "coupled", "ces", "pnorm")
BASE = "separable"
OWN = ("separable", "multiplicative")
"""Forms that are also fitted with shapes of each group's own (Table 9)."""
COEFFICIENTS = {"separable": 3, "multiplicative": 2, "coupled": 4, "ces": 2, "pnorm": 3}
"""Parameters of a group beside the shapes that groups share."""
OWN_PARAMETERS = 5
"""Parameters of a group's own separable fit."""
SAME_LEVEL = 1e-3
"""An axis varies when its largest value exceeds its smallest by more than this part: a lost answer moves a mean of R by less (ours)."""
CONSTANT = 1e-12
"""Errors that differ by less are constant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FormFit:
    """A form fitted to all groups of a batch."""

    form: str
    """Such as separable, or pnorm_exact."""
    solutions: Solutions
    predicted: npt.NDArray[np.float64]
    """Groups x cells."""
    sse: npt.NDArray[np.float64]
    """Weighted, of each group."""
    r2: npt.NDArray[np.float64]
    """Of each group, about its weighted mean; NaN where its error does not vary."""
    pooled_r2: float
    """Of all cells, about their weighted mean."""
    coefficients: int
    """Parameters of a group, not counting shapes that groups share."""
    k: int
    """Parameters of all groups together."""
    n: int
    """Cells."""

    @property
    def total(self) -> float:
        """Sum of squared errors over all cells."""
        return float(self.sse.sum())

    @property
    def bic(self) -> float:
        """Gaussian BIC of all cells."""
        return float(criteria.bic(self.total, self.n, self.k))

    @property
    def aic(self) -> float:
        """Gaussian AIC of all cells."""
        return float(criteria.aic(self.total, self.n, self.k))


def laws_of(form: str, box: tuple[float, float], floor: str) -> dict[str, Any]:
    """The laws that a form stands for, by name; the p-norm has two inner fitters and exponents of at most 3, as the paper has them."""
    if form == "coupled":
        return {form: CoupledLaw(alpha=box, beta=box, gamma=box, floor=floor)}
    if form == "ces":
        return {form: CESLaw(floor=floor)}
    if form == "pnorm":
        narrow = (min(box[0], PNORM_BOX[1]), min(box[1], PNORM_BOX[1]))
        return {
            "pnorm": PNormLaw(alpha=narrow, beta=narrow, inner="paper"),
            "pnorm_exact": PNormLaw(alpha=narrow, beta=narrow, inner="exact"),
        }
    return {form: {"separable": SeparableLaw, "multiplicative": MultiplicativeLaw}[form](alpha=box, beta=box, floor=floor)}


def shared_fits(batch: Batch, forms: Sequence[str], box: tuple[float, float], floor: str) -> list[FormFit]:
    """Each form with shapes that all groups of the (one) replicate share; separable first, whether it was asked for or not."""
    arrays = batch.n[0], batch.r[0], batch.error[0], batch.weights[0]
    chosen = (BASE, *(form for form in FORMS if form in forms and form != BASE))
    laws = {name: law for form in chosen for name, law in laws_of(form, box, floor).items()}
    fits: list[FormFit] = []
    for name, law in laws.items():
        report("forms", len(fits), len(laws))
        solutions = law.fit_shared(*arrays)
        coefficients = law.k - len(solutions.bounds)
        fits.append(_measured(name, solutions, arrays, coefficients, coefficients * len(solutions) + len(solutions.bounds)))
    report("forms", len(fits), len(laws))
    return fits


def own_fits(batch: Batch, box: tuple[float, float], floor: str) -> list[FormFit]:
    """Separable and multiplicative with shapes of each group's own."""
    arrays = batch.n[0], batch.r[0], batch.error[0], batch.weights[0]
    fits = []
    for form in OWN:
        for name, law in laws_of(form, box, floor).items():
            solutions = law.fit_many(*arrays)
            fits.append(_measured(name, solutions, arrays, law.k, law.k * len(solutions)))
    return fits


def _measured(form: str, solutions: Solutions, arrays: tuple[npt.NDArray[np.float64], ...], coefficients: int, k: int) -> FormFit:
    n, r, error, weights = arrays
    predicted = solutions.predict(n, r)
    used = weights > 0
    return FormFit(
        form=form,
        solutions=solutions,
        predicted=predicted,
        sse=(weights * (error - predicted) ** 2).sum(axis=1),
        r2=np.array([criteria.r2(*(values[row][used[row]] for values in (error, predicted, weights))) for row in range(len(error))]),
        pooled_r2=criteria.r2(error[used], predicted[used], weights[used]),
        coefficients=coefficients,
        k=k,
        n=int(used.sum()),
    )


def unfit(groups: Groups, layout: Layout, batch: Batch, least: int) -> dict[int, str]:
    """Groups (numbers in `groups`) that cannot be compared, and why: fewer cells than `least`, one level on an axis, a constant error."""
    found = {}
    rows = {int(group): row for row, group in enumerate(layout.group)}
    for group in range(len(groups)):
        row = rows.get(group)
        inside = batch.weights[0, row] > 0 if row is not None else np.zeros(0, dtype=bool)
        count = int(inside.sum())
        if row is None or count == 0:
            found[group] = "no cell has all that a law needs"
        elif count < least:
            found[group] = f"{counted(count, 'cell')} {'is' if count == 1 else 'are'} fewer than the {least} parameters of a group"
        elif _ratio(batch.n[0, row][inside]) <= 1 + SAME_LEVEL:
            found[group] = "all cells have one number of parameters N"
        elif _ratio(batch.r[0, row][inside]) <= 1 + SAME_LEVEL:
            found[group] = "all cells have one number of visual tokens R"
        elif np.ptp(batch.error[0, row][inside]) <= CONSTANT:
            found[group] = "the error does not vary"
    return found


def _ratio(values: npt.NDArray[np.float64]) -> float:
    return float(values.max() / values.min())
