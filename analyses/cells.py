"""Cells: a configuration on a benchmark (or on a labelled part of it), the points that laws are fitted to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import Field, field_validator

from analyses.answers import COLUMNS, QUESTION_LABELS, load_answers
from analyses.grid import on_the_grid
from analyses.grouping import mean_by
from analyses.notes import Note, merged
from analyses.opening import nothing, opened
from analyses.parameters import AnalysisParameters
from analyses.ranges import Reference  # noqa: TC001 - pydantic reads annotations
from tracker.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from analyses.answers import Answers
    from analyses.opening import Opened
    from analyses.session import StarSession

By = Literal[
    "family", "series", "model", "suite", "benchmark", "input_mode", "variant", "max_tiles", "pixel_cap", "source_quality",
    "task", "category", "domain", "skill",
]  # fmt: skip
"""What cells can be grouped by; the last four split the questions of a benchmark."""

ResourceName = Literal["tokens", "effective_pixels"]
"""Columns of cells that may be R."""
PARAMETERS_OF_MODEL = "the parameters of their model"
BILLION = 1e9
SHOWN = 5


class CellParameters(AnalysisParameters):
    """Options of every analysis over cells."""

    by: tuple[By, ...] = Field(default=("series", "suite"), description="columns whose values make a group; repeatable or comma-separated")
    records: Literal["scored", "both"] = Field(
        default="scored", description="scored: every scored answer; both: those that have a probability as well"
    )
    drop: tuple[str, ...] = Field(default=(), description="leave out the cells with COLUMN=VALUE, such as input_size=4096")
    reference: Reference = Field(
        default=None, description="reference N (billions) and R, such as 6.6,1135, instead of the geometric means over all cells"
    )
    include_native: bool = Field(default=False, description="let cells at native image size in")
    include_sweeps: bool = Field(default=False, description="let cells of sweeps in (tiles, pixel caps, source quality, branches)")

    @field_validator("drop")
    @classmethod
    def _named(cls, drop: tuple[str, ...]) -> tuple[str, ...]:
        for text in drop:
            if "=" not in text:
                message = f"expected COLUMN=VALUE, found {text!r}"
                raise ValueError(message)
        return drop


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """Cells by (series, parameters, input size, model, fingerprint, benchmark, labels). Arrays have one entry per cell."""

    text: dict[str, npt.NDArray[np.object_]]
    """family, series, model, suite, benchmark, fingerprint, input_mode, source_quality, variant, and the labels they are split by.

    A benchmark of no suite is a suite of its own, by its name.
    """
    run: npt.NDArray[np.int64]
    """A run of the cell (row of `answers.runs`)."""
    configuration: npt.NDArray[np.int64]
    parameters: npt.NDArray[np.float64]
    """N: parameters of the language model, in billions; NaN where unknown."""
    input_size: npt.NDArray[np.float64]
    numbers: dict[str, npt.NDArray[np.float64]]
    """Further settings: max_tiles, pixel_cap, vision_branches, language_branches, max_new_tokens."""
    n: npt.NDArray[np.int64]
    """Scored answers."""
    error: npt.NDArray[np.float64]
    """1 - mean credit."""
    tokens: npt.NDArray[np.float64]
    """R: mean visual tokens of the answers that state them; NaN where none does."""
    prompt_tokens: npt.NDArray[np.float64]
    generated_tokens: npt.NDArray[np.float64]
    effective_pixels: npt.NDArray[np.float64]
    latency_s: npt.NDArray[np.float64]

    def __len__(self) -> int:
        """Number of cells."""
        return len(self.n)

    def take(self, rows: npt.NDArray[Any]) -> Cells:
        """Some of the cells."""
        return Cells(
            text={name: values[rows] for name, values in self.text.items()},
            numbers={name: values[rows] for name, values in self.numbers.items()},
            **{name: getattr(self, name)[rows] for name in self.__slots__ if name not in {"text", "numbers"}},
        )

    @property
    def flops(self) -> npt.NDArray[np.float64]:
        """C = 2 P T: FLOP of the language model on the mean prompt (separable-law paper, Eq. 20)."""
        return 2.0 * self.parameters * BILLION * self.prompt_tokens

    def name(self, cell: int) -> str:
        """How messages name a cell."""
        size = self.input_size[cell]
        where = "" if np.isnan(size) else f" at {size:g} px"
        return f"{self.text['model'][cell]} on {self.text['benchmark'][cell]}{where}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Groups:
    """Cells in groups by the values of some columns, in alphabetical order."""

    by: tuple[str, ...]
    keys: list[tuple[str | None, ...]]
    code: npt.NDArray[np.int64]
    """Group of each cell."""

    def __len__(self) -> int:
        """Number of groups."""
        return len(self.keys)

    def name(self, group: int) -> str:
        """Such as InternVL3 x HR-Bench."""
        return " x ".join("none" if value is None else str(value) for value in self.keys[group])

    def column(self, name: str) -> list[str | None]:
        """The value of one column in each group."""
        place = self.by.index(name)
        return [key[place] for key in self.keys]

    def members(self, group: int) -> npt.NDArray[np.int64]:
        """Cells of a group."""
        return np.flatnonzero(self.code == group)


@dataclass(frozen=True, slots=True, kw_only=True)
class CellStudy:
    """The cells of a cohort with the answers they are made of."""

    opened: Opened
    answers: Answers
    cell_of: npt.NDArray[np.int64]
    """Cell of each answer; -1 where the answer is in none."""
    cells: Cells
    groups: Groups
    reference: tuple[float, float]
    """Reference N (billions) and R: geometric means over all cells with both, before anything is split or dropped; else as pinned; NaN
    where no cell has the number."""
    warnings: list[str]


def study_of_cells(
    session: StarSession, analysis: str, parameters: CellParameters, *, split: Sequence[str] = (), cohort: str = "cells"
) -> CellStudy:
    """Read the cohort and make its cells, split by the labels of `split` and of `--by`; AnalysisError where there is none."""
    with opened(session, analysis, parameters, cohort=cohort, columns=COLUMNS) as one:
        answers = load_answers(session)
    if not len(answers):
        raise nothing(parameters)
    warnings: list[str] = []
    kept = on_the_grid(answers.runs, warnings, native=parameters.include_native, sweeps=parameters.include_sweeps)
    if not kept[answers.run].any():
        raise nothing(
            parameters, "every answer is at native image size or part of a sweep", hint="--include-native and --include-sweeps let them in"
        )
    labels = tuple(dict.fromkeys((*split, *(name for name in parameters.by if name in QUESTION_LABELS))))
    cells, cell_of = make_cells(answers, labels, kept)
    reference = parameters.reference or reference_of(make_cells(answers, (), kept)[0] if labels else cells)
    keep = kept_cells(cells, parameters.drop, warnings)
    if not keep.any():
        raise nothing(parameters, "--drop leaves no cell", hint="drop less")
    if not keep.all():
        renumbered = np.where(keep, np.cumsum(keep) - 1, -1)
        cells, cell_of = cells.take(keep), np.where(cell_of >= 0, renumbered[cell_of], -1)
    return CellStudy(
        opened=one,
        answers=answers,
        cell_of=cell_of,
        cells=cells,
        groups=group_cells(cells, parameters.by),
        reference=reference,
        warnings=warnings,
    )


def make_cells(answers: Answers, labels: Sequence[str], kept: npt.NDArray[np.bool_]) -> tuple[Cells, npt.NDArray[np.int64]]:
    """Cells of the answers of the kept runs, and the cell of each answer."""
    runs, questions = answers.runs, answers.questions
    benchmark = np.unique(runs.text["benchmark"].astype(str), return_inverse=True)[1]
    place: dict[tuple[int, int], int] = {}
    unit = np.array(
        [place.setdefault((int(c), int(b)), len(place)) for c, b in zip(runs.configuration, benchmark, strict=True)], dtype=np.int64
    )
    key = unit[answers.run]
    codes = []
    for label in labels:
        values, code = np.unique(
            np.array(["" if v is None else str(v) for v in questions.text[label].tolist()], dtype=str), return_inverse=True
        )
        codes.append((label, values, code))
        key = key * len(values) + code[answers.question]
    inside = kept[answers.run]
    distinct, first, position = np.unique(key[inside], return_index=True, return_inverse=True)
    cell_of = np.full(len(answers), -1, dtype=np.int64)
    cell_of[inside] = position
    size, row = len(distinct), np.flatnonzero(inside)[first]
    run = answers.run[row]
    text = {name: values[run] for name, values in runs.text.items()}
    text["suite"] = np.where([suite is None for suite in text["suite"].tolist()], text["benchmark"], text["suite"])
    for label, values, code in codes:
        named = values[code[answers.question[row]]]
        text[label] = np.array([None if value == "" else str(value) for value in named.tolist()], dtype=object)
    means = {name: mean_by(position, answers.numbers[name][inside], size) for name in answers.numbers}
    numbers = {name: values[run] for name, values in runs.numbers.items()}
    cells = Cells(
        text=text,
        run=run,
        configuration=runs.configuration[run],
        parameters=numbers.pop("parameters") / BILLION,
        input_size=numbers.pop("input_size"),
        numbers=numbers,
        n=np.bincount(position, minlength=size),
        error=1.0 - means["credit"],
        tokens=means["visual_tokens"],
        prompt_tokens=means["prompt_tokens"],
        generated_tokens=means["generated_tokens"],
        effective_pixels=means["effective_pixels"],
        latency_s=means["latency_s"],
    )
    return cells, cell_of


def reference_of(cells: Cells) -> tuple[float, float]:
    """Geometric means of N (billions) and R over all cells that have both; where none has, each over those that have it, or NaN."""
    known = {"N": cells.parameters > 0, "R": cells.tokens > 0}
    both = known["N"] & known["R"]
    means = (geometric_mean(values[both if both.any() else known[axis]]) for axis, values in (("N", cells.parameters), ("R", cells.tokens)))
    reference_n, reference_r = means
    return reference_n, reference_r


def geometric_mean(values: npt.NDArray[np.float64]) -> float:
    """Geometric mean; NaN of nothing."""
    return float(np.exp(np.log(values).mean())) if len(values) else float("nan")


def kept_cells(cells: Cells, drop: Sequence[str], warnings: list[str]) -> npt.NDArray[np.bool_]:
    """Which cells `--drop` leaves; UsageError where a column is none of the cells'."""
    keep = np.ones(len(cells), dtype=bool)
    columns: dict[str, npt.NDArray[Any]] = {**cells.text, **cells.numbers, "input_size": cells.input_size, "parameters": cells.parameters}
    for text in drop:
        name, _, value = (part.strip() for part in text.partition("="))
        if name not in columns:
            message = f"cells have no column {name!r}"
            raise UsageError(message, where="--drop", hint="there are: " + ", ".join(sorted(columns)))
        dropped = np.array([_spelled(item) == value or _spelled(item) == _numeral(value) for item in columns[name].tolist()], dtype=bool)
        if not dropped.any():
            warnings.append(f"--drop {text}: no cell has it")
        keep &= ~dropped
    return keep


def _spelled(value: Any) -> str:
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _numeral(text: str) -> str:
    try:
        return f"{float(text):g}"
    except ValueError:
        return text


def group_cells(cells: Cells, by: Sequence[str]) -> Groups:
    """Group the cells by the values of columns."""
    by = tuple(dict.fromkeys(by))
    columns = [
        cells.text[name]
        if name in cells.text
        else np.array([None if v != v else _spelled(v) for v in cells.numbers[name].tolist()], dtype=object)  # noqa: PLR0124 - NaN
        for name in by
    ]
    keys = list(zip(*(column.tolist() for column in columns), strict=True)) if by else [()] * len(cells)
    ordered = sorted(set(keys), key=lambda key: tuple((value is None, str(value)) for value in key))
    number = {key: place for place, key in enumerate(ordered)}
    return Groups(by=by, keys=ordered, code=np.array([number[key] for key in keys], dtype=np.int64))


def lacking(study: CellStudy, resource: ResourceName = "tokens") -> dict[str, npt.NDArray[np.bool_]]:
    """What a fit needs, and which cells lack it."""
    cells = study.cells
    return {
        PARAMETERS_OF_MODEL: ~(cells.parameters > 0),
        "visual_tokens" if resource == "tokens" else resource: ~(getattr(cells, resource) > 0),
        "an error": np.isnan(cells.error),
    }


def fittable(study: CellStudy, *, resource: ResourceName = "tokens") -> tuple[npt.NDArray[np.bool_], list[str]]:
    """Which cells have N, R and an error, and warnings that name the groups of those that have not."""
    lacks = lacking(study, resource)
    notes = []
    for group in range(len(study.groups)):
        for what, some, count in _lacked(study, group, lacks):
            named = ", ".join(dict.fromkeys(str(study.cells.text["model"][cell]) for cell in some[:SHOWN]))
            hint = " (trackr catalog import FILE describes a model)" if what == PARAMETERS_OF_MODEL else ""
            notes.append(
                Note(
                    study.groups.name(group) or "all cells",
                    f"{len(some):,} of {count:,} cells lack {what}{hint} and are left out ({named})",
                    f"cells lack {what}{hint} and are left out",
                )
            )
    return ~np.logical_or.reduce(list(lacks.values())), merged(notes, len(study.groups))


def lacks_of_groups(study: CellStudy, resources: Sequence[ResourceName] = ("tokens",)) -> tuple[str, ...]:
    """What cells of each group lack, for its status; empty where they have all."""
    lacks = {what: mask for resource in resources for what, mask in lacking(study, resource).items()}
    return tuple(
        "; ".join(f"{len(some):,} of {count:,} cells lack {what}" for what, some, count in _lacked(study, group, lacks))
        for group in range(len(study.groups))
    )


def _lacked(study: CellStudy, group: int, lacks: dict[str, npt.NDArray[np.bool_]]) -> Iterator[tuple[str, npt.NDArray[np.int64], int]]:
    """What cells of a group lack, which cells, and how many cells it has."""
    members = study.groups.members(group)
    for what, mask in lacks.items():
        if mask[members].any():
            yield what, members[mask[members]], len(members)


def group_blocks(groups: Groups, keep: npt.NDArray[np.bool_]) -> Iterator[tuple[int, npt.NDArray[np.int64]]]:
    """Each group with its kept cells."""
    for group in range(len(groups)):
        yield group, np.flatnonzero((groups.code == group) & keep)
