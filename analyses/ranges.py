"""Options that are a range of exponents or a reference point, the same in every analysis that has them."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator

from analyses.laws.limits import EXPONENTS

REFERENCES = (1e-6, 1e6), (1e-3, 1e9)
"""Within which a pinned reference N (billions) and R may lie (ours): beyond any model and any image, and powers of it are still floats."""


def _box(box: tuple[float, float]) -> tuple[float, float]:
    lowest, highest = EXPONENTS
    if not lowest <= box[0] < box[1] <= highest:
        message = f"expected two exponents between {lowest:g} and {highest:g}, the lower first, such as 0.05,3"
        raise ValueError(message)
    return box


def _reference(reference: tuple[float, float] | None) -> tuple[float, float] | None:
    (n_low, n_high), (r_low, r_high) = REFERENCES
    if reference is not None and not (n_low <= reference[0] <= n_high and r_low <= reference[1] <= r_high):
        message = f"expected N between {n_low:g} and {n_high:g} billion and R between {r_low:g} and {r_high:g}, such as 6.6,1135"
        raise ValueError(message)
    return reference


Box = Annotated[tuple[float, float], AfterValidator(_box)]
"""Search range of exponents, the lower end first."""
Reference = Annotated[tuple[float, float] | None, AfterValidator(_reference)]
"""N (billions) and R at which amplitudes are stated; None: the geometric means over all cells."""
