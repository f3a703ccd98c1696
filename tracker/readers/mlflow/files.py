"""Legacy file stores (`mlruns/`): which runs there are and which files belong to each. `file_run` reads them.

MLflow itself refuses such stores since 3.13; nothing of MLflow is needed here.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracker.batch import Source
from tracker.errors import InputError
from tracker.readers import yaml_document
from tracker.readers.base import is_special
from tracker.readers.mlflow.artifacts import local_folder, rules_of, tables_in
from tracker.readers.mlflow.model import DELETED
from tracker.readers.mlflow.points import LATEST_MS
from tracker.readers.mlflow.trace_parts import SOURCE_RUN

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tracker.batch import Batch, Refusal
    from tracker.readers.base import Folder
    from tracker.readers.mlflow.model import Artifact
    from tracker.study import Study

READER_NAME = "mlflow"
META, TRACE_INFO = "meta.yaml", "trace_info.yaml"
LOGGED_ARTIFACTS = "mlflow.loggedArtifacts"
COMPARED = ("params", "tags", "metrics", "inputs", "outputs")
"""Folders of a run whose files say something of it."""
TRASH, ARTIFACTS = ".trash", "artifacts"
_RESERVED = frozenset({"tags", "datasets", "traces", "models"})
_JUNK = frozenset({".DS_Store", "Thumbs.db", "desktop.ini", ".gitkeep", ".gitignore"})
_RUN_ID = re.compile(r"[0-9a-f]{32}")
_RUN_KEY = re.compile(rb"^(?:run_id|run_uuid)[ \t]*:", re.MULTILINE)
_RUN_SIGNS = re.compile(rb"^(artifact_uri|lifecycle_stage|experiment_id|status)[ \t]*:", re.MULTILINE)
_EXPERIMENT_KEYS = (
    re.compile(rb"^experiment_id[ \t]*:", re.MULTILINE),
    re.compile(rb"^(?:artifact_location|lifecycle_stage)[ \t]*:", re.MULTILINE),
)
_MODEL_KEY = re.compile(rb"^model_id[ \t]*:", re.MULTILINE)
_ENDED = (3, 4, 5)


def find(folder: Folder, study: Study) -> Sequence[Source]:
    """The runs of an experiment's folder, or the one run whose folder this is; whatever else lies in them is claimed.

    Files among the artifacts that are no evaluation tables stay free, so that other readers find what they know.
    """
    if META not in folder.names:
        return []
    head = folder.head(META)
    if _tells_run(head, folder.path) or (_RUN_ID.fullmatch(folder.path.name) and {"params", "metrics"} & set(folder.folders)):
        return [_Experiment(folder.path.parent, study).source(folder.path)]
    if all(key.search(head) for key in _EXPERIMENT_KEYS) and not _MODEL_KEY.search(head):
        return _Experiment(folder.path, study).sources()
    return []


def read(source: Source, study: Study) -> Iterator[Batch | Refusal]:
    """The batches of a run. Raises InputError when nothing of it can be used."""
    from tracker.readers.mlflow.file_run import run_of
    from tracker.readers.mlflow.mapping import batches

    yield from batches(run_of(source), source, study)


@dataclass(slots=True)
class _Experiment:
    """An experiment's folder. What belongs to runs but lies beside them is looked up once."""

    path: Path
    study: Study
    _name: str | None = None
    _deleted: bool = False
    _models: dict[str, list[Path]] = field(default_factory=lambda: defaultdict(list))
    """Folders of logged models by the id of their run."""
    _traces: dict[str, list[Path]] = field(default_factory=lambda: defaultdict(list))
    """Folders of traces by the id of their run."""

    def __post_init__(self) -> None:
        meta = lenient_yaml(self.path / META)
        name = meta.get("name")
        self._name = name if isinstance(name, str) and name else str(name) if name is not None else self.path.name
        self._deleted = meta.get("lifecycle_stage") == "deleted" or self.path.parent.name == TRASH
        for model in _folders(self.path / "models"):
            for run in _runs_of_model(model):
                self._models[run].append(model)
        for trace in _folders(self.path / "traces"):
            with suppress(OSError, ValueError):
                told = trace / "request_metadata" / SOURCE_RUN
                if not is_special(told):
                    self._traces[told.read_text("utf-8").strip()].append(trace)

    @property
    def root(self) -> Path:
        """The store's folder."""
        parent = self.path.parent
        return parent.parent if parent.name == TRASH else parent

    def sources(self) -> list[Source]:
        """One per run; the first claims what belongs to the experiment alone."""
        found = [self.source(child) for child in _folders(self.path) if child.name not in _RESERVED and _is_run(child)]
        if found:
            taken = {path for one in found for path in (*one.files, *one.claims)}
            rest = [self.path / META, *(path for name in sorted(_RESERVED) for path in files_below(self.path / name) if _is_record(path))]
            first = found[0]
            extra = tuple(path for path in rest if path not in taken)
            found[0] = Source(**{name: getattr(first, name) for name in Source.__slots__} | {"claims": (*first.claims, *extra)})
        return found

    def source(self, run: Path) -> Source:
        """A run's folder as a source."""
        meta = lenient_yaml(run / META)
        owned = _own_files(run)
        inside = len(str(run)) + 1
        compared = [path for path in owned if is_part(str(path)[inside:].replace(os.sep, "/")) and path.exists()]
        left = set(owned) - set(compared)
        also = [self.path / META] if (self.path / META).is_file() else []
        run_id = str(meta.get("run_id") or meta.get("run_uuid") or run.name)
        for folder in self._models.get(run_id, ()):
            also += [path for path in files_below(folder, without=ARTIFACTS) if path.name not in _JUNK]
        for folder in self._traces.get(run_id, ()):
            also += [path for path in files_below(folder) if path.name not in _JUNK]
        also += self._datasets(run)
        tables = tables_of(run, meta.get("artifact_uri"), self.root)
        rules = rules_of(tables, self.study)
        return Source(
            reader=READER_NAME,
            uri=str(run.resolve() / META),
            files=tuple(dict.fromkeys((*compared, *also, *(table.file for table in tables if table.file is not None)))),
            mapping={"run": run_id} | ({"tables": rules} if rules else {}),
            claims=tuple(path for path in owned if path in left),
            experiment=self._name,
            address=f"{self.root}/experiments/{self._name}/runs/{run_id}",
            time=_ended(meta),
            left_out=DELETED if self._deleted or meta.get("lifecycle_stage") == "deleted" else None,
        )

    def _datasets(self, run: Path) -> list[Path]:
        found = []
        for one in _folders(run / "inputs"):
            told = lenient_yaml(one / META)
            path = self.path / "datasets" / str(told.get("source_id")) / META
            if told.get("source_type") == "DATASET" and path.is_file():
                found.append(path)
        return found


def tables_of(run: Path, artifact_uri: Any, root: Path) -> list[Artifact]:
    """Evaluation tables among the artifacts of a run, wherever the store was moved to."""
    folder: Path | None = run / ARTIFACTS
    if folder is None or not folder.is_dir() or _is_empty(folder):  # MLflow makes an empty one when it keeps them elsewhere
        folder = local_folder(artifact_uri, root) if isinstance(artifact_uri, str) else None
    logged = None
    tag = run / "tags" / LOGGED_ARTIFACTS
    with suppress(OSError, ValueError):
        logged = None if is_special(tag) else tag.read_text("utf-8")
    return list(tables_in(folder, logged)) if folder is not None else []


def is_part(name: str) -> bool:
    """Whether a file says something of its run, by its path in the run's folder."""
    top, _, rest = name.partition("/")
    return name == META or (top in COMPARED and rest != "" and not _is_junk(rest.rpartition("/")[2]))


def files_below(folder: Path, without: str | None = None) -> list[Path]:
    """Files below a folder in sorted order, without one of its own subfolders; links to folders are not followed."""
    found: list[Path] = []
    for parent, folders, names in os.walk(folder, followlinks=False):
        folders[:] = sorted(name for name in folders if name != without or parent != str(folder))
        here = Path(parent)
        found += [here / name for name in sorted(names) if not is_special(os.path.join(parent, name))]  # noqa: PTH118 - many files
    return found


def _own_files(run: Path) -> list[Path]:
    """What MLflow wrote of a run besides its artifacts, and files that file systems leave; whatever else lies there may be of others."""
    try:
        names = sorted(os.listdir(run))  # noqa: PTH208 - many folders
    except OSError:
        return []
    own = [run / name for name in names if name == META or _is_junk(name)]
    found = [path for path in own if path.is_symlink() or path.is_file()]
    return [path for path in found if not is_special(path)] + [path for name in sorted(COMPARED) for path in files_below(run / name)]


def lenient_yaml(path: Path) -> dict[str, Any]:
    """The mapping in a YAML file, as far as it can be read; reading the run says what is wrong with it."""
    try:
        raw = b"" if is_special(path) else path.read_bytes()
    except OSError:
        return {}
    found: Any = None
    with suppress(InputError):
        found = yaml_document.parse(raw.decode("utf-8", "replace"), path)
    return found if isinstance(found, dict) else {}


def metric_runs(path: Path) -> Iterable[str]:
    """Ids of the runs in the lines of a logged model's metric file."""
    with suppress(OSError):
        for line in path.read_bytes().splitlines():
            fields = line.split()
            if len(fields) > 3:
                yield fields[3].decode("ascii", "replace")


def _runs_of_model(model: Path) -> list[str]:
    """Ids of the runs that a logged model belongs to: the one that made it, and those that measured it."""
    source = lenient_yaml(model / META).get("source_run_id")
    runs = dict.fromkeys([source] if isinstance(source, str) else [])
    for path in files_below(model / "metrics"):
        runs |= dict.fromkeys(metric_runs(path))
    return list(runs)


def _folders(path: Path) -> list[Path]:
    """Subfolders in sorted order, without links to others."""
    try:
        with os.scandir(path) as entries:
            return sorted(Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False))
    except OSError:
        return []


def _is_empty(folder: Path) -> bool:
    """Whether nothing is in a folder, or nothing that may be seen."""
    try:
        with os.scandir(folder) as entries:
            return next(entries, None) is None
    except OSError:
        return True


def _tells_run(head: bytes, folder: Path) -> bool:
    """Whether a meta.yaml is one of an MLflow run: others write one with a run_id too."""
    if not _RUN_KEY.search(head):
        return False
    if _RUN_ID.fullmatch(folder.name):
        return True
    signs = set(_RUN_SIGNS.findall(head))
    return bool(signs & {b"artifact_uri", b"lifecycle_stage"}) or signs >= {b"experiment_id", b"status"}


def _is_run(path: Path) -> bool:
    """Whether a subfolder of an experiment is a run; one that lost its meta.yaml is."""
    with suppress(OSError):
        if not is_special(path / META):
            with (path / META).open("rb") as stream:
                if _tells_run(stream.read(65_536), path):
                    return True
    return any((path / name).is_dir() for name in ("params", "metrics")) and (
        (path / META).exists() or _RUN_ID.fullmatch(path.name) is not None
    )


def _is_record(path: Path) -> bool:
    """Whether a file of an experiment belongs to MLflow's own records: not the files of a model, which others may know."""
    return path.parts.count(ARTIFACTS) == 0 or "traces" in path.parts


def _is_junk(name: str) -> bool:
    return name in _JUNK or name.startswith(("._", ".nfs"))


def _ended(meta: dict[str, Any]) -> datetime | None:
    """When a run ended; None for one that goes on, whose files know better."""
    end = meta.get("end_time")
    if meta.get("status") not in _ENDED or not isinstance(end, int) or isinstance(end, bool) or not 0 < end <= LATEST_MS:
        return None
    return datetime.fromtimestamp(end / 1000, tz=UTC)
