"""An MLflow run becomes batches: header, metric histories, scores, and records from evaluation tables and traces.

docs/format-mlflow.md says by which names and rules.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Literal

from tracker.batch import AggregateScore, Batch, Refusal, RunHeader, Settings, empty_records
from tracker.errors import InputError
from tracker.readers.mlflow.points import LATEST_MS
from tracker.readers.mlflow.traces import model_of
from tracker.readers.secrets import HIDDEN, hides, masked_text
from tracker.readers.setting import PRECISION_KEYS, SPELLINGS, settings_from
from tracker.readers.values import number

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tracker.batch import Source
    from tracker.readers.mlflow.model import MlflowRun
    from tracker.study import Study

FRAMEWORK = "mlflow"
MODEL_KEYS = (
    "model", "model_name", "model_name_or_path", "_name_or_path", "pretrained", "base_model", "base_model_name", "base_model_name_or_path",
    "model_id", "model_path", "model.name", "model/name", "llm", "engine", "backbone", "architecture", "arch",
)  # fmt: skip
"""Tags and params that name the model, in order."""
BENCHMARK_KEYS = ("benchmark", "benchmark_name", "eval_benchmark")
"""Tags and params that name the benchmark of any run, in order."""
EVALUATION_KEYS = (
    "eval_dataset",
    "eval_dataset_name",
    "evaluation_dataset",
    "test_dataset",
    "task",
    "task_name",
    "dataset_name",
    "dataset",
    "eval_set",
)
"""Those that name it in an evaluation run alone: a training run's data set is what it learned from."""
KIND_KEYS = ("kind", "run_kind", "run_type", "mlflow.runType", "job_type", "stage", "phase")
"""Tags and params that say what a run does, in order."""
_EVALUATION = re.compile(r"(?:.*[_ -])?(?:eval|evaluation|evaluate|test|testing|benchmark|inference)", re.IGNORECASE)
_TRAINING = re.compile(r"(?:.*[_ -])?(?:train|training|pretrain|pretraining|finetune|fine-tune|finetuning|fine-tuning)", re.IGNORECASE)
_STATUS: dict[str, tuple[Literal["finished", "partial", "failed"], str | None]] = {
    "FINISHED": ("finished", None),
    "RUNNING": ("partial", "still running"),
    "SCHEDULED": ("partial", "not begun"),
    "FAILED": ("failed", "failed"),
    "KILLED": ("failed", "killed"),
}
_NOTE = "mlflow.note.content"
_FACTS = {
    "mlflow.parentRunId": "parent_run",
    "mlflow.source.name": "source_name",
    "mlflow.source.type": "source_type",
    "mlflow.source.git.commit": "git_commit",
    "mlflow.source.git.branch": "git_branch",
    "mlflow.source.git.repoURL": "git_repository",
    "mlflow.runType": "mlflow_run_type",
}
"""MLflow's own tags that stay, as settings."""
CONFIGURING = frozenset(
    {
        "input_mode",
        "revision",
        "model_revision",
        "load_in_4bit",
        "load_in_8bit",
        *PRECISION_KEYS,
        *(one for names in SPELLINGS.values() for one in names),
    }
)
"""Every name that `settings_from` looks for."""
_NO_RECORDS = empty_records()
_NOTHING = frozenset({"", "none", "null", "nan", "n/a", "-"})
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def batches(run: MlflowRun, source: Source, study: Study) -> Iterator[Batch | Refusal]:
    """A run with its metric histories, scores and records; `source` is where it was found."""
    yield from run.refusals
    if not run.tables and not run.traces:
        header = header_of(run, kind_of(run))
        yield Batch(run=header, records=_NO_RECORDS, metric_points=run.points, scores=scores_of(run, header, source, study))
        return
    yield from _with_records(run, source, study)


# ---- the run ---------------------------------------------------------------------------------


def kind_of(run: MlflowRun, *, has_records: bool = False) -> Literal["evaluation", "training"]:
    """What a run does, by its tags and params, else by whether it holds answers."""
    for key in KIND_KEYS:
        if key in run.tags or key in run.params:
            told = _named(run, (key,)) or ""
            if _EVALUATION.fullmatch(told):
                return "evaluation"
            if _TRAINING.fullmatch(told):
                return "training"
    return "evaluation" if has_records else "training"


def header_of(run: MlflowRun, kind: Literal["evaluation", "training"], benchmark: str | None = None) -> RunHeader:
    """The header of a run."""
    status, reason = _STATUS.get(run.status.upper(), ("partial", f"status {run.status}"))
    if run.partial and status == "finished":
        status, reason = "partial", run.partial
    return RunHeader(
        model=_named(run, MODEL_KEYS) or model_of(run.traces) or run.experiment.strip() or run.experiment_id,
        benchmark=benchmark or benchmark_of(run, kind),
        kind=kind,
        configuration=_configuration(run),
        external_id=run.run_id,
        framework=FRAMEWORK,
        status=status,
        status_reason=reason,
        started_at=moment(run.start_ms),
        ended_at=moment(run.end_ms),
        system=_named(run, ("system",)),
        settings=_settings(run),
        tags={name: _plain(name, value) for name, value in run.tags.items() if not name.startswith("mlflow.")}
        | ({"note": run.tags[_NOTE]} if run.tags.get(_NOTE) else {}),
    )


def benchmark_of(run: MlflowRun, kind: str) -> str | None:
    """The benchmark, as tags and params name it, else the only data set that an evaluation run was given."""
    found = _named(run, BENCHMARK_KEYS)
    if found is None and kind == "evaluation":
        datasets = {str(one["name"]) for one in run.datasets if one.get("name")} - {"dataset"}
        found = _named(run, EVALUATION_KEYS) or (datasets.pop() if len(datasets) == 1 else None)
    return found


def moment(time_ms: int | None) -> datetime | None:
    """A time of MLflow, exactly; None for one that is no time."""
    if time_ms is None or not 0 < time_ms <= LATEST_MS:
        return None
    return _EPOCH + timedelta(milliseconds=time_ms)


def _named(run: MlflowRun, keys: Iterable[str]) -> str | None:
    """The first of some keys that tags or params have; tags go first."""
    tags, params = run.tags, run.params
    for key in keys:
        if key in tags or key in params:
            for told in (tags.get(key), params.get(key)):
                if told is not None and (word := told.strip()).lower() not in _NOTHING:
                    return word
    return None


def _configuration(run: MlflowRun) -> Settings:
    return _settings_of(*(tuple((name, held[name]) for name in held if _may_configure(name)) for held in (run.params, run.tags)))


@lru_cache(maxsize=4096)
def _settings_of(params: tuple[tuple[str, str], ...], tags: tuple[tuple[str, str], ...]) -> Settings:
    """The configuration columns; runs of a sweep mostly share them."""
    return settings_from(dict(params), dict(tags))


@cache
def _may_configure(name: str) -> bool:
    """Whether a name can be a spelling of a configuration column (it counts by its last part)."""
    return not name.startswith("mlflow.") and bool({name, name.rpartition(".")[2].rpartition("/")[2]} & CONFIGURING)


def _settings(run: MlflowRun) -> dict[str, Any]:
    kept: dict[str, Any] = {
        "params": {name: _plain(name, value) for name, value in run.params.items()},
        "experiment": run.experiment,
        "experiment_id": run.experiment_id,
        "run_name": run.name or run.tags.get("mlflow.runName"),
        "user": run.user or run.tags.get("mlflow.user"),
        "datasets": [{name: value for name, value in one.items() if value is not None} for one in run.datasets],
        "logged_models": [_model(one) for one in run.models],
    }
    kept |= {name: _plain(name, run.tags[tag]) for tag, name in _FACTS.items() if run.tags.get(tag)}
    return {name: value for name, value in kept.items() if value not in (None, "", [], {})}


def _model(model: Any) -> dict[str, Any]:
    told = {"model_id": model.model_id, "name": model.name, "status": model.status}
    told["params"] = {name: _plain(name, value) for name, value in model.params.items()}
    told["tags"] = {name: _plain(name, value) for name, value in model.tags.items() if not name.startswith("mlflow.")}
    return {name: value for name, value in told.items() if value not in (None, {}, "")}


def _plain(name: str, value: str) -> str:
    """A value without what gives access to something."""
    return HIDDEN if hides(name, value) else masked_text(value)


# ---- scores ----------------------------------------------------------------------------------


def scores_of(run: MlflowRun, header: RunHeader, source: Source, study: Study) -> tuple[AggregateScore, ...]:
    """Aggregate scores: of an evaluation run the last value of each metric, of any run those of its logged models."""
    kind = study.apply(header, source).kind if study.path or study.config else header.kind
    last = _last_values(run) if kind == "evaluation" else []
    return (*last, *_model_scores(run))


def _last_values(run: MlflowRun) -> list[AggregateScore]:
    """Points are ordered by metric, step and time: the last of each metric counts."""
    points = run.points
    if not points.num_rows:
        return []
    names = points.column("metric").to_pylist()
    ends = [at for at in range(len(names)) if at + 1 == len(names) or names[at + 1] != names[at]]
    return [
        AggregateScore(metric=row["metric"], value=row["value"], special=row["special"], step=row["step"])
        for row in points.select(["metric", "value", "special", "step"]).take(ends).to_pylist()
    ]


def _model_scores(run: MlflowRun) -> list[AggregateScore]:
    """The last value of each metric of each logged model and data set, named METRIC|model=NAME|dataset=NAME."""
    names = [model.name for model in run.models]
    found: dict[tuple[str, str, str | None], tuple[tuple[int, int], AggregateScore]] = {}
    for model in run.models:
        called = model.name if model.name and names.count(model.name) == 1 else model.model_id
        for one in model.metrics:
            dataset = one.get("dataset_name")
            metric = f"{one['name']}|model={called}" + (f"|dataset={dataset}" if dataset else "")
            step, time = int(one.get("step") or 0), int(one.get("timestamp") or 0)
            key = (model.model_id, metric, one.get("dataset_digest"))
            told = number(one.get("value"))
            if told == (None, None):
                continue
            if key not in found or found[key][0] <= (step, time):
                score = AggregateScore.model_validate({"metric": metric, "value": told.value, "special": told.special, "step": step})
                found[key] = ((step, time), score)
    return [score for _, score in found.values()]


# ---- records ---------------------------------------------------------------------------------


def _with_records(run: MlflowRun, source: Source, study: Study) -> Iterator[Batch | Refusal]:
    """The run's own batch goes with the first part that holds records; each further part is a run of its own."""
    from tracker.readers.mlflow.parts import parts_of

    parts: Sequence[Any]
    refusals: list[Refusal] = []
    parts = list(parts_of(run, source, study, refusals))
    yield from refusals
    kind = kind_of(run, has_records=bool(parts))
    own = benchmark_of(run, kind)
    header = header_of(run, kind, own)
    rest = [artifact.path for artifact in run.tables if artifact.path not in {part.path for part in parts}]
    if rest:
        header = header.model_copy(update={"settings": header.settings | {"tables_without_questions": rest}})
    scores = scores_of(run, header, source, study)
    headers = [_part_header(header, part, own, run, several=len(parts) > 1) for part in parts]
    yield Batch(run=headers[0] if headers else header, records=_NO_RECORDS, metric_points=run.points, scores=scores)
    for part, one in zip(parts, headers, strict=True):
        try:
            yield from part.batches(one)
        except InputError as err:
            yield Refusal(file=part.shown, reason=err.reason)


def _part_header(header: RunHeader, part: Any, own: str | None, run: MlflowRun, *, several: bool) -> RunHeader:
    """A part's header: records need a benchmark, and several parts must not share one."""
    stem = PurePosixPath(part.path).stem
    benchmark = (f"{own}/{stem}" if own else stem) if several else own or run.experiment
    given = dict(part.given)
    settings = {name: given.pop(name) for name in list(given) if name in Settings.model_fields}
    plain = {
        name: value for name, value in ({"benchmark": benchmark} | given).items() if name in RunHeader.model_fields and value is not None
    }
    return header.model_copy(update=plain | {"configuration": header.configuration.model_copy(update=settings)})
