"""The options that every analysis has; a subclass adds its own. One model serves the CLI, HTTP and Python."""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tracker.errors import UsageError

SEED = 20260909
"""The seed of the paper's configuration halves."""


class AnalysisParameters(BaseModel):
    """Options common to all analyses."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    where: str | None = Field(default=None, description="SQL condition on the columns of answers that narrows the cohort")
    cohort: str | None = Field(default=None, description="SQL that replaces the cohort: a SELECT with the columns of answers")
    seed: int = Field(default=SEED, description="seed of everything random")
    workers: int | None = Field(
        default=None, ge=1, description="threads; the numbers do not depend on it (default: all cores)", exclude=True
    )


P = TypeVar("P", bound=AnalysisParameters)


def checked(model: type[P], values: dict[str, Any]) -> P:
    """Parameters from outside, or a UsageError that names the option."""
    try:
        return model(**values)
    except ValidationError as err:
        first = err.errors()[0]
        option = "--" + str(first["loc"][0]).replace("_", "-") if first["loc"] else None
        raise UsageError(first["msg"].removeprefix("Value error, "), where=option) from err
