"""Token sweeps at a fixed model: paired end-point gains and their interaction with source quality (separable-law paper, D.2)."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import Field

from analyses.answers import COLUMNS, load_answers
from analyses.clusters import find_clusters
from analyses.opening import nothing, opened
from analyses.paired import holm, mcnemar_exact, paired_t
from analyses.paired_bootstrap import bootstrap_intervals
from analyses.parameters import AnalysisParameters
from analyses.progress import report
from analyses.result import Charts
from analyses.sweep.effects import curve_of, effects_of, token_check
from analyses.sweep.settings import Axis, asked, find_sweeps, settings_of
from analyses.sweep.tables import curve_table, gains_table, interactions_table, quality_table, tokens_table
from tracker.errors import AnalysisError

if TYPE_CHECKING:
    import numpy.typing as npt

    from analyses.answers import Answers
    from analyses.result import Result, Table
    from analyses.session import StarSession
    from analyses.sweep.effects import Curve, Effect, TokenCheck

NAME = "sweep"
SIGNIFICANT = 0.05
POINTS = 100.0
SHOWN = 5


class Parameters(AnalysisParameters):
    """Options of the sweep analysis."""

    records: Literal["scored", "both"] = Field(
        default="scored", description="scored: every scored answer; both: those that have a probability as well"
    )
    axis: Axis = Field(
        default="auto",
        description="the knob that is swept: max_tiles, pixel_cap, input_size; auto: the first two, and input_size where neither is swept",
    )
    test: Literal["t", "mcnemar"] = Field(
        default="t", description="test of a paired difference: t (paired, two-sided), mcnemar (exact; the sign test of an interaction)"
    )
    draws: int = Field(default=20_000, ge=0, le=1_000_000, description="image-cluster bootstrap draws of an interval (0: no intervals)")
    lower: str | None = Field(
        default=None,
        description="source quality that the tests compare with the highest one (default: the one with the smallest number in its name)",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Tested:
    """An effect with its statistics; differences in percentage points."""

    effect: Effect
    mean: float
    low: float
    high: float
    wins: int
    losses: int
    p: float
    holm: float
    """Adjusted over the family; NaN for an effect outside of it."""


def run(session: StarSession, parameters: Parameters) -> Result:
    """Find the sweeps of the cohort and test what they show."""
    with opened(session, NAME, parameters, cohort="cells", columns=COLUMNS) as one:
        answers = load_answers(session)
        settings = settings_of(session) if len(answers) else {}
    if not len(answers):
        raise nothing(parameters)
    warnings: list[str] = []
    sweeps = find_sweeps(answers, settings, parameters.axis, warnings)
    if not sweeps:
        message = "no model was asked under settings that differ in one knob alone"
        raise AnalysisError(
            message, hint="a sweep needs two values of max_tiles, pixel_cap or input_size, all other settings equal; --axis"
        )
    rows, size = asked(answers), len(answers.questions)
    curves: list[list[Curve]] = []
    effects: list[Effect] = []
    for sweep in sweeps:
        found = [curve for quality in sweep.qualities() if (curve := curve_of(sweep, quality, rows, size, warnings)) is not None]
        curves.append(found)
        effects += effects_of(found, parameters.lower, warnings)
    tested = tests_of(effects, answers, parameters, warnings)
    checks = [(found[0], check) for found in curves if (check := token_check(found)) is not None]
    warnings += _left_out(curves) + _check_warnings(checks)
    tables = {
        "gains": gains_table([one for one in tested if one.effect.kind == "gain"]),
        "interactions": interactions_table([one for one in tested if one.effect.kind == "interaction"]),
        "quality": quality_table([one for one in tested if one.effect.kind == "quality"]),
        "tokens": tokens_table(checks),
        "curve": curve_table([curve for found in curves for curve in found]),
    }
    return one.result(
        rows=len(answers),
        digest=answers.digest,
        headline=_headline(tested, curves, checks),
        tables=tables,
        charts=_charts(tables),
        warnings=warnings,
    )


def tests_of(effects: list[Effect], answers: Answers, parameters: Parameters, warnings: list[str]) -> list[Tested]:
    """Means, intervals and p values of effects, Holm's correction over those that are primary."""
    intervals = _intervals(effects, answers, parameters)
    p = np.full(len(effects), np.nan)
    signs = [(int((effect.differences > 0).sum()), int((effect.differences < 0).sum())) for effect in effects]
    for place, effect in enumerate(effects):
        if parameters.test == "mcnemar":
            p[place] = mcnemar_exact(*signs[place])
        else:
            p[place] = paired_t(effect.differences)[1]
            if effect.differences.any() and np.ptp(effect.differences) == 0:
                warnings.append(
                    f"{effect.curve.sweep.name}: every question differs alike ({effect.kind}): no t test; --test mcnemar has one"
                )
                p[place] = np.nan
    primary = np.array([effect.primary for effect in effects], dtype=bool)
    adjusted = holm(np.where(primary, p, np.nan))
    return [
        Tested(
            effect=effect,
            mean=POINTS * float(effect.differences.mean()),
            low=float(POINTS * intervals[0, place]),
            high=float(POINTS * intervals[1, place]),
            wins=signs[place][0],
            losses=signs[place][1],
            p=float(p[place]),
            holm=float(adjusted[place]),
        )
        for place, effect in enumerate(effects)
    ]


def _intervals(effects: list[Effect], answers: Answers, parameters: Parameters) -> npt.NDArray[np.float64]:
    """Bootstrap intervals (2, effects); effects on the same questions share their draws."""
    ends = np.full((2, len(effects)), np.nan)
    together: dict[tuple[str, bytes], list[int]] = {}
    for place, effect in enumerate(effects):
        together.setdefault((effect.curve.sweep.benchmark, effect.questions.tobytes()), []).append(place)
    clusters = find_clusters(answers.questions).of_question
    for done, ((benchmark, _), places) in enumerate(together.items()):
        report("bootstrap intervals", done, len(together))
        values = np.stack([effects[place].differences for place in places], axis=1)
        cluster = clusters[effects[places[0]].questions]
        ends[:, places] = bootstrap_intervals(
            cluster, values, draws=parameters.draws, seed=(parameters.seed, zlib.crc32(benchmark.encode()))
        )
    report("bootstrap intervals", len(together), len(together))
    return ends


def _left_out(curves: list[list[Curve]]) -> list[str]:
    short = [curve for found in curves for curve in found if curve.left_out]
    if not short:
        return []
    named = [f"{curve.sweep.name} {curve.left_out:,} of {curve.left_out + len(curve.questions):,}" for curve in short]
    more = f" and {len(named) - SHOWN} more" if len(named) > SHOWN else ""
    return [f"questions that some settings did not answer are left out: {', '.join(named[:SHOWN])}{more} (left_out of the table curve)"]


def _check_warnings(checks: list[tuple[Curve, TokenCheck]]) -> list[str]:
    return [
        f"{curve.sweep.name}: {check.combinations - check.identical:,} of {check.combinations:,} combinations of question and setting differ "
        "in visual tokens between source qualities: their comparison mixes quality with tokens"
        for curve, check in checks
        if check.identical < check.combinations
    ]


def _headline(tested: list[Tested], curves: list[list[Curve]], checks: list[tuple[Curve, TokenCheck]]) -> dict[str, Any]:
    family = [one for one in tested if one.effect.primary and not np.isnan(one.p)]
    gains = [one for one in family if one.effect.kind == "gain"]
    combinations = sum(check.combinations for _, check in checks)
    return {
        "sweeps": sum(1 for found in curves if found),
        "models": len({found[0].sweep.model for found in curves if found}),
        "tests": len(family),
        "significant": sum(one.holm < SIGNIFICANT for one in family),
        "significant_gains": sum(one.holm < SIGNIFICANT for one in gains),
        "largest_gain": max((one.mean for one in gains), default=None),
        "identical_tokens": sum(check.identical for _, check in checks) / combinations if combinations else None,
    }


def _charts(tables: dict[str, Table]) -> Charts:
    def draw(name: str) -> Any:
        from analyses.sweep import charts as sweep_charts

        return getattr(sweep_charts, name)(tables)

    names = ["curves"] * bool(len(tables["curve"])) + ["quality"] * bool(len(tables["quality"])) + ["gains"] * bool(len(tables["gains"]))
    return Charts({name: partial(draw, name) for name in names})
