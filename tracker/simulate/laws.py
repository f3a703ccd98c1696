"""The laws that a study plants: its own, else the fitted ones of the paper's Table 7."""

from __future__ import annotations

import tomllib
from functools import cache

from tracker.errors import UsageError
from tracker.simulate.spec import Law, StudyPlan, data_text


@cache
def table_7() -> tuple[Law, ...]:
    """The 20 fitted laws of the separable-law paper."""
    return tuple(Law(**values) for values in tomllib.loads(data_text("laws.toml"))["law"])


def law_of(plan: StudyPlan, series: str, suite: str | None, benchmark: str, *, own: tuple[Law, ...] = ()) -> Law:
    """The law of a series on a benchmark: for the benchmark itself, for its suite; a sweep's own, the study's, then Table 7."""
    for laws in (own, plan.law, table_7()):
        for law in laws:
            if law.series == series and law.benchmark == benchmark:
                return law
        for law in laws:
            if law.series == series and law.suite is not None and law.suite == suite:
                return law
    message = f"no law for series {series} on {benchmark}"
    raise UsageError(message, hint=f'add [[law]] with series = "{series}" and benchmark = "{benchmark}"')
