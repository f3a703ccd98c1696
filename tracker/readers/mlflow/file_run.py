"""The files of one run of a legacy file store become an `MlflowRun`. Every file is read alone: a bad one costs only itself."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
import pyarrow as pa

from tracker.batch import METRIC_POINTS, Refusal
from tracker.errors import InputError
from tracker.readers import yaml_document
from tracker.readers.base import place_of
from tracker.readers.lines import foreign, shorten
from tracker.readers.mlflow.files import ARTIFACTS, META, TRACE_INFO, TRASH, is_part, tables_of
from tracker.readers.mlflow.metric_lines import Point, metric_points
from tracker.readers.mlflow.model import MODEL_STATUS, RUN_STATUS, LoggedModel, MlflowRun
from tracker.readers.mlflow.points import points_table
from tracker.readers.mlflow.trace_parts import milliseconds, trace_of

if TYPE_CHECKING:
    from pathlib import Path

    from tracker.batch import Source
    from tracker.readers.mlflow.model import Trace


def run_of(source: Source) -> MlflowRun:
    """A run with what could not be read of it among its refusals. Raises InputError when nothing can be used."""
    return _Reading(source).run()


class _Reading:
    def __init__(self, source: Source) -> None:
        self.folder = place_of(source).parent
        self.experiment = self.folder.parent
        self.files = frozenset(source.files)
        self._places = [(str(path), path) for path in source.files]
        self.run_id = str(source.mapping.get("run") or self.folder.name)
        self.refusals: list[Refusal] = []
        for path in source.claims:
            if path.is_relative_to(self.folder) and is_part(path.relative_to(self.folder).as_posix()):
                self.refuse(path, "a link that leads nowhere (copy what it leads to)")

    def run(self) -> MlflowRun:
        meta = self.yaml(self.folder / META) if (self.folder / META).is_file() else None
        if meta is None and not any(self.inside(path) for path in self.files):
            reason = self.refusals[0].reason if self.refusals else "no meta.yaml"
            raise InputError(reason, where=str(self.folder / META), hint="delete the run's folder, or fetch it again")
        partial = None
        if meta is None:
            partial = f"its {META} cannot be read"
            if not self.refusals:
                self.refuse(self.folder / META, "missing: name, status and times of the run are unknown (fetch it again)")
        meta = meta or {}
        experiment_id, experiment = self.about_experiment(meta)
        found = MlflowRun(
            run_id=self.run_id,
            name=_text(meta.get("run_name") or meta.get("name")),
            experiment_id=experiment_id,
            experiment=experiment,
            status=self.status(meta),
            start_ms=milliseconds(meta.get("start_time")),
            end_ms=milliseconds(meta.get("end_time")),
            user=_text(meta.get("user_id")),
            artifact_uri=_text(meta.get("artifact_uri")),
            params=self.values(self.folder / "params"),
            tags=self.values(self.folder / "tags"),
            points=self.points(),
            datasets=self.datasets(),
            models=self.models(),
            tables=tables_of(self.folder, meta.get("artifact_uri"), self.root),
            traces=self.traces(),
            refusals=self.refusals,
            partial=partial,
        )
        if found.name is None:
            found.name = found.tags.get("mlflow.runName")
        return found

    @property
    def root(self) -> Path:
        parent = self.experiment.parent
        return parent.parent if parent.name == TRASH else parent

    def inside(self, path: Path) -> bool:
        """Whether a file lies in the run's own folder, beside its meta.yaml."""
        return path.is_relative_to(self.folder) and path != self.folder / META

    def refuse(self, path: Path, reason: str, line: int | None = None, text: str | None = None) -> None:
        self.refusals.append(Refusal(file=str(path), line=line, reason=reason, text=text))

    def text(self, path: Path) -> str | None:
        """The text of a small file, or None and a refusal."""
        raw = path.read_bytes()
        problem = foreign(raw, path)
        if problem is not None:
            self.refuse(path, problem)
            return None
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError as err:
            line = raw.count(b"\n", 0, err.start) + 1
            self.refuse(path, f"byte {err.start + 1} is not UTF-8 (write it anew in UTF-8)", line, shorten(raw))
            return None

    def yaml(self, path: Path) -> dict[str, Any] | None:
        """The mapping in a YAML file, or None and a refusal."""
        text = self.text(path)
        if text is None:
            return None
        if not text.strip():
            self.refuse(path, "empty: its writer was interrupted (fetch it again)")
            return None
        try:
            found = yaml_document.parse(text, path)
        except yaml_document.YamlError as err:
            lines = text.split("\n")
            shown = lines[err.line - 1] if 0 < err.line <= len(lines) else None
            self.refuse(path, f"{err.message} ({err.hint})", err.line, shown)
            return None
        if not isinstance(found, dict):
            self.refuse(path, "expected keys and values (fetch it again)", 1, text[:200])
            return None
        return found

    def about_experiment(self, meta: dict[str, Any]) -> tuple[str, str]:
        """Id and name of the experiment."""
        path = self.experiment / META
        told = (self.yaml(path) if path.is_file() else None) or {}
        experiment_id = told.get("experiment_id", meta.get("experiment_id"))
        name = told.get("name")
        shown = str(experiment_id) if experiment_id is not None else self.experiment.name
        return shown, str(name) if name is not None else self.experiment.name

    def status(self, meta: dict[str, Any]) -> str:
        told = meta.get("status", 1)
        if isinstance(told, int) and told in RUN_STATUS:
            return RUN_STATUS[told]
        if isinstance(told, str) and told in RUN_STATUS.values():
            return told
        if meta:
            self.refuse(self.folder / META, f"status {told!r} is none of {', '.join(map(str, RUN_STATUS))}: the run counts as running")
        return "RUNNING"

    def values(self, folder: Path) -> dict[str, str]:
        """Texts by name: the path of each file below a folder."""
        found = {}
        for name, path in self.named(folder):
            text = self.text(path)
            if text is not None:
                found[name] = text
        return found

    def named(self, folder: Path) -> list[tuple[str, Path]]:
        """The source's files below a folder, with their paths in it."""
        start = f"{folder}{os.sep}"
        return [(place[len(start) :].replace(os.sep, "/"), path) for place, path in self._places if place.startswith(start)]

    def parts(self, folder: Path) -> list[Path]:
        """The source's files below a folder."""
        return [path for _, path in self.named(folder)]

    def points(self) -> pa.Table:
        folder = self.folder / "metrics"
        names: list[str] = []
        columns: list[list[Point]] = []
        for name, path in self.named(folder):
            found = self.metrics(path)
            if found:
                names.append(name)
                columns.append(found)
        if not names:
            return METRIC_POINTS.empty_table()
        codes = np.repeat(np.arange(len(names)), [len(column) for column in columns])
        points = [point for column in columns for point in column]
        metrics = pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), pa.array(names, pa.string()))
        return points_table(
            metrics,
            np.array([point.step for point in points], np.int64),
            np.array([point.time_ms for point in points], np.int64),
            np.array([point.value for point in points], np.float64),
        )

    def metrics(self, path: Path, *, of_model: bool = False) -> list[Point]:
        """The points of a metric file; lines that are none are refused."""
        raw = path.read_bytes()
        problem = foreign(raw, path)
        if problem is not None:
            self.refuse(path, problem)
            return []
        found = []
        for one in metric_points(raw, of_model=of_model):
            if isinstance(one, Point):
                found.append(one)
            else:
                self.refuse(path, one.reason, one.line, one.text)
        if not raw.strip():
            self.refuse(path, "empty: no value of this metric was written (delete it, or fetch it again)")
        return found

    def datasets(self) -> list[dict[str, Any]]:
        found = []
        for path in self.parts(self.folder / "inputs"):
            told = self.yaml(path) if path.name == META else None
            if not told or told.get("source_type") != "DATASET":
                continue
            about = self.experiment / "datasets" / str(told.get("source_id")) / META
            held = self.yaml(about) if about in self.files else None
            if held is None:
                self.refuse(path, f"the data set that it names is not in the store (expected {about})")
                continue
            tags = told.get("tags") if isinstance(told.get("tags"), dict) else {}
            found.append(
                {"name": held.get("name"), "digest": held.get("digest"), "source_type": held.get("source_type")}
                | {"context": (tags or {}).get("mlflow.data.context")}
            )
        return found

    def models(self) -> list[LoggedModel]:
        above = self.experiment / "models"
        return [self.model(above / name) for name in dict.fromkeys(name.split("/")[0] for name, _ in self.named(above))]

    def model(self, folder: Path) -> LoggedModel:
        """A logged model with what this run measured of it."""
        meta = (self.yaml(folder / META) if folder / META in self.files else None) or {}
        status = meta.get("status")
        found = LoggedModel(
            model_id=str(meta.get("model_id") or folder.name),
            name=_text(meta.get("name")),
            status=MODEL_STATUS.get(status, str(status)) if isinstance(status, int) else _text(status),
            params=self.values(folder / "params"),
            tags=self.values(folder / "tags"),
        )
        for name, path in self.named(folder / "metrics"):
            found.metrics += [
                {
                    "name": name,
                    "value": point.value,
                    "step": point.step,
                    "timestamp": point.time_ms,
                    "dataset_name": point.dataset_name,
                    "dataset_digest": point.dataset_digest,
                }
                for point in self.metrics(path, of_model=True)
                if point.run_id == self.run_id
            ]
        return found

    def traces(self) -> list[Trace]:
        above = self.experiment / "traces"
        return [self.trace(above / name) for name in dict.fromkeys(name.split("/")[0] for name, _ in self.named(above))]

    def trace(self, folder: Path) -> Trace:
        info = (self.yaml(folder / TRACE_INFO) if folder / TRACE_INFO in self.files else None) or {}
        assessments = [self.yaml(path) for path in self.parts(folder / "assessments") if path.suffix == ".yaml"]
        return trace_of(
            info,
            self.spans(folder / ARTIFACTS / "traces.json"),
            trace_id=folder.name,
            metadata=self.values(folder / "request_metadata"),
            tags=self.values(folder / "tags"),
            assessments=assessments,
        )

    def spans(self, path: Path) -> dict[str, Any] | None:
        if path not in self.files:
            return None
        text = self.text(path)
        try:
            found = orjson.loads(text) if text else None
        except ValueError as err:
            self.refuse(path, f"not valid JSON: {err} (its previews stand in; fetch it again)", 1)
            return None
        return found if isinstance(found, dict) else None


def _text(told: Any) -> str | None:
    return str(told) if told is not None and told != "" else None
