"""What a simulated study is: the strict reading of STUDY.toml, presets, and scaling."""

from __future__ import annotations

import tomllib
from importlib import resources
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from tracker.errors import SourceFormatError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

PRESETS = ("separable-law", "demo")
Share = Annotated[float, Field(ge=0, le=1)]
Size = Annotated[int, Field(ge=28, le=16_384)]


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Shape(_Strict):
    """A class of image shapes: long side / short side, and how many images have it."""

    aspect: float = Field(ge=1, le=20)
    share: float = Field(gt=0)
    jitter: float = Field(default=0.012, ge=0, le=0.2, description="standard deviation of log aspect within the class")


class Images(_Strict):
    """Native sizes of a benchmark's images: mean width and height (px), spread of log size, mix of shapes."""

    width: float = Field(ge=28)
    height: float = Field(ge=28)
    spread: float = Field(default=0.1, ge=0, le=1)
    shapes: tuple[Shape, ...] = Field(min_length=1)


class Law(_Strict):
    """error = floor + a_n (N / Nref)^-alpha + b_r (R / Rref)^-beta for a series on a suite or on one benchmark of it."""

    series: str
    suite: str | None = None
    benchmark: str | None = None
    floor: float
    a_n: float = Field(ge=0)
    alpha: float = Field(ge=0)
    b_r: float = Field(ge=0)
    beta: float = Field(ge=0)

    @model_validator(mode="after")
    def _has_one_target(self) -> Self:
        if (self.suite is None) == (self.benchmark is None):
            message = "a law names either its suite or its benchmark"
            raise ValueError(message)
        return self

    def error(self, parameters: float, tokens: float, reference: Reference) -> float:
        """Planted error of a cell with N = parameters and R = mean visual tokens."""
        capacity: float = self.a_n * (parameters / reference.parameters) ** -self.alpha
        vision: float = self.b_r * (tokens / reference.tokens) ** -self.beta
        return self.floor + capacity + vision


class Reference(_Strict):
    """The point at which a_n and b_r are the contributions of the two axes."""

    parameters: float = Field(default=6.60e9, gt=0)
    tokens: float = Field(default=1_135.0, gt=0)


class Difficulty(_Strict):
    """How hardness spreads over questions, in logits of the probability of a wrong answer."""

    spread: float = Field(default=2.0, ge=0, le=20, description="standard deviation of the latent difficulty")
    shared: Share = 0.72
    """Share of its variance that a question has in every series."""
    coherence: Share = 0.15
    """Share of answers decided by one number per question and series instead of a fresh one."""


class BenchmarkPlan(_Strict):
    """A benchmark of the study. `images` defaults to what the package knows of the benchmark."""

    name: str
    questions: int = Field(gt=0)
    repeated: int = Field(default=0, ge=0, description="questions whose id occurs twice in every run")
    input_sizes: tuple[Size, ...] = Field(min_length=1)
    images: Images | None = None

    @model_validator(mode="after")
    def _repeats_fit(self) -> Self:
        if self.repeated > self.questions:
            message = f"repeated ({self.repeated}) exceeds questions ({self.questions})"
            raise ValueError(message)
        if len(set(self.input_sizes)) < len(self.input_sizes):
            message = f"input_sizes repeats a size: {list(self.input_sizes)}"
            raise ValueError(message)
        return self


class StudyPlan(_Strict):
    """A simulated study."""

    seed: int = Field(default=20_260_909, ge=0)
    models: Literal["all"] | tuple[str, ...] = "all"
    failed: Share = 0.0
    """Share of generations that fail."""
    without_probabilities: Share = 0.0
    """Share of scored records without usable option confidences."""
    agreement: Share = 0.966
    """Share of records whose logit prediction equals the text prediction."""
    difficulty: Difficulty = Difficulty()
    reference: Reference = Reference()
    benchmark: tuple[BenchmarkPlan, ...] = Field(min_length=1)
    law: tuple[Law, ...] = ()
    """Laws of this study; those of the paper's Table 7 hold where it names none."""

    @model_validator(mode="after")
    def _names_are_unique(self) -> Self:
        names = [benchmark.name for benchmark in self.benchmark]
        if len(set(names)) < len(names):
            message = f"benchmark names repeat: {names}"
            raise ValueError(message)
        if self.models != "all" and (not self.models or len(set(self.models)) < len(self.models)):
            message = "models is empty or names a model twice"
            raise ValueError(message)
        return self

    def scaled(self, factor: float) -> StudyPlan:
        """The same study with `factor` times as many questions per benchmark."""
        if not factor > 0:
            message = f"--scale {factor} is not positive"
            raise UsageError(message)
        plans = tuple(
            plan.model_copy(update={"questions": max(1, round(plan.questions * factor)), "repeated": round(plan.repeated * factor)})
            for plan in self.benchmark
        )
        return self.model_copy(update={"benchmark": plans})


T = TypeVar("T", bound=BaseModel)


def load(path: Path) -> StudyPlan:
    """Read STUDY.toml; what is wrong is named with its key."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as err:
        message = f"cannot be read: {err.strerror}"
        raise UsageError(message, where=str(path)) from err
    except UnicodeDecodeError as err:
        raise SourceFormatError(str(path), f"byte {err.start}", "UTF-8 text", err.reason) from err
    return parse(text, str(path))


def parse(text: str, name: str) -> StudyPlan:
    """A study plan from TOML text."""
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as err:
        raise SourceFormatError(name, "", "TOML", str(err)) from err
    return checked(StudyPlan, values, name)


def preset(name: str) -> StudyPlan:
    """A study that ships with the package."""
    if name not in PRESETS:
        message = f"no preset {name!r}"
        raise UsageError(message, hint=f"known presets: {', '.join(PRESETS)}")
    return parse(data_text(f"{name}.toml"), f"preset {name}")


def data_text(name: str) -> str:
    """A data file of this package."""
    return resources.files("tracker.simulate").joinpath("data", name).read_text(encoding="utf-8")


def checked(model: type[T], values: dict[str, Any], name: str) -> T:
    """Validate, or say which key holds what and what was expected there."""
    try:
        return model.model_validate(values)
    except ValidationError as err:
        first = err.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "study"
        expected = {"extra_forbidden": "no such key", "missing": "a value"}.get(first["type"], first["msg"])
        found = "nothing" if first["type"] == "missing" else first["input"]
        raise SourceFormatError(name, place, expected, found, hint="docs/simulate.md lists the keys") from err
