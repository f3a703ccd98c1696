"""Which files of a VLMEvalKit work directory belong together, by their names and the first bytes of each.

`<model>_<dataset>.<xlsx|tsv|json>` holds the predictions; everything else about it has that name and an ending. Names alone
cannot be split, since models and data sets both contain underscores: the folder names the model, and a file is another's
ending only if it holds what endings hold (`MMBench_DEV_EN_V11` is a data set, no ending of `MMBench_DEV_EN`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from json import JSONDecoder
from pathlib import Path
from typing import TYPE_CHECKING

from tracker.readers import xlsx
from tracker.readers.base import is_file
from tracker.readers.keys import is_native
from tracker.readers.lines import LFS_POINTER
from tracker.readers.xlsx_archive import MAGIC, OLD_MAGIC

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tracker.readers.base import Folder

EVAL_ID = re.compile(r"T\d{8}(?:-\d{6}|_G(?P<commit>[0-9a-fA-F]+))$")
STATUS = "status.json"
PREDICTIONS = (".xlsx", ".tsv", ".json")
AGGREGATES = (".csv", ".json", ".xlsx", ".tsv")
JUDGED_COLUMNS = frozenset({"hit", "log", "score", "extracted", "extract", "res", "judge", "log_score", "log_extract"})
"""Columns that evaluation adds to predictions."""
RANK_PICKLE = re.compile(r"(?P<rank>\d)(?P<world>\d{1,3})_(?P<dataset>.+)\.pkl$")
"""What one process of an inference leaves until all have ended: rank and number of processes, without anything between them."""
_PICKLED_TABLE = re.compile(rb"\x80[\x02-\x05](?:\x95.{8})?\}", re.DOTALL)
"""How a pickle of answers by index begins: protocol, frame, an empty mapping."""
_JUDGE = r"openai|gpt4|exact_matching|EM|verifier|(?:chatgpt|gpt|o\d|claude|gemini|qwen|deepseek|glm|llama|internlm|mistral|xverify)[A-Za-z0-9.-]*"
_ENDING = re.compile(
    rf"(?:^|_)(?:(?P<judge>{_JUDGE})_)?(?P<kind>(?:vanilla_)?result|auxmatch|judge|extract|(?:(?:clinical vqa task|department|perceptual granularity)_)?acc|score|fine|rating|metrics|cotpost)"
    rf"(?:_(?P<after>{_JUDGE}|fine))?$",
    re.IGNORECASE,
)
_TOTALS = frozenset({"acc", "score", "fine", "rating", "metrics"})
_LEFTOVER = re.compile(r"_(?:PREV|checkpoint|structs|tmp|supp)$")
"""Endings of what an inference or an evaluation keeps while it runs."""
_OF_THE_NAME = re.compile(r"(?:V11|CN|EN|MINI|COT|NO_MASK|MI|VAL|TEST|DEV|Lite|Plus)(?:_|$)", re.IGNORECASE)
"""Beginnings of an ending that belong to a data set's name."""
_KNOWN = re.compile(
    r"_(?P<dataset>(?:MMBench|MTL_MMBench|MMStar|MMMU|MMMB|MME|MMVet|MMT-Bench|MMVP|MMSci|MMIU|MMLongBench|MMDU|MMCR|HRBench|VStar|V_?Star|TreeBench|"
    r"SEEDBench|ScienceQA|AI2D|HallusionBench|POPE|AMBER|BLINK|RealWorldQA|RealWorld|OCRBench|OCRVQA|TextVQA|DocVQA|ChartQA|InfoVQA|MathVista|MathVision|"
    r"MathVerse|MATH-V|CCBench|CV-?Bench|LLaVABench|COCO_VAL|VQAv2|GQA|VizWiz|WeMath|DynaMath|LogicVista|MUIRBench|NaturalBench|A-OKVQA|A-Bench|"
    r"Q-Bench|AesBench|TaskMeAnything|VisOnlyQA|R-Bench|CRPE|ZeroBench|MVBench|Video-?MME|EMMA|CharXiv|SimpleVQA|PhyX|MicroVQA|XLRS|3DSR|ERQA)[\w.+-]*)$"
)
"""Names of data sets, for files whose folder is not named after their model."""


@dataclass(slots=True)
class Judged:
    """A file with the judge's verdicts on the predictions."""

    path: Path
    judge: str | None
    vanilla: bool = False
    """Verdicts on every option order of its own, where a question counts only if all are right."""


@dataclass(slots=True)
class Group:
    """Everything there is about one model on one data set in one folder."""

    model: str
    dataset: str
    stem: str
    predictions: Path | None = None
    judged: list[Judged] = field(default_factory=list)
    totals: list[Path] = field(default_factory=list)
    pickles: list[Path] = field(default_factory=list)
    others: list[Path] = field(default_factory=list)
    damaged: list[Path] = field(default_factory=list)
    """Tables of which nothing can be read: predictions whose verdicts are there, verdicts, or totals."""

    def files(self) -> tuple[Path, ...]:
        """What decides how the run reads, the main file first."""
        main = [] if self.predictions is None else [self.predictions]
        return (*main, *(one.path for one in self.judged), *self.totals, *self.damaged) or tuple(self.pickles)


def eval_folder(path: Path) -> tuple[str, str | None]:
    """(model, eval id or None) by the place of a folder."""
    return (path.parent.name, path.name) if EVAL_ID.match(path.name) else (path.name, None)


def groups(folder: Folder, names: Iterable[str]) -> list[Group]:
    """The groups of a folder's files (of this format), in order of their names."""
    model, eval_id = eval_folder(folder.path)
    headers: dict[str, list[str]] = {}
    rest: list[str] = []
    for name in sorted(names):
        if name.endswith(PREDICTIONS) and name != STATUS and _may_belong(name, model, eval_id):
            header = columns(folder, name)
            if header is not None and is_native(header):
                continue
            if header is not None and {"index", "prediction"} <= {one.lower() for one in header}:
                headers[name] = header
                continue
        rest.append(name)
    found: dict[str, Group] = {}
    for name in sorted(headers, key=lambda one: (len(Path(one).stem), one)):
        _place(folder.path / name, headers[name], model, eval_id, found)
    for name in rest:
        _attach(folder, name, model, eval_id, found)
    return [found[stem] for stem in sorted(found) if found[stem].files()]


def columns(folder: Folder, name: str) -> list[str] | None:
    """Column names of a file of predictions by its first bytes; None where there are none."""
    head = folder.head(name)
    if name.endswith(".xlsx"):
        return xlsx.columns(folder.path / name) if xlsx.is_xlsx(head) else None
    text = head.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace")
    if name.endswith((".tsv", ".csv")):
        line, mark = text.partition("\n")[0].rstrip("\r"), "\t" if name.endswith(".tsv") else ","
        return [one.strip().strip('"') for one in line.split(mark)] if mark in line else None
    return _json_columns(text)


def told(stem: str, model: str, eval_id: str | None) -> tuple[str, str] | None:
    """(model, data set) of a file's name: the folder's name decides, then the known names of data sets."""
    if stem.startswith(f"{model}_") and len(stem) > len(model) + 1:
        return model, stem[len(model) + 1 :]
    match = _KNOWN.search(stem)
    if match and match.start() > 0:
        return (model if eval_id else stem[: match.start()]), match["dataset"]
    return (model, stem) if eval_id else None


def of_rank(name: str, head: bytes) -> str | None:
    """The data set of a pickle that a process of an inference left behind; None for anything else."""
    match = RANK_PICKLE.match(name)
    known = match is not None and _PICKLED_TABLE.match(head) is not None and int(match["rank"]) < int(match["world"])
    return match["dataset"] if match and known else None


def judge_of(ending: str) -> str | None:
    """The judge that an ending names."""
    match = _ENDING.search(ending)
    named = (match["judge"] or match["after"]) if match else None
    return named or (ending.removesuffix("_result").removesuffix("_vanilla") or None if match is None else None)


def _may_belong(name: str, model: str, eval_id: str | None) -> bool:
    stem = Path(name).stem
    return bool(eval_id) or name.endswith(".xlsx") or stem.startswith(f"{model}_") or _KNOWN.search(stem) is not None


def _place(path: Path, header: list[str], model: str, eval_id: str | None, found: dict[str, Group]) -> None:
    """A file with predictions is a group's main file, or holds verdicts on those of a shorter name."""
    stem = path.stem
    judged = not JUDGED_COLUMNS.isdisjoint(one.lower() for one in header)
    base = _base(stem, found)
    ending = "" if base is None else stem[len(base.stem) + 1 :]
    is_ending = _ENDING.search(ending) is not None
    if base is not None and (judged or is_ending) and not _OF_THE_NAME.match(ending):
        if judged:
            base.judged.append(Judged(path, judge_of(ending), "vanilla" in ending))
        else:
            base.others.append(path)
        return
    if stem.startswith("_") and "_SUB_" in stem:  # a part of a data set that was made of several; the whole has it too
        return
    match = _ENDING.search(stem) if judged else None
    name = stem[: match.start()] if match and match.start() > 0 else stem
    parts = told(name, model, eval_id)
    if parts is None:
        return
    group = found.setdefault(name, Group(*parts, name))
    if name == stem:
        group.predictions = path
    else:
        group.judged.append(Judged(path, judge_of(stem[len(name) + 1 :]), "vanilla" in stem[len(name) :]))


def _attach(folder: Folder, name: str, model: str, eval_id: str | None, found: dict[str, Group]) -> None:
    """A file without predictions: totals, a pickle, something else of a group; or predictions that cannot be read."""
    path = folder.path / name
    if name == STATUS:
        return
    stem, suffix = path.stem, path.suffix.lower()
    base = _base(stem, found) or found.get(stem)
    match = _ENDING.search(stem)
    if base is not None and suffix in AGGREGATES and is_native(columns(folder, name) or ()):
        return
    if suffix == ".pkl":
        _attach_pickle(folder, name, model, eval_id, found, base)
    elif match and suffix in AGGREGATES and _kind(match) in _TOTALS and _is_aggregate(folder.head(name), suffix):
        if base is None and (stem.startswith(f"{model}_") or eval_id):
            parts = told(stem[: match.start()], model, eval_id)
            base = (
                None
                if parts is None or not match.start()
                else found.setdefault(stem[: match.start()], Group(*parts, stem[: match.start()]))
            )
        if base is not None:
            base.totals.append(path)
    elif base is not None and suffix in AGGREGATES and (stem == base.stem or _is_ours(stem[len(base.stem) :])):
        (base.damaged if _is_broken(folder, name) else base.others).append(path)
    elif suffix == ".xlsx" and match is None and is_file(path) and _is_damaged(folder.head(name)):
        parts = told(stem, model, eval_id)
        if parts is not None and (stem.startswith(f"{model}_") or eval_id or _KNOWN.search(stem)):
            found[stem] = Group(*parts, stem, predictions=path)


def _attach_pickle(folder: Folder, name: str, model: str, eval_id: str | None, found: dict[str, Group], base: Group | None) -> None:
    path, stem = folder.path / name, Path(name).stem
    dataset = of_rank(name, folder.head(name)) if RANK_PICKLE.match(name) else None
    if dataset is not None:
        base = next((one for one in found.values() if one.dataset == dataset), None)
        if base is None:
            base = found.setdefault(f"{model}_{dataset}", Group(model, dataset, f"{model}_{dataset}"))
    elif base is None and (stem.startswith(f"{model}_") or eval_id) and folder.head(name).startswith(b"\x80"):
        match = _ENDING.search(stem)
        name = stem[: match.start()] if match else _LEFTOVER.sub("", stem)
        parts = told(name, model, eval_id)
        base = None if parts is None else found.setdefault(name, Group(*parts, name))
    if base is not None:
        base.pickles.append(path)


def _base(stem: str, found: Mapping[str, Group]) -> Group | None:
    """The group whose name a file's name goes on from: the longest."""
    return max((one for name, one in found.items() if stem.startswith(f"{name}_")), key=lambda one: len(one.stem), default=None)


def _is_ours(ending: str) -> bool:
    """Whether what follows the name of predictions is an ending that the framework writes; any other file only begins alike."""
    return _ENDING.search(ending) is not None or _LEFTOVER.search(ending) is not None


def _kind(match: re.Match[str]) -> str:
    return match["kind"].lower().rpartition("_")[2]


def _is_aggregate(head: bytes, suffix: str) -> bool:
    if head.startswith(LFS_POINTER) or not head.strip():
        return True
    return xlsx.is_xlsx(head) if suffix == ".xlsx" else b"\0" not in head


def _is_damaged(head: bytes) -> bool:
    """Predictions that cannot be looked into: still of this format, so that reading says why."""
    return head.startswith((MAGIC, LFS_POINTER, OLD_MAGIC)) or not head.strip(b"\0 \r\n")


def _is_broken(folder: Folder, name: str) -> bool:
    """Whether a file with the name of a table holds none."""
    head = folder.head(name)
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if head.startswith(LFS_POINTER) or not start.strip(b"\0"):
        return True
    if name.endswith(".xlsx"):
        return columns(folder, name) is None
    return b"\0" in head or start[:1] == b"<" or (name.endswith(".json") and start[:1] not in {b"[", b"{"})


def _json_columns(text: str) -> list[str] | None:
    """Names in the first record of a list of records."""
    start = text.lstrip()
    if not start.startswith("["):
        return None
    first = start.find("{")
    if first < 0 or start[1:first].strip():
        return None
    try:
        record, _ = JSONDecoder().raw_decode(start, first)
    except (ValueError, RecursionError):
        return ["index", "prediction"] if '"index"' in start[first : first + 200] and '"prediction"' in start else None
    return list(record) if isinstance(record, dict) else None
