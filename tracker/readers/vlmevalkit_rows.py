"""Rows of VLMEvalKit predictions, and what its judges made of them, in native columns.

Facts read from VLMEvalKit's own source are in docs/format-vlmevalkit.md.
"""

from __future__ import annotations

import re
import string
from collections import Counter, deque
from dataclasses import dataclass, field
from pathlib import Path  # noqa: TC003 - dataclass fields are read at run time
from typing import TYPE_CHECKING, Any

from tracker.batch import Refusal
from tracker.errors import InputError
from tracker.readers import tabular, xlsx
from tracker.readers.keys import keyed, own_ids
from tracker.readers.tabular import Chunk, Truncated
from tracker.readers.values import NOTHING, Number, columns_of, content_hash, number, text, truth

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tracker.readers.vlmevalkit_names import Judged

FRAMEWORK = "vlmevalkit"
INFERENCE_FAILED = "Failed to obtain answer"
JUDGE_FAILED = (
    "Failed to predict, thus randomly generate one",
    "Failed in Prefetch, no GPT-based answer matching",
    "Failed to obtain answer",
    "All 5 retries failed",
    "All 3 retries failed",
)
"""What VLMEvalKit writes where its judge gave no answer: it then picks an option at random, or counts the answer as wrong."""
SHORT_ANSWER = 200
SHARES = re.compile(r"mm-?vet|mathverse|ocrbench|mm-?longbench|slidevqa|dude|vcr|mmniah|visulogic", re.IGNORECASE)
"""Data sets whose `score` is a share of right answers, from 0 to 1."""
CYCLED = re.compile(r"hr-?_?bench", re.IGNORECASE)
"""Data sets that ask each question in several option orders under ids of their own."""
CIRCULAR = re.compile(r"(?!.*video)(?:.*(?:mmbench|ccbench|circular|mmcr))", re.IGNORECASE)
"""Data sets that hold each question in every option order, and count it only if all are right."""
ROTATION = 1_000_000
"""Indexes from here are other option orders of the question that has the rest as its index."""
_LETTERS = string.ascii_uppercase
_EXTRACTED = ("extracted", "res", "extract", "extracted_answer", "pred")
_LOGS = ("log", "log_score", "log_extract")
_SUBCATEGORIES = ("l2-category", "l2_category", "sub_category", "subcategory", "l2category")
_ASKED = frozenset(
    {"index", "question", "hint", "answer", "category", "prediction", "task", "image_path", "image", "g_index", *_SUBCATEGORIES}
)
_KEPT = frozenset({"index", "hit", "score", *_LOGS, *_EXTRACTED})
_NOT_SCORES = frozenset({"gt", "tmp_flag", "split", "id", *_LOGS, *_EXTRACTED, *_ASKED})


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a judge says of one prediction."""

    correct: bool | None = None
    score: Number = NOTHING
    failed: bool = False
    """The judge gave no answer, so that the verdict is made up."""
    extracted: str | None = None
    further: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Verdicts:
    """A judged file: verdicts by index, in the file's order where an index occurs more than once."""

    file: Path
    rule: str | None
    label: str
    by_index: dict[str, deque[Verdict]]
    judge: str | None = None
    last: dict[str, Verdict] = field(default_factory=dict)
    count: int = 0
    used: int = 0
    failed: int = 0
    problem: str | None = None

    def take(self, index: str) -> Verdict | None:
        """The next verdict on an index."""
        queue = self.by_index.get(index)
        if queue:
            self.used += 1
            self.last[index] = queue.popleft()
        return self.last.get(index)


def pieces(path: Path, *, report_cut: bool = True) -> Iterator[Chunk | Refusal | Truncated]:
    """Rows of a file of predictions."""
    if path.suffix == ".xlsx":
        return xlsx.chunks(path, report_cut=report_cut)
    return tabular.chunks(path, "tsv" if path.suffix == ".tsv" else "json")


def read_verdicts(judged: Judged, dataset: str, known: frozenset[str] | None) -> tuple[Verdicts, list[Refusal]]:
    """A judged file. `known` are the columns of the predictions, if these are a file of their own: numbers beside them are further scores."""
    refusals: list[Refusal] = []
    rows: list[dict[str, Any]] = []
    label = judged.judge or judged.path.stem.rpartition("_")[2]
    found = Verdicts(judged.path, None, label, {}, judge=judged.judge)
    try:
        for piece in pieces(judged.path, report_cut=False):  # a log that was cut takes nothing from its verdict
            if isinstance(piece, Chunk):
                rows += [_lean(row, _ASKED if known is None else known) for row in lowered(piece)]
            elif isinstance(piece, Truncated):
                found.problem = f"{judged.path.name} is cut off"
            else:
                refusals.append(piece)
    except InputError as err:
        reason = err.reason
        found.problem = f"{judged.path.name} cannot be read"
        return found, [Refusal(file=str(judged.path), reason=f"{reason}; its verdicts are missing")]
    rule, credit = _rule(rows, dataset)
    found.rule = None if rule is None else f"{rule} ({judged.judge})" if judged.judge else rule
    names = () if known is None else dict.fromkeys(name for row in rows for name in row)
    further = [name for name in names if name != rule and _is_number_column(name, rows)]
    for row in rows:
        index = text(row.get("index"))
        if index is None:
            continue
        verdict = _verdict(row, rule, further, credit=credit)
        found.by_index.setdefault(index, deque()).append(verdict)
        found.count += 1
        found.failed += verdict.failed
    return found, refusals


def lowered(chunk: Chunk) -> Iterator[dict[str, Any]]:
    """Rows with column names in small letters, except the option letters; VLMEvalKit does so with judged files only."""
    names = {name: name if len(name) == 1 and name in _LETTERS else name.lower() for name in chunk.columns}
    for row in chunk.dicts():
        yield {names[name]: value for name, value in row.items()}


@dataclass(slots=True)
class Reading:
    """Predictions on their way to native columns."""

    path: Path
    dataset: str
    verdicts: Sequence[Verdicts] = ()
    """The first decides; the others are further scores."""
    own: bool = False
    """The rows hold their own verdicts."""
    unjudged: Counter[str] = field(default_factory=Counter)
    first_unjudged: str | None = None
    rows: int = 0

    def chunks(self) -> Iterator[Chunk | Refusal | Truncated]:
        """Native rows in chunks, refusals, and what the verdicts and the predictions lack of each other."""
        for piece in pieces(self.path):
            if not isinstance(piece, Chunk):
                yield piece
                continue
            made, lines = [], []
            for row, line in zip(lowered(piece), piece.lines, strict=True):
                index = text(row.get("index"))
                if index is None or not index.strip():
                    reason = f"{piece.unit} {line}: no index, so that the question is not known (correct or delete it)"
                    yield Refusal(file=str(self.path), line=line, reason=reason)
                    continue
                made.append(self._native(row, index))
                lines.append(line)
            self.rows += len(made)
            if made:
                yield Chunk(columns=columns_of(made), lines=lines, unit=piece.unit)
        yield from self._unmatched()

    def _unmatched(self) -> Iterator[Refusal]:
        for one in self.verdicts[:1]:
            count = self.unjudged[one.label]
            if count and one.by_index and one.problem is None:
                reason = (
                    f"no verdict on {count} of {self.rows} predictions, first on index {self.first_unjudged} (run the evaluation again)"
                )
                yield Refusal(file=str(one.file), reason=reason)
            if one.count > one.used:
                reason = f"{one.count - one.used} verdicts on questions that {self.path.name} does not have (run the evaluation again)"
                yield Refusal(file=str(one.file), reason=reason)

    def _native(self, row: dict[str, Any], index: str) -> dict[str, Any]:
        asked, rotated = question(row, self.dataset, index)
        response = said(row.get("prediction"))
        native: dict[str, Any] = {**asked, "response": response, "correct": None, "score": None, "score_rule": None, "status": None}
        verdict, rule = self._judge(native, index, rotated=rotated)
        native["prediction"] = (verdict.extracted if verdict is not None else None) or _short(response)
        failed = response is not None and INFERENCE_FAILED in response
        if failed:
            native["status"], native["prediction"] = "failed", None
        elif verdict is not None and not verdict.failed:
            native["correct"], native["score"] = verdict.correct, verdict.score.special or verdict.score.value
            native["score_rule"] = rule if verdict.correct is not None or verdict.score != NOTHING else None
        elif verdict is not None:
            native["status"] = "unscored"
            native["scores.judge_failed"] = 1
            native["scores.hit"] = verdict.score.value if verdict.correct is None else int(verdict.correct)
        used = _ASKED | set(_LETTERS) | ({"hit", "score", *_EXTRACTED, *_LOGS} if self.own else set())
        native |= {f"settings.{name}": value for name, value in row.items() if name not in used and name}
        return native

    def _judge(self, native: dict[str, Any], index: str, *, rotated: bool) -> tuple[Verdict | None, str | None]:
        """The verdict that decides; other judges' are further scores of the row."""
        if not self.verdicts:
            return None, None
        first = None
        for place, one in enumerate(self.verdicts):
            verdict = one.take(index)
            if place == 0:
                first = verdict
                if verdict is None and not rotated:
                    self.unjudged[one.label] += 1
                    self.first_unjudged = self.first_unjudged or index
                if verdict is not None:
                    native |= {f"scores.{name}": value for name, value in verdict.further.items()}
            elif verdict is not None and one.rule is not None and not verdict.failed:
                native[f"scores.{one.rule}"] = verdict.score.value if verdict.correct is None else int(verdict.correct)
        return first, self.verdicts[0].rule


def question(row: dict[str, Any], dataset: str, index: str) -> tuple[dict[str, Any], bool]:
    """What a row asks, in native columns, and whether it is another option order of a question that has a row of its own."""
    hint, asked, gold = said(row.get("hint")), said(row.get("question")), said(row.get("answer"))
    hint = None if hint is None or hint.strip().lower() in {"", "nan", "none"} else hint
    words = f"{hint}\n{asked}" if hint is not None and asked is not None else asked
    options = option_texts(row, gold)
    hashed = content_hash(words, options) if words else None
    image = said(row.get("image_path"))
    if image is not None and (image.startswith(("/", "[")) or ":" in image[:3] or len(image) > 500):
        image = None  # where this machine keeps its images, or several
    group = group_of(row, dataset, index)
    if hashed is not None and (group is not None or CYCLED.match(dataset)):
        image = hashed
    rotated = group is not None and group != index
    if rotated and hashed is not None:
        hashed = content_hash(words, options, f"option order {index}")
    asks = {
        "question_id": _key(row, dataset, index),
        "text": words,
        "options": options,
        "gold": gold,
        "content_hash": hashed,
        "image_key": image,
        "category": said(row.get("category")),
        "subcategory": next((found for name in _SUBCATEGORIES if (found := said(row.get(name))) is not None), None),
        "task": said(row.get("task")),
    }
    return asks, rotated


def option_texts(row: dict[str, Any], gold: str | None) -> list[str] | None:
    """Options A, B, C, ... as far as they go, and at least to the right one; one that is missing is empty, so that letters keep their places.

    The framework's own reading of "None" and "NA" as nothing makes options disappear.
    """
    found = [said(row.get(letter)) for letter in _LETTERS if letter in row]
    least = _LETTERS.index(gold) + 1 if gold and len(gold) == 1 and gold in _LETTERS else 0
    while len(found) > least and found[-1] is None:
        found.pop()
    return [one or "" for one in found] if len(found) > 1 and any(found) else None


def group_of(row: dict[str, Any], dataset: str, index: str) -> str | None:
    """The index of the question of which a row is an option order; None in data sets that ask in one order only."""
    group = text(row.get("g_index"))
    if group is None and CIRCULAR.match(dataset) and index.isdecimal():
        return str(int(index) % ROTATION)
    return group


def said(value: Any) -> str | None:
    """A cell as the words that the framework would put into a prompt."""
    if isinstance(value, bool):
        return "True" if value else "False"
    return text(value)


def _key(row: dict[str, Any], dataset: str, index: str) -> str:
    """The data set's own id, else VLMEvalKit's index under its own name."""
    for name in own_ids(dataset):
        own = text(row.get(name))
        if own is not None and own.strip():
            return own
    return keyed(FRAMEWORK, index)


def _short(response: str | None) -> str | None:
    words = (response or "").strip()
    return words if 0 < len(words) <= SHORT_ANSWER else None


def _lean(row: dict[str, Any], known: frozenset[str]) -> dict[str, Any]:
    """Of a judged row only what judging made of it: the rest is in the predictions."""
    kept = {name: value for name, value in row.items() if name in _KEPT or name not in known}
    for name in _LOGS:
        if kept.get(name) is not None:
            kept[name] = any(mark in str(kept[name]) for mark in JUDGE_FAILED)
    return kept


def _rule(rows: Sequence[dict[str, Any]], dataset: str) -> tuple[str | None, bool]:
    """The column that says whether an answer is right, and whether its numbers between 0 and 1 are credit."""
    for name in ("hit", "score"):
        told = [row[name] for row in rows if row.get(name) is not None]
        numbers = [_graded(one) for one in told]
        if not told or NOTHING in numbers:
            continue
        values = {one.value for one in numbers if one.value is not None}
        if values <= {0.0, 1.0, -1.0}:
            return name, True
        if all(0 <= one <= 1 for one in values):
            share = name == "hit" or SHARES.match(dataset) is not None
            return (name, True) if share else (None, False)
    return None, False


def _verdict(row: dict[str, Any], rule: str | None, further: Sequence[str], *, credit: bool) -> Verdict:
    graded = _graded(row.get(rule)) if rule is not None and credit else NOTHING
    if graded.value is not None and graded.value < 0:  # what VLMEvalKit writes before it has judged
        graded = NOTHING
    correct = graded.value == 1.0 if graded.value in {0.0, 1.0} else None
    return Verdict(
        correct=correct,
        score=graded,
        failed=any(row.get(name) is True for name in _LOGS),
        extracted=next((found for name in _EXTRACTED if (found := _short(said(row.get(name))))), None),
        further={name: row[name] for name in further if row.get(name) is not None},
    )


def _graded(value: Any) -> Number:
    words = truth(value)
    return number(value if words is None else float(words))


def _is_number_column(name: str, rows: Sequence[dict[str, Any]]) -> bool:
    if name in _NOT_SCORES or len(name) == 1:
        return False
    told = [row[name] for row in rows if row.get(name) is not None]
    return bool(told) and all(_graded(one) != NOTHING for one in told)
