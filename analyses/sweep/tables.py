"""Tables of the sweep analysis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from analyses.result import Column, Table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from analyses.sweep.analysis import Tested
    from analyses.sweep.effects import Curve, TokenCheck

POINTS = 100.0
WHERE = (
    Column("model", "model that is held fixed"),
    Column("benchmark", "benchmark"),
    Column("axis", "knob that is swept"),
)
SETTINGS = Column("settings", "settings that all of its runs share")
TEST = (
    Column("wins", "questions that gain", "count"),
    Column("losses", "questions that lose", "count"),
    Column("p", "two-sided p of the paired test; empty where there is none", "number"),
    Column("holm_p", "p adjusted by Holm over the family of tests; empty for a row outside of it", "number"),
)


def gains_table(tested: Sequence[Tested]) -> Table:
    """End-point gains (Table 28): largest minus smallest mean token count."""
    columns = (
        *WHERE,
        Column("source_quality", "source quality of the images; native: untouched"),
        Column("questions", "questions that every setting answered", "count"),
        Column("setting_from", "value of the knob with the fewest visual tokens", "number"),
        Column("setting_to", "value of the knob with the most visual tokens", "number"),
        Column("tokens_from", "mean visual tokens there", "number"),
        Column("tokens_to", "mean visual tokens there", "number"),
        Column("accuracy_from", "accuracy with the fewest visual tokens (percent)", "number"),
        Column("accuracy_to", "accuracy with the most visual tokens (percent)", "number"),
        *_difference("gain", "accuracy_to - accuracy_from"),
        *TEST,
        SETTINGS,
    )
    values: dict[str, Callable[[Tested], Any]] = {
        "source_quality": lambda one: one.effect.curve.quality,
        "setting_from": lambda one: one.effect.curve.settings[0],
        "setting_to": lambda one: one.effect.curve.settings[-1],
        "tokens_from": lambda one: one.effect.curve.mean_tokens[0],
        "tokens_to": lambda one: one.effect.curve.mean_tokens[-1],
        "accuracy_from": lambda one: POINTS * one.effect.curve.accuracy[0],
        "accuracy_to": lambda one: POINTS * one.effect.curve.accuracy[-1],
    }
    return _table("Gains: accuracy with the most minus accuracy with the fewest visual tokens (Table 28)", columns, values, "gain", tested)


def interactions_table(tested: Sequence[Tested]) -> Table:
    """How much more the highest source quality gains than a lower one."""
    columns = (
        *WHERE,
        Column("source_quality", "the higher source quality"),
        Column("lower_quality", "the lower source quality"),
        Column("questions", "questions that every setting answered at both", "count"),
        Column("gain_higher", "end-point gain at the higher quality (percentage points)", "number"),
        Column("gain_lower", "end-point gain at the lower quality, between the same settings (percentage points)", "number"),
        *_difference("interaction", "gain_higher - gain_lower"),
        *TEST,
        SETTINGS,
    )
    values: dict[str, Callable[[Tested], Any]] = {
        **_qualities(),
        "gain_higher": lambda one: _mean(one, "curve", -1) - _mean(one, "curve", 0),
        "gain_lower": lambda one: _mean(one, "lower", -1) - _mean(one, "lower", 0),
    }
    return _table(
        "Interactions: end-point gain at the higher minus gain at the lower source quality", columns, values, "interaction", tested
    )


def quality_table(tested: Sequence[Tested]) -> Table:
    """What source quality is worth at the largest token count."""
    columns = (
        *WHERE,
        Column("source_quality", "the higher source quality"),
        Column("lower_quality", "the lower source quality"),
        Column("questions", "questions that every setting answered at both", "count"),
        Column("setting", "value of the knob with the most visual tokens", "number"),
        Column("accuracy_higher", "accuracy there at the higher quality (percent)", "number"),
        Column("accuracy_lower", "accuracy there at the lower quality (percent)", "number"),
        *_difference("effect", "accuracy_higher - accuracy_lower"),
        *TEST,
        SETTINGS,
    )
    values: dict[str, Callable[[Tested], Any]] = {
        **_qualities(),
        "setting": lambda one: one.effect.curve.settings[-1],
        "accuracy_higher": lambda one: _mean(one, "curve", -1),
        "accuracy_lower": lambda one: _mean(one, "lower", -1),
    }
    return _table("Quality: higher minus lower source quality at the most visual tokens", columns, values, "effect", tested)


def tokens_table(checks: Sequence[tuple[Curve, TokenCheck]]) -> Table:
    """Whether source qualities had the same tokens for every question and setting."""
    columns = (
        *WHERE,
        Column("combinations", "questions x settings that every source quality answered with a stated token count", "count"),
        Column("identical", "those with the same count at every quality", "count"),
        Column("share", "identical / combinations", "share"),
        SETTINGS,
    )
    data = _where([curve for curve, _ in checks]) | {
        "combinations": [check.combinations for _, check in checks],
        "identical": [check.identical for _, check in checks],
        "share": [check.identical / check.combinations for _, check in checks],
    }
    return Table.of("Tokens: are visual tokens the same at every source quality?", columns, data)


def curve_table(curves: Sequence[Curve]) -> Table:
    """Accuracy and mean visual tokens at every setting (Figures 12 and 13)."""
    columns = (
        *WHERE,
        Column("series", "series of the model"),
        Column("source_quality", "source quality of the images; native: untouched"),
        Column("setting", "value of the knob", "number"),
        Column("questions", "questions that every setting answered", "count"),
        Column("tokens", "mean visual tokens of these questions; empty where one does not state them", "number"),
        Column("accuracy", "their accuracy (percent)", "number"),
        Column("left_out", "questions that some settings of the sweep answered, but not all", "count"),
        SETTINGS,
    )
    points = [(curve, place) for curve in curves for place in range(len(curve.settings))]
    data = _where([curve for curve, _ in points]) | {
        "series": [curve.sweep.series for curve, _ in points],
        "source_quality": [curve.quality for curve, _ in points],
        "setting": [curve.settings[place] for curve, place in points],
        "questions": [len(curve.questions) for curve, _ in points],
        "tokens": [curve.mean_tokens[place] for curve, place in points],
        "accuracy": [POINTS * curve.accuracy[place] for curve, place in points],
        "left_out": [curve.left_out for curve, _ in points],
    }
    return Table.of("Curve: accuracy at every setting", columns, data, shown=20)


def _difference(name: str, formula: str) -> tuple[Column, ...]:
    return (
        Column(name, f"{formula} (percentage points)", "number"),
        Column(f"{name}_low", "low end of its pointwise 95% image-cluster bootstrap interval", "number"),
        Column(f"{name}_high", "high end of its pointwise 95% image-cluster bootstrap interval", "number"),
    )


def _table(
    title: str, columns: Sequence[Column], values: dict[str, Callable[[Tested], Any]], difference: str, tested: Sequence[Tested]
) -> Table:
    data = _where([one.effect.curve for one in tested])
    data |= {name: [value(one) for one in tested] for name, value in values.items()}
    data |= {
        "questions": [len(one.effect.questions) for one in tested],
        difference: [one.mean for one in tested],
        f"{difference}_low": [one.low for one in tested],
        f"{difference}_high": [one.high for one in tested],
        "wins": [one.wins for one in tested],
        "losses": [one.losses for one in tested],
        "p": [one.p for one in tested],
        "holm_p": [one.holm for one in tested],
    }
    return Table.of(title, columns, data)


def _where(curves: Sequence[Curve]) -> dict[str, list[Any]]:
    return {
        "model": [curve.sweep.model for curve in curves],
        "benchmark": [curve.sweep.benchmark for curve in curves],
        "axis": [curve.sweep.axis for curve in curves],
        "settings": [curve.sweep.context for curve in curves],
    }


def _qualities() -> dict[str, Callable[[Tested], Any]]:
    return {
        "source_quality": lambda one: one.effect.curve.quality,
        "lower_quality": lambda one: one.effect.lower.quality if one.effect.lower else None,
    }


def _mean(one: Tested, which: str, end: int) -> float:
    """Accuracy in percent at an end point of the higher quality's curve, at one of the two qualities."""
    effect = one.effect
    curve = effect.curve if which == "curve" or effect.lower is None else effect.lower
    return POINTS * float(curve.at(effect.curve.settings[end], effect.questions).mean())
