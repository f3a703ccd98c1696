"""The tables of a comparison: sides, pairs, and differences by label."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from analyses.compare.pairs import smallest_detectable
from analyses.paired import mcnemar_exact, t_of_moments
from analyses.result import Column, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from analyses.compare.pairs import Pairs, Sides
    from analyses.compare.sides import Side

    Whole = npt.NDArray[np.int64]
    Floats = npt.NDArray[np.float64]

ALPHA = 0.05
INTERVAL = "of its 95% interval (percentiles of the image-cluster bootstrap)"


def p_values(pairs: Pairs, test: str) -> tuple[Floats, list[str]]:
    """Two-sided p of each pair and the test that gave it; NaN where there is nothing to test."""
    if test == "cluster":
        p = t_of_moments(pairs.difference, pairs.variance * pairs.clusters, pairs.clusters)[1]
        return p, ["cluster"] * len(p)
    exact = pairs.binary & (test != "t")
    student = t_of_moments(pairs.difference, pairs.spread, pairs.n)[1]
    p = np.where(exact, mcnemar_exact(pairs.wins, pairs.losses), student)
    return np.where(pairs.n > 0, p, np.nan), ["mcnemar" if one else "t" for one in exact.tolist()]


def models_table(sides: Sequence[Side], of_sides: Sides, whole: Pairs, pairs: tuple[Whole, Whole], adjusted: Floats) -> Table:
    """One row per side, in the order of the call."""
    better, worse = np.zeros(len(sides), dtype=np.int64), np.zeros(len(sides), dtype=np.int64)
    decided = adjusted < ALPHA
    for winners, losers, sign in ((pairs[0], pairs[1], 1), (pairs[1], pairs[0], -1)):
        won = decided & (sign * whole.difference > 0)
        better += np.bincount(winners[won], minlength=len(sides))
        worse += np.bincount(losers[won], minlength=len(sides))
    columns = [
        Column("place", "place in the call, for --pair", "count"),
        Column("side", "model, model at chosen settings, or run"),
        Column("configurations", "configurations that it stands for", "count"),
        Column("questions", "questions that it and some other side have a score for at the same settings", "count"),
        Column("accuracy", "mean credit over these questions", "share"),
        Column("accuracy_low", f"low end {INTERVAL}", "share"),
        Column("accuracy_high", f"high end {INTERVAL}", "share"),
        Column("better_than", f"sides that it beats with p_holm below {ALPHA:g}", "count"),
        Column("worse_than", f"sides that beat it with p_holm below {ALPHA:g}", "count"),
    ]
    data: dict[str, Any] = {
        "place": range(1, len(sides) + 1),
        "side": [side.name for side in sides],
        "configurations": [len(side.configurations) for side in sides],
        "questions": of_sides.n,
        "accuracy": of_sides.accuracy,
        "accuracy_low": of_sides.low,
        "accuracy_high": of_sides.high,
        "better_than": better,
        "worse_than": worse,
    }
    return Table.of("Models: accuracy of each side", columns, data, shown=100)


def pairs_table(names: Sequence[str], pairs: tuple[Whole, Whole], whole: Pairs, p: Floats, adjusted: Floats, tests: Sequence[str]) -> Table:
    """One row per pair."""
    columns = [
        *_sides_columns(),
        *_difference_columns(),
        Column("test", "mcnemar: exact McNemar; t: paired t-test over questions; cluster: t-test with image clusters"),
        Column("p", "two-sided p of no difference", "number"),
        Column("p_holm", "p adjusted for all pairs of the call (Holm)", "number"),
        Column("smallest_detectable", "true difference that a test at 5% finds with 80% power on these questions; empty: none", "share"),
        Column("design_effect", "variance of the difference with image clusters over that of independent questions", "number"),
    ]
    data = _differences(names, pairs, whole) | {
        "test": tests,
        "p": p,
        "p_holm": adjusted,
        "smallest_detectable": smallest_detectable(whole),
        "design_effect": whole.design_effect,
    }
    return Table.of("Pairs: differences on common questions", columns, data)


def by_table(names: Sequence[str], pairs: tuple[Whole, Whole], groups: Sequence[tuple[str, str | None, Pairs]], test: str) -> Table:
    """One row per pair and value of a label, pairs in order."""
    columns = [
        *_sides_columns(),
        Column("by", "label of the questions"),
        Column("value", "its value; empty where questions have none"),
        *_difference_columns(),
        Column("p", "two-sided p of no difference, not adjusted", "number"),
    ]
    parts = [
        _differences(names, pairs, group)
        | {"by": [by] * len(pairs[0]), "value": [value] * len(pairs[0]), "p": p_values(group, test)[0], "n": group.n}
        for by, value, group in groups
    ]
    order = [(part, row) for row in range(len(pairs[0])) for part in parts if part["n"][row]]
    data = {column.name: [part[column.name][row] for part, row in order] for column in columns}
    return Table.of("By: differences by label of the questions", columns, data, shown=24)


def _sides_columns() -> list[Column]:
    return [Column("a", "the first of the two"), Column("b", "the second of the two")]


def _difference_columns() -> list[Column]:
    return [
        Column("questions", "questions that both have a score for at the same settings", "count"),
        Column("clusters", "images (clusters of questions) among them", "count"),
        Column("accuracy_a", "mean credit of a", "share"),
        Column("accuracy_b", "mean credit of b", "share"),
        Column("wins", "questions where a has more credit", "count"),
        Column("losses", "questions where b has more credit", "count"),
        Column("ties", "questions where both have the same credit", "count"),
        Column("difference", "accuracy_a - accuracy_b; 0.01 is one point", "share"),
        Column("difference_low", f"low end {INTERVAL}", "share"),
        Column("difference_high", f"high end {INTERVAL}", "share"),
    ]


def _differences(names: Sequence[str], pairs: tuple[Whole, Whole], whole: Pairs) -> dict[str, Any]:
    return {
        "a": [names[side] for side in pairs[0]],
        "b": [names[side] for side in pairs[1]],
        "questions": whole.n,
        "clusters": whole.clusters,
        "accuracy_a": whole.accuracy_a,
        "accuracy_b": whole.accuracy_b,
        "wins": whole.wins,
        "losses": whole.losses,
        "ties": whole.n - whole.wins - whole.losses,
        "difference": whole.difference,
        "difference_low": whole.low,
        "difference_high": whole.high,
    }
