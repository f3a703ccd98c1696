"""Write a simulated study: run folders, native tables, labels, a study file, and the truth that was planted."""

from __future__ import annotations

import csv
import io
import json
import shutil
from dataclasses import dataclass, field
from pathlib import Path  # noqa: TC003 - dataclass fields are read at run time
from typing import TYPE_CHECKING, Any, Literal

from tracker.errors import UsageError
from tracker.simulate.answers import Answers, draw, shortfalls
from tracker.simulate.cells import Study, study
from tracker.simulate.lmms_eval import Invocation, LmmsEvalWriter
from tracker.simulate.native import NativeWriter
from tracker.simulate.trajectories import Trajectories

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tracker.catalog import Catalog
    from tracker.simulate.spec import StudyPlan

Form = Literal["lmms_eval", "native", "both"]
LABEL_SOURCE = "simulated"
PARTIAL = ".partial"
"""Where a study is written until it is complete; left behind only by a kill."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What was written."""

    folder: Path
    models: int
    cells: int
    generations: int
    failed: int
    without_probabilities: int
    bytes: int


@dataclass(slots=True)
class _Tally:
    cells: list[dict[str, Any]] = field(default_factory=list)
    generations: int = 0
    failed: int = 0
    without_probabilities: int = 0
    bytes: int = 0

    def add(self, answers: Answers) -> None:
        """Count a run and note its cell."""
        cell, scored = answers.cell, answers.scored
        self.generations += len(scored)
        self.failed += int(answers.failed.sum())
        self.without_probabilities += int((answers.logit_prediction[scored] < 0).sum())
        self.cells.append(
            {
                "model": cell.model.name,
                "series": cell.model.series,
                "suite": cell.suite,
                "benchmark": cell.benchmark.name,
                "input_size": cell.input_size,
                "parameters": cell.model.parameters,
                "visual_tokens": answers.mean_tokens,
                "planted_error": answers.planted_error,
                "mean_wrong_probability": float(answers.wrong_probability[scored].mean()) if scored.any() else None,
                "generations": len(scored),
                "n": int(scored.sum()),
                "errors": int((scored & ~answers.correct).sum()),
                "logit_agreement": int((answers.logit_prediction == answers.prediction)[scored].sum()),
            }
        )


def simulate(
    plan: StudyPlan,
    folder: Path,
    *,
    form: Form = "lmms_eval",
    catalog: Catalog | None = None,
    force: bool = False,
    progress: Callable[[str], None] | None = None,
) -> Report:
    """Write the study into an empty folder (`force` replaces what an earlier simulation wrote there).

    Everything is checked before the first byte, and written to a folder inside it whose parts get their place at the end.
    """
    if catalog is None:
        from tracker.catalog import load

        catalog = load()
    _refuse_filled(folder, force=force)
    made = study(plan, catalog)
    check(made)
    existed, partial = folder.exists(), folder / PARTIAL
    try:
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        report = _write(made, partial, folder, form, progress)
        _put_in_place(partial, folder)
    except OSError as err:
        message = f"cannot be written: {err.strerror or err}"
        raise UsageError(message, where=str(err.filename or folder)) from err
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        if not existed and folder.exists() and not any(folder.iterdir()):
            folder.rmdir()
    return report


def check(made: Study) -> None:
    """Refuse a study with a cell whose planted error is none. Failed generations move mean tokens a little: drawing checks again."""
    for model in made.models:
        for cell in made.cells_of(model):
            rows = made.question_sets[cell.benchmark.name].rows
            made.planted_error(cell, float(made.views(cell).tokens[rows].mean()))


def _write(made: Study, folder: Path, final: Path, form: Form, progress: Callable[[str], None] | None) -> Report:
    cells = [cell for model in made.models for cell in made.cells_of(model)]
    lacking = shortfalls(made, cells)
    lmms_eval = LmmsEvalWriter(folder / "lmms_eval", made.question_sets)
    native = NativeWriter(folder / "native", made.question_sets)
    trajectories, tally, order = Trajectories(made), _Tally(), 0
    for model in made.models:
        runs: list[Answers] = []
        for input_size, size_cells in _by_size(made.cells_of(model)):
            drawn = [draw(made, cell, lacking[cell]) for cell in size_cells]
            for answers in drawn:
                tally.add(answers)
                trajectories.add(answers)
            if form != "native":
                tally.bytes += lmms_eval.write(Invocation(model, input_size, order), drawn)
            if form != "lmms_eval":
                runs.extend(drawn)
            order += 1
        if runs:
            tally.bytes += native.write(model, runs)
        if progress:
            progress(f"{model.name}: {tally.generations:,} generations")
    tally.bytes += (folder / "labels.csv").write_bytes(labels_csv(made).encode())
    tally.bytes += (folder / "study.toml").write_bytes(study_toml(made).encode())
    tally.bytes += (folder / "truth.json").write_bytes(json.dumps(_truth(made, tally, trajectories)).encode())
    return Report(
        folder=final,
        models=len(made.models),
        cells=len(tally.cells),
        generations=tally.generations,
        failed=tally.failed,
        without_probabilities=tally.without_probabilities,
        bytes=tally.bytes,
    )


def _by_size(cells: list[Any]) -> Iterator[tuple[int, list[Any]]]:
    for size in dict.fromkeys(cell.input_size for cell in cells):
        yield size, [cell for cell in cells if cell.input_size == size]


def labels_csv(made: Study) -> str:
    """Domain and skill of every question that has labels."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["benchmark", "question_key", "scheme", "value", "source"])
    for name, questions in made.question_sets.items():
        if questions.template.labels:
            for question in questions.questions:
                writer.writerow([name, question.key, "domain", question.domain, LABEL_SOURCE])
                writer.writerow([name, question.key, "skill", question.skill, LABEL_SOURCE])
    return text.getvalue()


def study_toml(made: Study) -> str:
    """The study file that says how the folders map to the schema."""
    questions = "\n".join(f"{json.dumps(benchmark.name)} = {benchmark.questions}" for benchmark in made.plan.benchmark)
    return f"""# How trackr reads these folders: the input size is part of the path.
labels = ["labels.csv"]

[questions]
{questions}

[[path]]
pattern = '(?:^|/)px0*(?P<input_size>\\d+)/'
input_mode = "fixed"
"""


def _truth(made: Study, tally: _Tally, trajectories: Trajectories) -> dict[str, Any]:
    slices = trajectories.truth()
    return {
        "seed": made.plan.seed,
        "plan": made.plan.model_dump(mode="json"),
        "counts": {
            "models": len(made.models),
            "cells": len(tally.cells),
            "generations": tally.generations,
            "failed": tally.failed,
            "scored": tally.generations - tally.failed,
            "without_probabilities": tally.without_probabilities,
            "with_both_signals": tally.generations - tally.failed - tally.without_probabilities,
            "trajectories": sum(part["trajectories"] for part in slices),
            "observations": sum(part["observations"] for part in slices),
            "labelled_questions": sum(len(part.questions) for part in made.question_sets.values() if part.template.labels),
        },
        "regimes": _summed(slices, "regimes"),
        "expected_regimes": _summed(slices, "expected_regimes"),
        "laws": [
            {"series": series, "benchmark": benchmark, **law}
            for (series, benchmark), law in {
                (cell.model.series, cell.benchmark.name): cell.law.model_dump(include={"floor", "a_n", "alpha", "b_r", "beta"})
                for model in made.models
                for cell in made.cells_of(model)
            }.items()
        ],
        "cells": tally.cells,
        "trajectories": slices,
    }


def _summed(slices: list[dict[str, Any]], key: str) -> dict[str, int]:
    return {regime: sum(part[key][regime] for part in slices) for regime in ("easy", "scaling_bound", "ceiling_bound")}


WRITTEN = frozenset({"lmms_eval", "native", "labels.csv", "study.toml", "truth.json"})


def _refuse_filled(folder: Path, *, force: bool) -> None:
    """A folder with something in it is refused; with `force` only what is no earlier simulation is."""
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        message = "is no folder"
        raise UsageError(message, where=str(folder))
    present = {path.name for path in folder.iterdir()} - {PARTIAL} if folder.exists() else set()
    if present and not force:
        message = "is not empty"
        raise UsageError(message, where=str(folder), hint="--force replaces an earlier simulation")
    if present - WRITTEN:
        message = f"holds {min(present - WRITTEN)!r}, which no simulation wrote"
        raise UsageError(message, where=str(folder), hint="choose another folder")


def _put_in_place(partial: Path, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in WRITTEN:
        target = folder / name
        if target.is_dir():
            shutil.rmtree(target)
        else:
            target.unlink(missing_ok=True)
    for part in sorted(partial.iterdir(), key=lambda path: path.name == "truth.json"):
        part.rename(folder / part.name)
