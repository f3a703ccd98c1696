"""The tables of a comparison: sides, pairs, and differences by label."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from analyses.compare.pairs import smallest_detectable
from analyses.paired import FEW, holm, mcnemar_exact, t_of_moments
from analyses.result import Column, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from analyses.compare.macro import Macro
    from analyses.compare.pairs import Pairs, Sides
    from analyses.compare.sides import Side

    Whole = npt.NDArray[np.int64]
    Floats = npt.NDArray[np.float64]

ALPHA = 0.05
INTERVAL = "of its 95% interval (percentiles of the image-cluster bootstrap)"


class Decisions(NamedTuple):
    """p values of a family of tests, and which of them decide."""

    p: Floats
    tests: list[str]
    adjusted: Floats
    p_cluster: Floats
    adjusted_cluster: Floats

    @property
    def decided(self) -> npt.NDArray[np.bool_]:
        """Where both adjusted p are below 5%: safe where either of the two takes the right things as independent."""
        return np.asarray((self.adjusted < ALPHA) & (self.adjusted_cluster < ALPHA))


def p_values(pairs: Pairs, test: str) -> tuple[Floats, list[str]]:
    """Two-sided p of each pair and the test that gave it; NaN where there is nothing to test."""
    if test == "cluster":
        return _of_clusters(pairs)
    exact = pairs.binary & (test != "t")
    few = ~exact & (pairs.differing <= FEW) & (test != "t")
    p = np.where(exact, mcnemar_exact(pairs.wins, pairs.losses), t_of_moments(pairs.difference, pairs.spread, pairs.n)[1])
    tests = np.where(exact, "mcnemar", np.where(few, "permutation", "t")).tolist()
    return np.where(pairs.n > 0, np.where(few, pairs.flipped, p), np.nan), tests


def p_of_clusters(pairs: Pairs, p: Floats) -> Floats:
    """Two-sided p that takes images as independent; `p` itself where every question has an image of its own."""
    return np.where(pairs.clusters == pairs.n, p, _of_clusters(pairs)[0])


def _of_clusters(pairs: Pairs) -> tuple[Floats, list[str]]:
    """Exact sign flips where few clusters differ, else t with the cluster variance."""
    t = t_of_moments(pairs.difference, pairs.variance * pairs.clusters, pairs.clusters)[1]
    few = pairs.differing <= FEW
    return np.where(pairs.n > 0, np.where(few, pairs.flipped, t), np.nan), np.where(few, "permutation", "cluster").tolist()


def decide(pairs: Sequence[Pairs], test: str) -> list[Decisions]:
    """The p values of some sets of pairs that are one family."""
    if not pairs:
        return []
    found = [p_values(one, test) for one in pairs]
    clustered = [p_of_clusters(one, p) for one, (p, _) in zip(pairs, found, strict=True)]
    ends = np.cumsum([len(p) for p in clustered])[:-1]
    adjusted, adjusted_cluster = (np.split(holm(np.concatenate(parts)), ends) for parts in ([p for p, _ in found], clustered))
    return [
        Decisions(p, tests, one, p_cluster, other)
        for (p, tests), one, p_cluster, other in zip(found, adjusted, clustered, adjusted_cluster, strict=True)
    ]


def models_table(
    sides: Sequence[Side], used: Sequence[set[int]], of_sides: Sides, whole: Pairs, pairs: tuple[Whole, Whole], decisions: Decisions
) -> Table:
    """One row per side, in the order of the call."""
    better, worse = np.zeros(len(sides), dtype=np.int64), np.zeros(len(sides), dtype=np.int64)
    for winners, losers, sign in ((pairs[0], pairs[1], 1), (pairs[1], pairs[0], -1)):
        won = decisions.decided & (sign * whole.difference > 0)
        better += np.bincount(winners[won], minlength=len(sides))
        worse += np.bincount(losers[won], minlength=len(sides))
    columns = [
        Column("place", "place in the call, for --pair", "count"),
        Column("side", "model, model at chosen settings, or run"),
        Column("configurations", "configurations that it stands for", "count"),
        Column("configurations_used", "those with a score at settings that some other side has too; the others take no part", "count"),
        Column("questions", "questions that it and some other side have a score for at the same settings", "count"),
        Column("accuracy", "mean credit over these questions", "share"),
        Column("accuracy_low", f"low end {INTERVAL}", "share"),
        Column("accuracy_high", f"high end {INTERVAL}", "share"),
        Column("better_than", "sides that it beats in a decided pair", "count"),
        Column("worse_than", "sides that beat it in a decided pair", "count"),
    ]
    data: dict[str, Any] = {
        "place": range(1, len(sides) + 1),
        "side": [side.name for side in sides],
        "configurations": [len(side.configurations) for side in sides],
        "configurations_used": [len(some) for some in used],
        "questions": of_sides.n,
        "accuracy": of_sides.accuracy,
        "accuracy_low": of_sides.low,
        "accuracy_high": of_sides.high,
        "better_than": better,
        "worse_than": worse,
    }
    return Table.of("Models: accuracy of each side", columns, data, shown=100)


def pairs_table(names: Sequence[str], pairs: tuple[Whole, Whole], whole: Pairs, macro: Macro, decisions: Decisions) -> Table:
    """One row per pair with a common question."""
    columns = [
        *_sides_columns(),
        *_counts_columns(),
        Column("both_right", "questions where both have credit 1; empty with partial credit", "count"),
        Column("both_wrong", "questions where both have credit 0; empty with partial credit", "count"),
        *_difference_columns(),
        Column("benchmarks", "benchmarks of the common questions", "count"),
        Column("difference_macro", "mean over benchmarks of the difference on each; every benchmark has the same weight", "share"),
        Column("difference_macro_low", f"low end {INTERVAL}; empty where a benchmark has a single image", "share"),
        Column("difference_macro_high", f"high end {INTERVAL}", "share"),
        Column(
            "test",
            "mcnemar: exact McNemar; permutation: exact sign flips of images; t: paired t-test over questions; cluster: t-test with image clusters",
        ),
        *_p_columns("all pairs of the call"),
        Column("smallest_detectable", "true difference that a test at 5% finds with 80% power on these questions; empty: none", "share"),
        Column("design_effect", "variance of the difference with image clusters over that of independent questions", "number"),
    ]
    right = np.rint(whole.accuracy_a * whole.n - whole.wins)
    data: dict[str, Any] = (
        _differences(names, pairs, whole)
        | _p_data(decisions)
        | {
            "both_right": _whole(right, whole.binary),
            "both_wrong": _whole(np.asarray(whole.n - whole.wins - whole.losses - right, dtype=float), whole.binary),
            "benchmarks": macro.benchmarks,
            "difference_macro": macro.difference,
            "difference_macro_low": macro.low,
            "difference_macro_high": macro.high,
            "test": decisions.tests,
            "smallest_detectable": smallest_detectable(whole),
            "design_effect": whole.design_effect,
        }
    )
    there = np.flatnonzero(whole.n).tolist()
    return Table.of(
        "Pairs: differences on common questions", columns, {column.name: [data[column.name][row] for row in there] for column in columns}
    )


def by_table(
    names: Sequence[str], pairs: tuple[Whole, Whole], groups: Sequence[tuple[str, str | None, Pairs]], decisions: Sequence[Decisions]
) -> Table:
    """One row per pair and value of a label, pairs in order."""
    columns = [
        *_sides_columns(),
        Column("by", "label of the questions"),
        Column("value", "its value; empty where questions have none"),
        *_counts_columns(),
        *_difference_columns(),
        *_p_columns("all rows of this table"),
    ]
    parts = [
        _differences(names, pairs, group) | _p_data(one) | {"by": [by] * len(pairs[0]), "value": [value] * len(pairs[0]), "n": group.n}
        for (by, value, group), one in zip(groups, decisions, strict=True)
    ]
    order = [(part, row) for row in range(len(pairs[0])) for part in parts if part["n"][row]]
    data = {column.name: [part[column.name][row] for part, row in order] for column in columns}
    return Table.of("By: differences by label of the questions", columns, data, shown=24)


def _sides_columns() -> list[Column]:
    return [Column("a", "the first of the two"), Column("b", "the second of the two")]


def _counts_columns() -> list[Column]:
    return [
        Column("questions", "questions that both have a score for at the same settings", "count"),
        Column("clusters", "images (clusters of questions) among them", "count"),
        Column("accuracy_a", "mean credit of a", "share"),
        Column("accuracy_b", "mean credit of b", "share"),
        Column("wins", "questions where a has more credit", "count"),
        Column("losses", "questions where b has more credit", "count"),
        Column("ties", "questions where both have the same credit", "count"),
    ]


def _difference_columns() -> list[Column]:
    return [
        Column("difference", "accuracy_a - accuracy_b; 0.01 is one point; every question has the same weight", "share"),
        Column("difference_low", f"low end {INTERVAL}", "share"),
        Column("difference_high", f"high end {INTERVAL}", "share"),
    ]


def _p_columns(family: str) -> list[Column]:
    return [
        Column("p", "two-sided p of no difference, of the test", "number"),
        Column("p_holm", f"p adjusted for {family} (Holm)", "number"),
        Column("p_cluster", "two-sided p that takes images, not questions, as independent; p where every question has its own", "number"),
        Column("p_cluster_holm", f"p_cluster adjusted for {family} (Holm)", "number"),
        Column("decided", f"whether p_holm and p_cluster_holm are both below {ALPHA:g}"),
    ]


def _p_data(decisions: Decisions) -> dict[str, Any]:
    return {
        "p": decisions.p,
        "p_holm": decisions.adjusted,
        "p_cluster": decisions.p_cluster,
        "p_cluster_holm": decisions.adjusted_cluster,
        "decided": decisions.decided.tolist(),
    }


def _whole(values: Floats, known: npt.NDArray[np.bool_]) -> list[int | None]:
    return [int(value) if one and value == value else None for value, one in zip(values.tolist(), known.tolist(), strict=True)]  # noqa: PLR0124 - NaN


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
