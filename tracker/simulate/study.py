"""Write a simulated study: run folders, native tables, labels, a study file, and the truth that was planted."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, field
from pathlib import Path  # noqa: TC003 - dataclass fields are read at run time
from typing import TYPE_CHECKING, Any, Literal

from tracker.errors import UsageError
from tracker.simulate.answers import Answers, draw, shortfalls
from tracker.simulate.cells import Study, study
from tracker.simulate.companions import asked, labels_csv, study_toml
from tracker.simulate.lmms_eval import Invocation, LmmsEvalWriter
from tracker.simulate.native import NativeWriter
from tracker.simulate.sweeps import SweepTruth
from tracker.simulate.trajectories import Trajectories

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tracker.catalog import Catalog
    from tracker.simulate.answers import Shortfall
    from tracker.simulate.cells import Cell
    from tracker.simulate.spec import StudyPlan

Form = Literal["lmms_eval", "native", "both"]
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
    sweeps: SweepTruth = field(default_factory=SweepTruth)
    generations: int = 0
    failed: int = 0
    without_probabilities: int = 0
    with_both_signals: int = 0
    token_limit_hits: int = 0
    unparsed: int = 0
    bytes: int = 0

    def add(self, answers: Answers) -> None:
        """Count a run and note its cell."""
        cell, scored = answers.cell, answers.scored
        self.generations += len(scored)
        self.failed += int(answers.failed.sum())
        self.without_probabilities += int((answers.logit_prediction[scored] < 0).sum())
        self.with_both_signals += int(answers.both_signals.sum())
        self.token_limit_hits += int(answers.at_limit.sum())
        self.unparsed += int((answers.prediction[scored] < 0).sum())
        if cell.setting is not None:
            self.sweeps.add(answers, _numbers(answers))
            return
        self.cells.append(
            {
                "model": cell.model.name,
                "series": cell.model.series,
                "suite": cell.suite,
                "benchmark": cell.benchmark.name,
                "input_size": cell.input_size,
                "parameters": cell.model.parameters,
                **_numbers(answers),
            }
        )


def _numbers(answers: Answers) -> dict[str, Any]:
    """What was planted in a cell and drawn from it."""
    scored, latency = answers.scored, answers.latency
    return {
        "visual_tokens": answers.mean_tokens,
        "planted_error": answers.planted_error,
        "mean_wrong_probability": float(answers.wrong_probability[scored].mean()) if scored.any() else None,
        "generations": len(scored),
        "n": int(scored.sum()),
        "errors": int((scored & ~answers.correct).sum()),
        "logit_agreement": int((answers.logit_prediction == answers.prediction)[answers.both_signals].sum()),
        **({} if latency is None else {"latency_s": float(latency[scored].mean()) if scored.any() else None}),
    }


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
    for cell in made.cells:
        made.planted_error(cell, made.views(cell).usable(made.rows(cell), cell.setting))


def _write(made: Study, folder: Path, final: Path, form: Form, progress: Callable[[str], None] | None) -> Report:
    lacking = shortfalls(made, [cell for model in made.models for cell in made.cells_of(model)])
    lacking |= shortfalls(made, list(made.swept), of="shortfalls of sweeps")
    lmms_eval = LmmsEvalWriter(folder / "lmms_eval", made.question_sets)
    native = NativeWriter(folder / "native", made.question_sets)
    trajectories, tally, order = Trajectories(made), _Tally(), 0
    for name, cells in _files(made):
        runs: list[Answers] = []
        for invoked in _invocations(cells):
            drawn = _drawn(made, invoked, lacking, tally, trajectories)
            if form != "native":
                tally.bytes += lmms_eval.write(Invocation(invoked[0], order), drawn)
            if form != "lmms_eval":
                runs.extend(drawn)
            order += 1
        if runs:
            tally.bytes += native.write(name, runs)
        if progress:
            progress(f"{name}: {tally.generations:,} generations")
    tally.bytes += (folder / "labels.csv").write_bytes(labels_csv(made).encode())
    tally.bytes += (folder / "study.toml").write_bytes(study_toml(made).encode())
    tally.bytes += (folder / "truth.json").write_bytes(json.dumps(_truth(made, tally, trajectories)).encode())
    return Report(
        folder=final,
        models=_models(made),
        cells=len(tally.cells) + len(tally.sweeps),
        generations=tally.generations,
        failed=tally.failed,
        without_probabilities=tally.without_probabilities,
        bytes=tally.bytes,
    )


def _files(made: Study) -> Iterator[tuple[str, list[Cell]]]:
    """Native tables: the grid of each model, then the sweeps of each."""
    for model in made.models:
        yield model.name, made.cells_of(model)
    for name in dict.fromkeys(cell.model.name for cell in made.swept):
        yield f"{name} sweeps", [cell for cell in made.swept if cell.model.name == name]


def _invocations(cells: list[Cell]) -> Iterator[list[Cell]]:
    """Cells that one call of the evaluation tool asks: the same place and the same limit on questions."""
    calls: dict[tuple[str, int | None], list[Cell]] = {}
    for cell in cells:
        calls.setdefault((cell.place, cell.limit), []).append(cell)
    yield from calls.values()


def _drawn(made: Study, cells: list[Cell], lacking: dict[Cell, Shortfall], tally: _Tally, trajectories: Trajectories) -> list[Answers]:
    """The runs of an invocation, counted; only the grid makes trajectories."""
    drawn = [draw(made, cell, lacking[cell]) for cell in cells]
    for answers in drawn:
        tally.add(answers)
        if answers.cell.setting is None:
            trajectories.add(answers)
    return drawn


def _models(made: Study) -> int:
    return len({cell.model.name for cell in made.cells})


def _truth(made: Study, tally: _Tally, trajectories: Trajectories) -> dict[str, Any]:
    slices = trajectories.truth()
    return {
        "seed": made.plan.seed,
        "plan": made.plan.described(),
        "counts": {
            "models": _models(made),
            "cells": len(tally.cells),
            "generations": tally.generations,
            "failed": tally.failed,
            "scored": tally.generations - tally.failed,
            "without_probabilities": tally.without_probabilities,
            "with_both_signals": tally.with_both_signals,
            "trajectories": sum(part["trajectories"] for part in slices),
            "observations": sum(part["observations"] for part in slices),
            "labelled_questions": sum(len(places) for name, places in asked(made).items() if made.question_sets[name].template.labels),
            **_later_counts(made, tally),
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
        **({"sweeps": tally.sweeps.truth()} if made.swept else {}),
    }


def _later_counts(made: Study, tally: _Tally) -> dict[str, int]:
    """Counts of options that came later, where they are used."""
    counts = {"token_limit_hits": tally.token_limit_hits, "unparsed": tally.unparsed}
    used = {name: count for name, count in counts.items() if getattr(made.plan, name)}
    return used | ({"sweep_cells": len(tally.sweeps)} if made.swept else {})


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
