"""What a benchmark separates, and which axis it rewards (separable-law paper, 5.3 and E.5, Tables 35 and 36)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import Field, model_validator

from analyses.ceiling.analysis import COLUMNS
from analyses.ceiling.observations import load
from analyses.ceiling.regimes import SCALING, regime_of
from analyses.opening import nothing, opened
from analyses.parameters import AnalysisParameters
from analyses.profile.axes import dominant, level_means
from analyses.profile.tables import Profile, headline_of, largest_table, profiles_table, regimes_table, sizes_table
from analyses.result import Charts

if TYPE_CHECKING:
    import numpy.typing as npt

    from analyses.ceiling.observations import Configurations, Data
    from analyses.result import Result
    from analyses.session import StarSession

NAME = "profile"
By = Literal["series", "suite", "benchmark", "task", "domain", "skill", "category"]


class Parameters(AnalysisParameters):
    """Options of the profile."""

    cutoff: float = Field(default=0.2, ge=0, le=1, description="a trajectory with mean accuracy below this is ceiling_bound")
    easy: float = Field(default=0.9, ge=0, le=1, description="a trajectory with mean accuracy above this is easy")
    by: tuple[By, ...] = Field(default=("suite",), description="labels whose combinations are profiled, each by family as well")
    records: Literal["scored", "both"] = Field(
        default="scored", description="scored: every scored answer; both: those that have a probability as well"
    )

    @model_validator(mode="after")
    def _cutoffs_in_order(self) -> Parameters:
        if self.cutoff > self.easy:
            message = f"cutoff {self.cutoff:g} is above easy {self.easy:g}"
            raise ValueError(message)
        return self


def run(session: StarSession, parameters: Parameters) -> Result:
    """Sort trajectories into regimes and, where scaling moves them, by the axis that moves them more."""
    with opened(session, NAME, parameters, cohort="ceiling", columns=COLUMNS) as one:
        data = load(session, parameters, records=parameters.records, tokens="question")
    if not len(data.trajectories):
        raise nothing(parameters)
    profile = profile_of(data, parameters)
    return one.result(
        rows=data.rows,
        digest=data.digest,
        headline=headline_of(profile),
        tables={
            "regimes": regimes_table(profile),
            "profiles": profiles_table(profile),
            "two_sizes": sizes_table(profile),
            "largest_size": largest_table(profile),
        },
        charts=_charts(profile),
        warnings=_warnings(data, profile, parameters),
    )


def profile_of(data: Data, parameters: Parameters) -> Profile:
    """Regime, dominant axis and levels of every trajectory."""
    seen = data.observations.take(sized(data.configurations)[data.observations.configuration])
    size = len(data.trajectories)
    backbone, input_size = axis_levels(data.configurations)
    backbones = level_means(seen.trajectory, backbone[seen.configuration], seen.accuracy, size)
    sizes = level_means(seen.trajectory, input_size[seen.configuration], seen.accuracy, size)
    labels = data.trajectories.labels
    return Profile(
        regime=regime_of(data.trajectories.accuracy, cutoff=parameters.cutoff, easy=parameters.easy),
        axis=dominant(backbones, sizes),
        backbones=backbones.number,
        sizes=sizes.number,
        change=sizes.last - sizes.first,
        family=labels["family"],
        by={name: labels[name] for name in dict.fromkeys(parameters.by)},
    )


def sized(configurations: Configurations) -> npt.NDArray[np.bool_]:
    """Configurations with an input size; native size is none."""
    return np.asarray(~configurations.native & ~np.isnan(configurations.input_size))


def axis_levels(configurations: Configurations) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Backbone level (exact N; the model where N is unknown) and input size of each configuration, as numbers in ascending order."""
    unknown = np.isnan(configurations.parameters)
    named = [
        f"~{model}" if missing else f"{n:020.0f}"
        for model, n, missing in zip(configurations.model.tolist(), configurations.parameters.tolist(), unknown.tolist(), strict=True)
    ]
    backbone = np.unique(np.array(named, dtype=str), return_inverse=True)[1]
    return backbone.astype(np.int64), np.unique(configurations.input_size, return_inverse=True)[1].astype(np.int64)


def _charts(profile: Profile) -> Charts:
    def draw() -> Any:
        from analyses.profile import charts as profile_charts

        return profile_charts.axes(profile)

    return Charts({"axes": draw} if (profile.scaling & (profile.axis >= 0)).any() else {})


def _warnings(data: Data, profile: Profile, parameters: Parameters) -> list[str]:
    """What the data cannot support."""
    warnings = [f"no question has a {name}: all are profiled as one" for name, factor in profile.by.items() if factor.labels == [None]]
    if profile.family.labels == [None]:
        warnings.append("no series has a family: rows by family are those of all trajectories")
    left_out = ~sized(data.configurations)[data.observations.configuration]
    if left_out.any():
        warnings.append(
            f"{int(left_out.sum()):,} of {len(left_out):,} observations have no input size (native or not stated): they count for regimes, not for axes"
        )
    unknown = profile.scaling & (profile.axis < 0)
    if unknown.any():
        warnings.append(
            f"{int(unknown.sum()):,} scaling_bound trajectories have no observation with an input size: their axis is not known"
        )
    series = data.trajectories.labels["series"]
    for code, name in enumerate(series.labels):
        members = profile.scaling & (series.codes == code) & (profile.axis >= 0)
        if not members.any():
            continue
        for what, numbers, axis in (("backbone size", profile.backbones, "N"), ("input size", profile.sizes, "R")):
            if numbers[members].max() < 2:
                warnings.append(f"{name or 'none'}: its trajectories have one {what} and cannot be {axis}-dominated")
    if not (profile.regime == SCALING).any():
        warnings.append(
            f"no trajectory is scaling_bound between {parameters.cutoff:g} and {parameters.easy:g}: the tables of axes are empty"
        )
    return warnings
