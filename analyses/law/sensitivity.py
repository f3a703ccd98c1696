"""What the law's choices change: narrower box, no release-specific size, exact tokens, a link, another floor (separable-law paper, B.7, B.8)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from analyses.choices import budgets_of, direct_choices
from analyses.exponents.summary import order_of
from analyses.law.fits import by_law, fit_groups
from analyses.law.fitters import Histogram, by_bounded, by_moments
from analyses.laws import BoundedLaw, SeparableLaw
from analyses.resampling import Layout
from analyses.result import Column, Table

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from analyses.cells import CellStudy
    from analyses.law.fits import GroupFits, Points
    from analyses.law.options import FitParameters

NARROW = (0.05, 3.0)
"""The narrower box of B.7."""
PERCENTILES = (25.0, 50.0, 75.0, 90.0)
"""Budgets as percentiles of the costs of a group's cells (E.3)."""
MOVED = 0.02
"""Change of a floor that counts as a move (B.7)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """The fits of one variant."""

    name: str
    fits: GroupFits
    points: Points
    floor: bool = True
    """Whether its floor can be compared with an error floor."""


def variants(study: CellStudy, points: Points, parameters: FitParameters, base: GroupFits) -> Iterator[Variant]:
    """The fits of the options, and of everything that differs from them in one point."""
    yield Variant(name="as asked", fits=base, points=points)
    options: dict[str, Any] = {"reference": study.reference, "optimizer": parameters.optimizer}
    law = parameters.law(study.reference)
    if parameters.box != NARROW:
        narrow = SeparableLaw(alpha=NARROW, beta=NARROW, floor=parameters.floor, **options)
        yield Variant(name=f"box {NARROW[0]:g},{NARROW[1]:g}", fits=fit_groups(points, by_law(narrow)), points=points)
    for floor in ("grid", "continuous"):
        if floor != parameters.floor:
            other = SeparableLaw(alpha=parameters.box, beta=parameters.box, floor=floor, **options)
            yield Variant(name=f"{floor} floor", fits=fit_groups(points, by_law(other)), points=points)
    released = release_specific(study)
    if (released & points.keep).any():
        some = points.only(~released)
        sizes = sorted({f"{size:g}" for size in study.cells.input_size[released].tolist()})
        yield Variant(name=f"without {', '.join(sizes)} px", fits=fit_groups(some, by_law(law)), points=some)
    moments = by_moments(law, Histogram.of(study), study.reference[1])
    yield Variant(name="moment tokens", fits=fit_groups(points, moments), points=points)
    bounded = BoundedLaw(alpha=parameters.box, beta=parameters.box, **options)
    yield Variant(name="bounded", fits=fit_groups(points, by_bounded(bounded, study.cells.n)), points=points, floor=False)


def release_specific(study: CellStudy) -> npt.NDArray[np.bool_]:
    """Cells at the largest input size of a suite of several benchmarks (releases) where only one of them has that size (B.8)."""
    cells = study.cells
    found = np.zeros(len(cells), dtype=bool)
    for suite in set(cells.text["suite"].tolist()):
        members = (cells.text["suite"] == suite) & ~np.isnan(cells.input_size)
        benchmarks = cells.text["benchmark"][members]
        if len(set(benchmarks.tolist())) > 1:
            largest = members & (cells.input_size == cells.input_size[members].max())
            if len(set(cells.text["benchmark"][largest].tolist())) == 1:
                found |= largest
    return found


def sensitivity_table(study: CellStudy, points: Points, parameters: FitParameters, base: GroupFits) -> Table:
    """One row per variant, compared with the fits that were asked for."""
    columns = (
        Column("variant", "what differs from the fits that were asked for"),
        Column("groups", "fitted groups", "count"),
        Column("cells", "their cells", "count"),
        Column("pooled_sse", "sum of squared errors over all cells", "number"),
        Column("rmse", "root mean squared error", "share"),
        Column("alpha_at_upper", "groups with alpha at its upper bound", "count"),
        Column("beta_at_upper", "groups with beta at its upper bound", "count"),
        Column("alpha_greater", "groups with alpha > beta", "count"),
        Column("order_changes", "groups whose order of alpha and beta is not that of the fits asked for", "count"),
        Column("floors_moved", f"groups whose floor differs by more than {MOVED:g}; empty for a floor on the logit scale", "count"),
        Column("choices", "direct selections, four budgets for each group, among the cells that both have", "count"),
        Column("same_choices", "of these, the same cell as by the fits asked for", "count"),
    )
    rows: dict[str, list[Any]] = {column.name: [] for column in columns}
    for variant in variants(study, points, parameters, base):
        fits, weights = variant.fits, variant.points.weights
        used = fits.used
        sse = float((weights[used] * fits.residual[used] ** 2).sum())
        one, other = order_of(base), order_of(fits)
        both = ~(np.isnan(one) | np.isnan(other))
        moved = np.abs(fits.parameters["e"] - base.parameters["e"]) > MOVED + 1e-9
        choices, same = compare_choices(study, base, fits)
        entries = (
            variant.name,
            int(fits.fitted.sum()),
            int(used.sum()),
            sse,
            np.sqrt(sse / weights[used].sum()) if used.any() else None,
            int((fits.bound["alpha"] > 0).sum()),
            int((fits.bound["beta"] > 0).sum()),
            int((other > 0).sum()),
            int((one[both] != other[both]).sum()),
            int(moved.sum()) if variant.floor else None,
            choices,
            same,
        )
        for name, entry in zip(rows, entries, strict=True):
            rows[name].append(entry)
    return Table.of("Sensitivity: what other fits of the same cells change (B.7, B.8)", columns, rows)


def compare_choices(study: CellStudy, base: GroupFits, other: GroupFits) -> tuple[int, int]:
    """Direct selections under four budgets for each group by two fits, and how many of them agree.

    Candidates are the cells that both fits predict and whose cost in FLOP is known; budgets are percentiles of their costs.
    """
    common = base.used & other.used & ~np.isnan(study.cells.flops)
    if not common.any():
        return 0, 0
    layout = Layout.of(study.groups, common)
    cost = np.where(layout.inside, layout.pad(study.cells.flops), np.nan)
    budgets = budgets_of(cost, PERCENTILES)
    one, two = (direct_choices(layout.pad(fits.predicted), cost, layout.inside, budgets) for fits in (base, other))
    made = (one >= 0) & (two >= 0)
    return int(made.sum()), int((one[made] == two[made]).sum())
