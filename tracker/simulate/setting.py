"""A setting of a sweep: the knob of the frontend, the quality of the source images, and what follows for an image."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from tracker.errors import UsageError
from tracker.frontends import DynamicTiling, NativeResolution, Rule, VisualInput, resize_long_edge

if TYPE_CHECKING:
    from tracker.simulate.spec import SweepPlan

Knob = Literal["max_tiles", "pixel_cap"]
UNTOUCHED = "native"


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepSetting:
    """What a run of a sweep is asked under; images come at their native size."""

    knob: Knob
    value: int
    source_quality: str
    """native, or a long edge (px)."""
    questions: int
    """How many questions are asked, the first of the data set."""
    pixels_per_token: float

    def view(self, rule: Rule, width: int, height: int) -> VisualInput:
        """What a frontend makes of an image on its native canvas (px), whatever the source quality."""
        return _with_knob(rule, self.knob, self.value).view(width, height)

    @property
    def reduced(self) -> bool:
        """Whether the source images lost pixels on purpose."""
        return self.source_quality != UNTOUCHED

    def held(self, width: int, height: int) -> int:
        """Pixels that the source of an image of this size holds; a source is never enlarged."""
        if not self.reduced:
            return width * height
        return resize_long_edge(width, height, min(int(self.source_quality), max(width, height))).area


def usable_tokens(tokens: float, held: float, pixels_per_token: float) -> float:
    """Tokens at which the law is read: 1 / (1/R + 1/S) with S = held / pixels_per_token, which R tends to where it outgrows the source."""
    worth = held / pixels_per_token
    return tokens * worth / (tokens + worth)


def settings_of(sweep: SweepPlan, model: str, rule: Rule, questions: int) -> list[SweepSetting]:
    """The settings of a sweep for a model on a benchmark, by source quality; refused where its frontend has no such knob."""
    if isinstance(rule, DynamicTiling):
        knob: Knob = "max_tiles"
        values, least, why = sweep.max_tiles, rule.min_tiles, f"min_tiles of its frontend is {rule.min_tiles}"
    elif isinstance(rule, NativeResolution):
        knob, area = "pixel_cap", rule.factor**2
        values = sweep.pixel_cap or tuple(count * area for count in sweep.token_cap)
        least, why = rule.min_pixels, f"min_pixels of its frontend is {rule.min_pixels:,} ({rule.min_pixels // area:,} tokens)"
    else:
        values = ()
    if not values:
        message = f"sweep: {model} has no such knob"
        raise UsageError(message, hint="max_tiles sweeps tiling frontends, pixel_cap and token_cap those of native resolution")
    if min(values) < least:
        message = f"sweep: {knob} {min(values):,} of {model} is too small"
        raise UsageError(message, hint=why)
    return [
        SweepSetting(knob=knob, value=value, source_quality=quality, questions=questions, pixels_per_token=sweep.pixels_per_token)
        for quality in sweep.source_quality
        for value in values
    ]


def _with_knob(rule: Rule, knob: Knob, value: int) -> Rule:
    if knob == "max_tiles" and isinstance(rule, DynamicTiling):
        return replace(rule, max_tiles=value)
    if knob == "pixel_cap" and isinstance(rule, NativeResolution):
        return replace(rule, max_pixels=value)
    message = f"{type(rule).__name__} has no {knob}"
    raise TypeError(message)
