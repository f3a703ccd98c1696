"""Tables of the regret analysis, as Tables 12 and 30 to 34 of the separable-law paper. Regrets are percentage points of error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from analyses.regret.decisions import BOUNDED, RULES
from analyses.result import Column, Table

if TYPE_CHECKING:
    import numpy.typing as npt

    from analyses.cells import CellStudy
    from analyses.regret.decisions import Decisions, Market

THRESHOLDS = (0, 1, 2, 5, 8, 10)
"""Percentage points."""
EVALUATION = Column(
    "evaluation",
    "in_sample: all cells are fitted and may be chosen; else what a fold leaves out, which alone may be chosen "
    "(joint: a backbone size and an input size, row and column)",
)
RULE = Column(
    "rule",
    "direct: lowest predicted error; projection: nearest to the continuous optimum; largest_tokens, largest_backbone, log_centre: no law",
)
DECISIONS = Column("decisions", "decisions with at least two feasible candidates", "count")


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A study with its decisions."""

    study: CellStudy
    market: Market
    decisions: list[Decisions]

    def group(self, one: Decisions) -> npt.NDArray[np.int64]:
        """Number of the group of each decision."""
        return self.market.layout.group[one.row]

    def family(self, one: Decisions) -> npt.NDArray[np.object_]:
        """Family of each decision's group; mixed where it has several."""
        of_group = np.full(len(self.study.groups), None, dtype=object)
        for group in range(len(self.study.groups)):
            found = set(self.study.cells.text["family"][self.study.groups.members(group)].tolist())
            of_group[group] = found.pop() if len(found) == 1 else "mixed"
        return of_group[self.group(one)]

    def drawn(self) -> dict[str, Any] | None:
        """Evaluation, and regrets by rule, of what charts show: the joint hold-out, else the first with a decision."""
        ordered = sorted((one for one in self.decisions if len(one)), key=lambda one: one.evaluation != "joint")
        return {"evaluation": ordered[0].evaluation, "regret": {rule: ordered[0].regret[rule] for rule in RULES}} if ordered else None


def summary(regret: npt.NDArray[np.float64], hit: npt.NDArray[np.bool_]) -> dict[str, Any]:
    """Mean, median, 90th percentile (linear) and worst regret, and hits; None where there is no decision."""
    if not len(regret):
        return {"decisions": 0, "mean": None, "median": None, "p90": None, "worst": None, "hits": 0, "hit_share": None}
    return {
        "decisions": len(regret),
        "mean": float(regret.mean()),
        "median": float(np.median(regret)),
        "p90": float(np.percentile(regret, 90)),
        "worst": float(regret.max()),
        "hits": int(hit.sum()),
        "hit_share": float(hit.mean()),
    }


def shares_within(regret: npt.NDArray[np.float64]) -> dict[str, float | None]:
    """Share of the regrets at or below each of THRESHOLDS."""
    return {f"share_{threshold}": float((regret <= threshold).mean()) if len(regret) else None for threshold in THRESHOLDS}


SUMMARY = (
    DECISIONS,
    Column("mean", "mean regret, percentage points", "number"),
    Column("median", "median regret, percentage points", "number"),
    Column("p90", "90th percentile of the regrets (linear), percentage points", "number"),
    Column("worst", "largest regret, percentage points", "number"),
    Column("hits", "decisions that chose the designated best cell: the first with the lowest observed error", "count"),
    Column("hit_share", "hits over decisions", "share"),
)


def rules_table(judged: Judged) -> Table:
    """Regret of each rule (Tables 30 and 31)."""
    rows = [
        {"evaluation": one.evaluation, "rule": rule, **summary(one.regret[rule], one.hit(rule))}
        for one in judged.decisions
        for rule in RULES
    ]
    return _table("Regret of the rules", (EVALUATION, RULE, *SUMMARY), rows)


def thresholds_table(judged: Judged) -> Table:
    """Share of decisions within thresholds, pooled and by family (Table 33)."""
    rows = []
    for one in judged.decisions:
        family = judged.family(one)
        names = [None, *sorted({str(name) for name in family.tolist()})]
        for rule in RULES:
            for name in names:
                members = np.ones(len(one), dtype=bool) if name is None else family.astype(str) == name
                rows.append(
                    {
                        "evaluation": one.evaluation,
                        "rule": rule,
                        "family": "all" if name is None else name,
                        "decisions": int(members.sum()),
                        **shares_within(one.regret[rule][members]),
                    }
                )
    columns = (
        EVALUATION,
        RULE,
        Column("family", "model family of the decisions' groups; all: pooled"),
        DECISIONS,
        *(
            Column(
                f"share_{threshold}",
                f"share of decisions with a regret of at most {threshold} percentage points" + (" (ties count)" if not threshold else ""),
                "share",
            )
            for threshold in THRESHOLDS
        ),
    )
    return _table("Decisions within thresholds of regret", columns, rows)


def groups_table(judged: Judged) -> Table:
    """Regret by group (Table 34)."""
    by = judged.study.groups.by
    rows = []
    for one in judged.decisions:
        group = judged.group(one)
        for rule in RULES:
            for number in np.unique(group).tolist():
                members = group == number
                rows.append(
                    {
                        "evaluation": one.evaluation,
                        "rule": rule,
                        **dict(zip(by, judged.study.groups.keys[number], strict=True)),
                        **summary(one.regret[rule][members], one.hit(rule)[members]),
                    }
                )
    return _table("Regret by group", (EVALUATION, RULE, *(Column(name, f"{name} of the group") for name in by), *SUMMARY), rows)


def suites_table(judged: Judged) -> Table:
    """Median regret by suite, a column per rule (Table 32)."""
    names = judged.study.groups.column("suite")
    rows = []
    for one in judged.decisions:
        suite = np.array(names, dtype=object)[judged.group(one)]
        for name in sorted({str(value) for value in suite.tolist()}):
            members = suite.astype(str) == name
            medians = {rule: float(np.median(one.regret[rule][members])) for rule in RULES}
            rows.append({"evaluation": one.evaluation, "suite": name, "decisions": int(members.sum()), **medians})
    columns = (
        EVALUATION,
        Column("suite", "suite of the decisions"),
        DECISIONS,
        *(Column(rule, f"median regret of {rule}, percentage points", "number") for rule in RULES),
    )
    return _table("Median regret by suite", columns, rows)


def bounded_table(judged: Judged) -> Table:
    """Direct selection by the separable and by the bounded law, held out (Table 12)."""
    rows = []
    for one in judged.decisions:
        if BOUNDED not in one.choice:
            continue
        designs: dict[str, npt.NDArray[np.bool_]] = {one.evaluation: np.ones(len(one), dtype=bool)}
        if one.evaluation == "joint":
            designs |= {"joint_two_axes": one.two_axes, "joint_cross": one.cross}
        for design, members in designs.items():
            separable, bounded = (summary(one.regret[rule][members], one.hit(rule)[members]) for rule in ("direct", BOUNDED))
            same = one.choice["direct"][members] == one.choice[BOUNDED][members]
            rows.append(
                {
                    "design": design,
                    "decisions": separable["decisions"],
                    "separable": separable["mean"],
                    "bounded": bounded["mean"],
                    "separable_p90": separable["p90"],
                    "bounded_p90": bounded["p90"],
                    "same_choice": float(same.mean()) if len(same) else None,
                }
            )
    columns = (
        Column(
            "design",
            "what a fold leaves out; joint_two_axes: joint, with at least two N and two input sizes feasible; "
            "joint_cross: with the crossing feasible, and two more cells of its row and of its column",
        ),
        DECISIONS,
        Column("separable", "mean regret of direct selection by the separable law, percentage points", "number"),
        Column("bounded", "mean regret of direct selection by the bounded law, percentage points", "number"),
        Column("separable_p90", "90th percentile by the separable law, percentage points", "number"),
        Column("bounded_p90", "90th percentile by the bounded law, percentage points", "number"),
        Column("same_choice", "share of decisions in which both laws choose the same cell", "share"),
    )
    return _table("Direct selection by the separable and the bounded law", columns, rows)


def excluded_table(judged: Judged) -> Table:
    """Decisions that were planned, and what became of them."""
    rows = [
        {
            "evaluation": one.evaluation,
            **{name: getattr(one.excluded, name) for name in ("planned", "not_fitted", "without_cost", "none_feasible", "one_feasible")},
            "decisions": len(one),
            "fallback": int(one.fallback.sum()),
        }
        for one in judged.decisions
    ]
    columns = (
        EVALUATION,
        Column("planned", "folds (in sample: groups) times budgets", "count"),
        Column("not_fitted", "left out: what the fold leaves cannot be fitted", "count"),
        Column("without_cost", "left out: no cell of the group has a cost", "count"),
        Column("none_feasible", "left out: no candidate is within the budget", "count"),
        Column("one_feasible", "left out: one candidate alone is within the budget", "count"),
        DECISIONS,
        Column("fallback", "decisions in which projection has no closed form and chooses as direct selection does", "count"),
    )
    return _table("Planned and excluded decisions", columns, rows)


def decisions_table(judged: Judged) -> Table:
    """Every decision: its group, fold, budget and best cell."""
    text, size, groups = judged.study.cells.text, judged.study.cells.input_size, judged.study.groups
    parts: list[dict[str, Any]] = []
    first = 0
    for one in judged.decisions:
        keys = np.array(groups.keys, dtype=object).reshape(-1, len(groups.by))[judged.group(one)]
        parts.append(
            {
                "decision": first + np.arange(len(one)),
                "evaluation": np.full(len(one), one.evaluation, dtype=object),
                **{name: keys[:, place] for place, name in enumerate(groups.by)},
                "left_out_parameters": one.folds.parameters[one.fold],
                "left_out_input_size": one.folds.input_size[one.fold],
                "percentile": one.percentile,
                "budget": one.budget,
                "feasible": one.feasible,
                "best_model": text["model"][one.best],
                "best_input_size": size[one.best],
            }
        )
        first += len(one)
    columns = (
        Column("decision", "number of the decision, as in the table of choices", "count"),
        EVALUATION,
        *(Column(name, f"{name} of the group") for name in groups.by),
        Column("left_out_parameters", "backbone size that the fold leaves out, billions of parameters", "number"),
        Column("left_out_input_size", "input size that the fold leaves out, px", "number"),
        Column("percentile", "budget as a percentile of the costs of the group's cells", "number"),
        Column("budget", "budget in the unit of the cost: FLOP, or seconds", "number"),
        Column("feasible", "candidates within the budget", "count"),
        Column("best_model", "model of the designated best cell"),
        Column("best_input_size", "input size of the designated best cell, px", "number"),
    )
    return _joined("Decisions", columns, parts)


def choices_table(judged: Judged) -> Table:
    """What every rule chose in every decision."""
    text, size = judged.study.cells.text, judged.study.cells.input_size
    parts: list[dict[str, Any]] = []
    first = 0
    for one in judged.decisions:
        parts += [
            {
                "decision": first + np.arange(len(one)),
                "rule": np.full(len(one), rule, dtype=object),
                "model": text["model"][cell],
                "input_size": size[cell],
                "regret": one.regret[rule],
                "hit": one.hit(rule).astype(int),
            }
            for rule, cell in one.choice.items()
        ]
        first += len(one)
    columns = (
        Column("decision", "number of the decision, as in the table of decisions", "count"),
        Column("rule", "rule that chose; direct_bounded: direct selection by the bounded law"),
        Column("model", "model of the chosen cell"),
        Column("input_size", "input size of the chosen cell, px", "number"),
        Column("regret", "observed error of the choice minus the lowest feasible one, percentage points", "number"),
        Column("hit", "1 where the choice is the designated best cell", "count"),
    )
    return _joined("Choices", columns, parts)


def _table(title: str, columns: tuple[Column, ...], rows: list[dict[str, Any]], shown: int = 40) -> Table:
    return Table.of(title, columns, {column.name: [row[column.name] for row in rows] for column in columns}, shown=shown)


def _joined(title: str, columns: tuple[Column, ...], parts: list[dict[str, Any]]) -> Table:
    """A long table from arrays, part after part."""
    return Table.of(
        title, columns, {column.name: np.concatenate([part[column.name] for part in parts]).tolist() for column in columns}, shown=8
    )
