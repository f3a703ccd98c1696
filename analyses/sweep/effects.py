"""What a sweep shows on its common questions: end-point gains, their interaction with source quality, and the quality effect (D.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from analyses.sweep.settings import NATIVE, lowest_quality

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from analyses.sweep.settings import Asked, Sweep

Kind = Literal["gain", "interaction", "quality"]
ENOUGH = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """A sweep at one source quality on the questions that every setting answered."""

    sweep: Sweep
    quality: str
    settings: list[float]
    """By mean visual tokens over the common questions (by the knob where tokens are not known)."""
    questions: npt.NDArray[np.int64]
    """Common questions."""
    left_out: int
    """Questions that some settings answered, but not all."""
    credit: npt.NDArray[np.float64]
    """Settings x common questions."""
    tokens: npt.NDArray[np.float64]
    """Settings x common questions; NaN where not stated."""

    @property
    def accuracy(self) -> npt.NDArray[np.float64]:
        """Mean credit of each setting."""
        return np.asarray(self.credit.mean(axis=1), dtype=np.float64)

    @property
    def mean_tokens(self) -> npt.NDArray[np.float64]:
        """Mean visual tokens of each setting; NaN where a question does not state them."""
        return np.asarray(self.tokens.mean(axis=1), dtype=np.float64)

    def at(self, setting: float, questions: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Credits of some of the common questions at a setting."""
        row: npt.NDArray[np.float64] = self.credit[self.settings.index(setting)]
        return row[np.searchsorted(self.questions, questions)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """A difference per question whose mean is tested against zero."""

    kind: Kind
    curve: Curve
    """At the higher quality where two are compared."""
    lower: Curve | None
    questions: npt.NDArray[np.int64]
    differences: npt.NDArray[np.float64]
    primary: bool
    """Whether it belongs to the family of tests: gains at the highest quality, and the comparison with the lowest one."""


def curve_of(sweep: Sweep, quality: str, asked: Asked, size: int, warnings: list[str]) -> Curve | None:
    """The curve of a sweep at a quality; None, with a warning, where its settings share no question or no more tokens come with them."""
    settings = sweep.settings_at(quality)
    credit = np.stack([asked.column(sweep.runs[quality, setting], asked.credit, size) for setting in settings])
    tokens = np.stack([asked.column(sweep.runs[quality, setting], asked.tokens, size) for setting in settings])
    known = ~np.isnan(credit)
    common, some = np.flatnonzero(known.all(axis=0)), int(known.any(axis=0).sum())
    named = sweep.name if quality == NATIVE else f"{sweep.name} at source quality {quality}"
    if len(common) < ENOUGH:
        warnings.append(f"{named}: {len(common)} questions answered at every setting: nothing to compare")
        return None
    credit, tokens = credit[:, common], tokens[:, common]
    means = tokens.mean(axis=1)
    if np.isnan(means).any():
        warnings.append(f"{named}: visual_tokens missing, so that the settings of {sweep.axis} order the curve")
        order = np.arange(len(settings))
    else:
        order = np.argsort(means, kind="stable")
        if means.max() == means.min():
            warnings.append(f"{named}: every setting has the same visual tokens: nothing is swept")
            return None
    return Curve(
        sweep=sweep,
        quality=quality,
        settings=[settings[place] for place in order.tolist()],
        questions=common,
        left_out=some - len(common),
        credit=credit[order],
        tokens=tokens[order],
    )


def effects_of(curves: Sequence[Curve], lower: str | None, warnings: list[str]) -> list[Effect]:
    """Effects of the curves of one sweep, one per quality: gains, and with a second quality interactions and quality effects.

    `lower` is the source quality that the family of tests compares with the highest one (None: the lowest, by `lowest_quality`).
    """
    if not curves:
        return []
    best = curves[0]
    lowest = lower or lowest_quality([curve.quality for curve in curves[1:]])
    effects = [
        Effect(
            kind="gain",
            curve=curve,
            lower=None,
            questions=curve.questions,
            differences=curve.credit[-1] - curve.credit[0],
            primary=curve is best,
        )
        for curve in curves
    ]
    low, high = best.settings[0], best.settings[-1]
    for other in curves[1:]:
        shared = np.intersect1d(best.questions, other.questions)
        if not {low, high} <= set(other.settings) or len(shared) < ENOUGH:
            warnings.append(f"{best.sweep.name}: source quality {other.quality} has no common end points with {best.quality}: not compared")
            continue
        top = best.at(high, shared) - other.at(high, shared)
        for kind, differences in (("interaction", top - (best.at(low, shared) - other.at(low, shared))), ("quality", top)):
            effects.append(
                Effect(
                    kind="interaction" if kind == "interaction" else "quality",
                    curve=best,
                    lower=other,
                    questions=shared,
                    differences=differences,
                    primary=other.quality == lowest,
                )
            )
    return effects


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenCheck:
    """Whether source qualities had the same visual tokens for every question and setting."""

    combinations: int
    """Questions x settings that every quality answered with a stated count."""
    identical: int


def token_check(curves: Sequence[Curve]) -> TokenCheck | None:
    """Compare the token counts of the curves of one sweep; None with one curve or no stated count."""
    if len(curves) < ENOUGH:
        return None
    settings = [setting for setting in curves[0].settings if all(setting in curve.settings for curve in curves)]
    questions = curves[0].questions
    for curve in curves[1:]:
        questions = np.intersect1d(questions, curve.questions)
    counts = np.stack(
        [
            curve.tokens[[curve.settings.index(setting) for setting in settings]][:, np.searchsorted(curve.questions, questions)]
            for curve in curves
        ]
    )
    stated = ~np.isnan(counts).any(axis=0)
    if not stated.any():
        return None
    same = (counts == counts[:1]).all(axis=0) & stated
    return TokenCheck(combinations=int(stated.sum()), identical=int(same.sum()))
