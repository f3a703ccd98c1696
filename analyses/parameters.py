"""The options that every analysis has; a subclass adds its own. One model serves the CLI, HTTP and Python."""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from tracker.errors import UsageError

SEED = 20260909
"""The seed of the paper's configuration halves."""


class AnalysisParameters(BaseModel):
    """Options common to all analyses."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    where: str | None = Field(default=None, description="SQL condition on the columns of answers that narrows the cohort")
    cohort: str | None = Field(default=None, description="SQL that replaces the cohort: a SELECT with the columns of answers")
    seed: int = Field(default=SEED, ge=0, description="seed of everything random")
    workers: int | None = Field(
        default=None,
        ge=1,
        description="threads and processes, at most one per core; the numbers do not depend on it (default: all cores)",
        exclude=True,
    )

    @field_validator("where", "cohort")
    @classmethod
    def _said(cls, text: str | None) -> str | None:
        if text is not None and not text.strip():
            message = "expected SQL, found none"
            raise ValueError(message)
        return text

    @field_validator("executor", check_fields=False)
    @classmethod
    def _somewhere(cls, executor: str) -> str:
        from analyses.executor import address_of

        address_of(executor)
        return executor


P = TypeVar("P", bound=AnalysisParameters)


def checked(model: type[P], values: dict[str, Any]) -> P:
    """Parameters from outside, or a UsageError that names the option."""
    try:
        return model(**values)
    except ValidationError as err:
        first = err.errors()[0]
        option = "--" + str(first["loc"][0]).replace("_", "-") if first["loc"] else None
        raise UsageError(first["msg"].removeprefix("Value error, "), where=option) from err
