"""EvalScope output folders: `predictions/`, `reviews/` and `reports/` of a run, by model and benchmark.

One run is one model on one benchmark: the predictions and reviews of all its subsets, and its report. Facts: docs/format-evalscope.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from tracker.batch import Batch, Refusal, RunHeader, Source, empty_records
from tracker.errors import InputError
from tracker.readers import evalscope_report as told
from tracker.readers.base import place_of
from tracker.readers.evalscope_layout import ROLES, aside, evaluations, read_config, root_of, split_name
from tracker.readers.evalscope_prompt import template_of
from tracker.readers.evalscope_report import Report, read_report
from tracker.readers.evalscope_rows import Subset
from tracker.readers.single import run_batches
from tracker.readers.values import text, whole
from tracker.readers.yaml_document import YamlError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tracker.readers.base import Folder
    from tracker.readers.tabular import Chunk
    from tracker.study import Study


@dataclass(frozen=True, slots=True)
class EvalScopeReader:
    """Reads what EvalScope's native backend writes, from 0.5 to 1.x."""

    name: str = "evalscope"
    version: int = 1

    def find(self, folder: Folder, study: Study) -> Sequence[Source]:  # noqa: ARG002 - part of what a reader is
        """The evaluations of an output folder, met at its top or inside it; files are recognised by their first bytes."""
        top = not set(ROLES).isdisjoint(folder.folders)
        if not top and not any(name.endswith((".jsonl", ".json")) for name in folder.names):
            return ()
        root = folder.path.resolve() if top else root_of(folder.path.resolve())
        if root is None:
            return ()
        found = evaluations(root)
        if not top:
            here = {folder.path.resolve() / name for name in folder.names}
            found = [one for one in found if here & {*one.reviews.values(), *one.predictions.values(), one.report}]
        claims = aside(root) if found else ()
        return [
            Source(
                reader=self.name,
                uri=one.uri,
                files=one.files,
                mapping={"model": one.model, "benchmark": one.benchmark},
                claims=claims if place == 0 else (),
            )
            for place, one in enumerate(found)
        ]

    def read(self, source: Source, study: Study) -> Iterator[Batch | Refusal]:  # noqa: ARG002 - part of what a reader is
        """One run: a subset after the other, in order of name."""
        yield from _Run(source).parts()


READER = EvalScopeReader()


class _Run:
    """One evaluation being read."""

    def __init__(self, source: Source) -> None:
        self.folder, self.benchmark = str(source.mapping["model"]), str(source.mapping["benchmark"])
        self.root = place_of(source).parents[len(PurePosixPath(self.folder).parts) + 1]
        self.refusals: list[Refusal] = []
        self.files: dict[str, dict[str, Path]] = {role: {} for role in ROLES}
        self.config: Mapping[str, Any] = {}
        self.report = Report()
        for path in source.files:
            self._sort(path)
        self.arguments = told.arguments_of(self.config, self.benchmark)
        self.uri = source.uri
        self.spec: Mapping[str, Any] | None = None
        """What rows before 1.0 say of the model: the first row's counts, so that the run is one run."""
        self.header = self._header([])

    def parts(self) -> Iterator[Batch | Refusal]:
        """Refusals and batches; InputError when there is neither a record nor a score."""
        yield from self.refusals
        names = sorted({*self.files["reviews"], *self.files["predictions"]})
        subsets = [self._subset(name, several=len(names) > 1) for name in names]
        scores = self.report.scores()
        said, kept = [one.reason for one in self.refusals], False
        for subset in subsets:
            for part in self._batches(subset):
                if isinstance(part, Refusal):
                    said.append(f"{Path(part.file).name}: {part.reason}")
                    yield part
                    continue
                yield part if kept else Batch(**{**_fields(part), "scores": scores})
                kept = True
        if not kept and not scores:
            message = "no usable record and no score"
            raise InputError(message, where=self.uri, hint=said[0] if said else "run EvalScope again")
        final = self._header([moment for one in subsets for moment in one.times])
        reason = self._reason(subsets)
        if reason:
            final = final.model_copy(update={"status": "partial", "status_reason": reason})
        yield Batch(run=final, records=empty_records(), scores=() if kept else scores)

    def _batches(self, subset: Subset) -> Iterator[Batch | Refusal]:
        predictions, reviews = self.files["predictions"].get(subset.name), self.files["reviews"].get(subset.name)
        for file, part in subset.chunks(predictions, reviews):
            if isinstance(part, Refusal):
                yield part
                continue
            pieces: list[Chunk] = [part]
            if self.spec is None:
                self.spec = subset.spec
                self.header = self._header([])
            yield from (one for one in run_batches(file, self.header, pieces) if isinstance(one, Refusal) or one.records.num_rows)

    def _subset(self, name: str, *, several: bool) -> Subset:
        return Subset(
            benchmark=self.benchmark,
            name=name,
            category=self.report.categories().get(name),
            template=template_of(self.arguments),
            primary=self.report.primary(),
            other_scales=self.report.other_scales(),
            repeats=whole(self.config.get("repeats")),
            several=several,
        )

    def _header(self, times: Sequence[float]) -> RunHeader:
        spec = self.spec or {}
        model = told.model_of(self.config, self.report, self.folder) or text(spec.get("model_id")) or text(spec.get("model"))
        moments = [datetime.fromtimestamp(one, tz=UTC) for one in (min(times), max(times))] if times else [None, None]
        settings = told.settings_of(self.config, self.arguments, self.report, spec)
        return RunHeader(
            model=model or "unknown",
            benchmark=self.report.benchmark() or self.benchmark,
            configuration=told.configuration(self.config, self.arguments, spec),
            framework="evalscope",
            framework_version=text(self.config.get("evalscope_version")),
            n_expected=self.report.requested(),
            started_at=moments[0],
            ended_at=moments[1],
            settings=settings,
        )

    def _reason(self, subsets: Sequence[Subset]) -> str | None:
        """Why the run is partial, if it is."""
        damage = [one for subset in subsets for one in subset.damage]
        if damage:
            return damage[0]
        rows, unscored = sum(one.rows for one in subsets), sum(one.unscored for one in subsets)
        if not self.report.document:
            return "no report: the evaluation did not end" + (f"; {unscored} of {rows} records are not reviewed" if unscored else "")
        if self.report.incomplete():
            return self.report.incomplete()
        counted = self.report.counted()
        if rows and counted is not None and rows - unscored < counted:
            return f"{rows - unscored} scored records, the report counts {counted}"
        unseen = sum(1 for one in subsets if one.name not in self.files["reviews"])
        if unseen:
            return f"{unseen} of {len(subsets)} subsets are not reviewed"
        return None

    def _sort(self, path: Path) -> None:
        """Which part of the run a file is."""
        if path.suffix in {".yaml", ".yml"}:
            try:
                self.config = {**self.config, **read_config(path)}
            except InputError as err:
                self._refuse(path, "task configuration", err)
            return
        if path.suffix == ".json":
            try:
                self.report = read_report(path)
            except InputError as err:
                self._refuse(path, "report", err)
            return
        role = next((part for part in reversed(path.parts[:-1]) if part in ROLES), "reviews")
        stem = path.name.removesuffix(".jsonl")
        benchmark, subset = split_name(stem, [self.benchmark])
        self.files[role].setdefault(subset if benchmark == self.benchmark else stem, path)

    def _refuse(self, path: Path, part: str, err: InputError) -> None:
        reason = err.reason
        line = err.line if isinstance(err, YamlError) else None
        self.refusals.append(Refusal(file=str(path), line=line, reason=f"{part}: {reason}"))


def _fields(batch: Batch) -> dict[str, Any]:
    return {name: getattr(batch, name) for name in ("run", "records", "questions", "labels", "record_scores", "metric_points", "scores")}
