"""What a simulated study is: the strict reading of STUDY.toml, presets, and scaling."""

from __future__ import annotations

import tomllib
from importlib import resources
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from tracker.errors import SourceFormatError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

PRESETS = ("separable-law", "demo", "sweeps")
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


class Latency(_Strict):
    """Seconds of an answer: (base + per_tflop x 2 N T_prompt / 10^12) x exp(noise z - noise^2 / 2) with z standard normal."""

    base: float = Field(default=0.0, ge=0, description="s")
    per_tflop: float = Field(gt=0, description="s per 10^12 FLOP of the language model on the prompt")
    noise: float = Field(default=0.0, ge=0, le=2, description="standard deviation of log latency; the mean stays what it is")

    def expected(self, parameters: float, prompt_tokens: float) -> float:
        """Planted mean (s) of answers with N parameters and this many prompt tokens on average."""
        return self.base + self.per_tflop * 2 * parameters * prompt_tokens / 1e12


class BenchmarkPlan(_Strict):
    """A benchmark of the study. `images` defaults to what the package knows of the benchmark."""

    name: str
    questions: int = Field(gt=0)
    repeated: int = Field(default=0, ge=0, description="questions whose id occurs twice in every run")
    input_sizes: tuple[Size, ...] = Field(default=(), min_length=1)
    """None for a benchmark that is only swept."""
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


class SweepPlan(_Strict):
    """Models held fixed on native source images while one knob of the frontend is swept, crossed with source qualities."""

    models: tuple[str, ...] = Field(min_length=1)
    benchmarks: dict[str, Annotated[int, Field(gt=0)]] = Field(min_length=1)
    """Name -> number of questions: the first of the data set, as a limit of the evaluation tool takes them, each once."""
    max_tiles: tuple[Annotated[int, Field(ge=1, le=256)], ...] = ()
    pixel_cap: tuple[Annotated[int, Field(ge=1)], ...] = ()
    token_cap: tuple[Annotated[int, Field(ge=1)], ...] = ()
    """Pixel caps in visual tokens."""
    source_quality: tuple[Annotated[str, Field(pattern=r"^(native|[1-9][0-9]{1,4})$")], ...] = Field(default=("native",), min_length=1)
    """native, or the long edge (px) to which a source image is reduced before its canvas is restored."""
    pixels_per_token: float = Field(default=128.0, gt=0)
    """Pixels of a reduced source that are worth one visual token."""
    law: tuple[Law, ...] = ()
    """Laws of this sweep; those of the study hold where it names none."""

    @model_validator(mode="after")
    def _sweeps_one_knob(self) -> Self:
        given = {name: values for name in ("max_tiles", "pixel_cap", "token_cap") if (values := getattr(self, name))}
        if len(given) != 1:
            message = f"a sweep has one of max_tiles, pixel_cap and token_cap, not {' and '.join(given) or 'none'}"
            raise ValueError(message)
        for name, values in {**given, "source_quality": self.source_quality, "models": self.models}.items():
            if len(set(values)) < len(values):
                message = f"{name} repeats a value: {list(values)}"
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
    token_limit_hits: Share = 0.0
    """Share of scored records whose text runs into max_new_tokens."""
    unparsed: Share = 0.0
    """Share of scored records whose text names no option; they are wrong."""
    latency: Latency | None = None
    difficulty: Difficulty = Difficulty()
    reference: Reference = Reference()
    benchmark: tuple[BenchmarkPlan, ...] = Field(min_length=1)
    law: tuple[Law, ...] = ()
    """Laws of this study; those of the paper's Table 7 hold where it names none."""
    sweep: tuple[SweepPlan, ...] = ()

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

    @model_validator(mode="after")
    def _models_have_a_grid(self) -> Self:
        if self.models != "all" and not any(benchmark.input_sizes for benchmark in self.benchmark):
            message = "models are named, but no benchmark has input_sizes (a [[sweep]] names its own models)"
            raise ValueError(message)
        return self

    def described(self) -> dict[str, Any]:
        """The plan as truth.json holds it; options that came later are in it only where they are used."""
        later = ("token_limit_hits", "unparsed", "latency", "sweep")
        return self.model_dump(mode="json", exclude={name for name in later if not getattr(self, name)})

    def scaled(self, factor: float) -> StudyPlan:
        """The same study with `factor` times as many questions per benchmark."""
        if not factor > 0:
            message = f"--scale {factor} is not positive"
            raise UsageError(message)
        plans = tuple(
            plan.model_copy(update={"questions": max(1, round(plan.questions * factor)), "repeated": round(plan.repeated * factor)})
            for plan in self.benchmark
        )
        sweeps = tuple(
            sweep.model_copy(update={"benchmarks": {name: max(1, round(count * factor)) for name, count in sweep.benchmarks.items()}})
            for sweep in self.sweep
        )
        return self.model_copy(update={"benchmark": plans, "sweep": sweeps})


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
