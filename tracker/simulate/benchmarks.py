"""What the package knows of the questions of each benchmark (data/benchmarks.toml)."""

from __future__ import annotations

import tomllib
from functools import cache
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from tracker.errors import UsageError
from tracker.simulate.spec import Images, data_text

Layout = Literal["hrbench", "mme_realworld", "treebench", "vstar"]


class Category(BaseModel):
    """A category in the benchmark's own words."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    task: Literal["perception", "reasoning"]
    share: float
    hard: float
    """How much harder than the benchmark's mean, in logits."""
    subcategory: str | None = None
    fields: tuple[str, ...] = ()
    """Finer categories below the subcategory."""
    options: int | None = None
    """Number of options, where the category fixes it."""
    skills: dict[str, float]
    domains: dict[str, float]

    @property
    def full_name(self) -> str:
        """Category and subcategory in one."""
        return f"{self.name}/{self.subcategory}" if self.subcategory else self.name


class Template(BaseModel):
    """How questions of a benchmark are made and written."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    layout: Layout
    """Which of lmms-eval's score dictionaries its rows carry."""
    task: str
    """lmms-eval's name of the task."""
    images: Images
    options: dict[int, float]
    """Number of options -> share of questions."""
    category: tuple[Category, ...]
    cycles: int = Field(default=1, gt=0)
    """Option orders in which each question is asked, each with an id of its own."""
    pairs: str | None = None
    """Releases with the same value hold the same questions."""
    labels: bool = True
    """Whether its questions carry domain and skill labels."""


@cache
def templates() -> dict[str, Template]:
    """Template of each benchmark by its catalog name."""
    return {name: Template(**values) for name, values in tomllib.loads(data_text("benchmarks.toml")).items()}


def template(benchmark: str) -> Template:
    """The template of a benchmark."""
    known = templates()
    if benchmark not in known:
        message = f"benchmark {benchmark!r} cannot be simulated"
        raise UsageError(message, hint=f"known benchmarks: {', '.join(known)}")
    return known[benchmark]
