"""Tables of the profile: regimes (Table 35), dominant axes (Table 36), and the checks on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from analyses.ceiling.regimes import REGIMES, SCALING
from analyses.profile.axes import AXES, R_DOMINATED, TIE
from analyses.result import Column, Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy.typing as npt

    from analyses.grouping import Factor

    Codes = npt.NDArray[np.int64]
    Rows = npt.NDArray[np.bool_]

MEANINGS = {
    "N_dominated": "share whose accuracy ranges wider over backbone sizes than over input sizes",
    "R_dominated": "share whose accuracy ranges wider over input sizes",
    "tie": "share whose two ranges are equal within 1e-9",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Every trajectory with its regime and axis. Arrays have one entry per trajectory."""

    regime: Codes
    """Position in REGIMES."""
    axis: Codes
    """Position in AXES; -1 where no observation has an input size."""
    backbones: Codes
    """Backbone levels."""
    sizes: Codes
    """Input sizes."""
    change: npt.NDArray[np.float64]
    """Accuracy at its largest minus that at its smallest input size."""
    family: Factor
    by: Mapping[str, Factor]

    @property
    def scaling(self) -> Rows:
        """Trajectories that scaling moves."""
        return np.asarray(self.regime == SCALING)


def combinations(factors: Sequence[Factor], size: int) -> Iterator[tuple[list[str | None], Rows]]:
    """The combinations of labels that occur, in order, with their rows; null comes last."""
    if not factors:
        yield [], np.ones(size, dtype=bool)
        return
    codes = np.stack([factor.codes for factor in factors])
    for found in np.unique(codes, axis=1).T.tolist():
        named = [factor.labels[code] for factor, code in zip(factors, found, strict=True)]
        yield named, (codes == np.array(found)[:, None]).all(axis=0)


def _shares(codes: Codes, names: Sequence[str]) -> dict[str, float | None]:
    counts = np.bincount(codes[codes >= 0], minlength=len(names))
    total = int(counts.sum())
    return {name: int(count) / total if total else None for name, count in zip(names, counts, strict=True)}


def _of(profile: Profile, *, family: bool) -> Iterator[tuple[dict[str, str | None], Rows]]:
    """Rows of a table: combinations of the labels, within each family or over all."""
    factors = ([profile.family] if family else []) + list(profile.by.values())
    names = (["family"] if family else []) + list(profile.by)
    for labels, members in combinations(factors, len(profile.regime)):
        yield dict(zip(names, labels, strict=True)), members


def _labels(profile: Profile, *, family: bool) -> list[Column]:
    named = [Column("family", "family of the series; empty where unknown")] if family else []
    return named + [Column(name, f"{name} of the questions; empty where unknown") for name in profile.by]


def _table(title: str, columns: Sequence[Column], rows: Sequence[Mapping[str, Any]]) -> Table:
    return Table.of(title, columns, {column.name: [row[column.name] for row in rows] for column in columns})


def regimes_table(profile: Profile) -> Table:
    """Shares of the regimes over all families (Table 35)."""
    rows = [
        {**labels, "trajectories": int(members.sum()), **_shares(profile.regime[members], REGIMES)}
        for labels, members in _of(profile, family=False)
    ]
    columns = (
        *_labels(profile, family=False),
        Column("trajectories", "trajectories (question x series)", "count"),
        *(Column(name, f"share of trajectories that are {name}", "share") for name in REGIMES),
    )
    return _table("Regimes: shares of trajectories by mean accuracy", columns, rows)


def profiles_table(profile: Profile) -> Table:
    """Regimes by family, and the dominant axis among scaling_bound trajectories (Table 36)."""
    rows = []
    for labels, members in _of(profile, family=True):
        moved = members & profile.scaling & (profile.axis >= 0)
        rows.append(
            {
                **labels,
                "trajectories": int(members.sum()),
                **_shares(profile.regime[members], REGIMES),
                "scaling_trajectories": int(moved.sum()),
                **_shares(profile.axis[moved], AXES),
            }
        )
    columns = (
        *_labels(profile, family=True),
        Column("trajectories", "trajectories (question x series)", "count"),
        *(Column(name, f"share of trajectories that are {name}", "share") for name in REGIMES),
        Column("scaling_trajectories", "scaling_bound trajectories whose axis is known", "count"),
        *(Column(name, f"of these: {meaning}", "share") for name, meaning in MEANINGS.items()),
    )
    return _table("Profiles: regimes and dominant axis by family", columns, rows)


def sizes_table(profile: Profile) -> Table:
    """The same axes among trajectories with at least two input sizes, and what the others are (E.5)."""
    rows = []
    for labels, members in _of(profile, family=True):
        moved = members & profile.scaling & (profile.axis >= 0)
        several = moved & (profile.sizes >= 2)
        rows.append(
            {
                **labels,
                "scaling_trajectories": int(moved.sum()),
                "one_size": int((moved & (profile.sizes < 2)).sum()),
                "one_backbone": int((moved & (profile.backbones < 2)).sum()),
                "two_sizes": int(several.sum()),
                **_shares(profile.axis[several], AXES),
            }
        )
    columns = (
        *_labels(profile, family=True),
        Column("scaling_trajectories", "scaling_bound trajectories whose axis is known", "count"),
        Column("one_size", "of these: with one input size, so that they cannot be R_dominated", "count"),
        Column("one_backbone", "of these: with one backbone size, so that they cannot be N_dominated", "count"),
        Column("two_sizes", "of these: with at least two input sizes", "count"),
        *(Column(name, f"of the last: {meaning}", "share") for name, meaning in MEANINGS.items()),
    )
    return _table("Two sizes: dominant axis where there are at least two input sizes", columns, rows)


def largest_table(profile: Profile) -> Table:
    """R-dominated trajectories by whether the largest input size helps (E.5)."""
    rows = []
    for labels, members in _of(profile, family=True):
        change = profile.change[members & profile.scaling & (profile.axis == R_DOMINATED)]
        rows.append(
            {
                **labels,
                "R_dominated_trajectories": len(change),
                "less_accurate": int((change < -TIE).sum()),
                "equally_accurate": int((np.abs(change) <= TIE).sum()),
                "more_accurate": int((change > TIE).sum()),
            }
        )
    columns = (
        *_labels(profile, family=True),
        Column("R_dominated_trajectories", "R_dominated scaling_bound trajectories", "count"),
        Column("less_accurate", "of these: less accurate at their largest input size than at their smallest", "count"),
        Column("equally_accurate", "of these: as accurate", "count"),
        Column("more_accurate", "of these: more accurate", "count"),
    )
    return _table("Largest size: whether R_dominated trajectories gain from it", columns, rows)


def headline_of(profile: Profile) -> dict[str, Any]:
    """Shares over all trajectories."""
    moved = profile.scaling & (profile.axis >= 0)
    several = moved & (profile.sizes >= 2)
    return {
        "trajectories": len(profile.regime),
        **_shares(profile.regime, REGIMES),
        "scaling_trajectories": int(moved.sum()),
        **_shares(profile.axis[moved], AXES),
        "one_size": int((moved & (profile.sizes < 2)).sum()),
        **{f"{name}_of_two_sizes": value for name, value in _shares(profile.axis[several], AXES).items()},
    }
