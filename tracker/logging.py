"""Log an evaluation from your own loop."""

from __future__ import annotations

import hashlib
import uuid
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Self

from tracker.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from types import TracebackType

    from tracker.api import Tracker
    from tracker.ingest.report import IngestReport

RESERVED = ("question_key", "special", "status")


class RunLog:
    """One run being logged. Nothing is stored before the `with` block ends; then the whole run is.

    An exception inside the block stores what was logged as a partial run, and goes on.
    """

    def __init__(self, tracker: Tracker, *, model: str, benchmark: str, run_id: str | None, settings: dict[str, Any]) -> None:
        from tracker.batch import Settings

        known = set(Settings.model_fields)
        _no_typing_error(settings, known)
        for name, value in (("model", model), ("benchmark", benchmark)):
            if not isinstance(value, str) or not value.strip():
                message = f"{name}: expected a name, found {value!r}"
                raise UsageError(message)
        self.run_id = run_id or uuid.uuid4().hex
        self.report: IngestReport | None = None
        self._tracker, self._model, self._benchmark = tracker, model, benchmark
        self._configuration = _configuration({name: value for name, value in settings.items() if name in known})
        self._settings = {name: value for name, value in settings.items() if name not in known}
        self._rows: list[dict[str, Any]] = []
        self._started = datetime.now(UTC)
        self._ended = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, err: BaseException | None, trace: TracebackType | None) -> None:
        self._ended = True
        reason = f"{kind.__name__}: {err}" if kind is not None else None
        self._store(reason)

    def log(self, *, question_id: str | int, correct: bool | None = None, score: float | None = None, **fields: Any) -> None:
        """Log one answer; `fields` are columns of records and questions (text, gold, options, p_gold, visual_tokens, ...).

        Raises UsageError for a field that neither has, with the nearest that does, and for a value of the wrong type; what was
        logged before stays.
        """
        if self._ended:
            message = "the run has ended: nothing can be logged after its `with` block"
            raise UsageError(message, hint="log inside the block, or open another run")
        unknown = sorted(set(fields) - _field_names())
        if unknown:
            import difflib

            near = difflib.get_close_matches(unknown[0], sorted(_field_names()), n=1)
            hint = f"did you mean {near[0]}?" if near else "trackr schema records and trackr schema questions list the columns"
            message = f"unknown field {unknown[0]!r}"
            raise UsageError(message, hint=hint)
        if correct is None and score is None and fields.get("response") is None:
            message = f"question {question_id!r} has neither correct nor score"
            raise UsageError(message, hint="log correct=..., score=..., or at least response=... for an unscored answer")
        row = {"question_key": str(question_id), "correct": _right(correct), "score": score, **fields}
        batch_of(None, [row])  # a mistake is said here, not when the block ends and the whole run would be lost
        p_gold = fields.get("p_gold")
        if p_gold is not None and (p_gold < 0 or p_gold > 1):
            message = f"p_gold: expected a probability from 0 to 1, found {p_gold!r}"
            raise UsageError(message)
        self._rows.append(row)

    def _store(self, reason: str | None) -> None:
        from tracker.batch import RunHeader

        header = RunHeader(
            model=self._model,
            benchmark=self._benchmark,
            configuration=self._configuration,
            external_id=self.run_id,
            framework="trackr",
            status="finished" if reason is None else "partial",
            status_reason=reason,
            started_at=self._started,
            ended_at=datetime.now(UTC),
            settings=self._settings,
        )
        self.report = self._tracker.load_batch(header, self._rows)


def _right(correct: Any) -> Any:
    """1 and 0 are true and false, as in a table; what is neither stays, and is refused."""
    from tracker.readers.values import truth

    return correct if correct is None or isinstance(correct, str) or (found := truth(correct)) is None else found


def _no_typing_error(settings: Mapping[str, Any], known: set[str]) -> None:
    """Raise UsageError for a setting that is almost a configuration column: kept aside, it would merge runs that differ in it."""
    import difflib

    for name in settings:
        near = difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.88)
        if near and name not in known:
            message = f"unknown setting {name!r}"
            raise UsageError(message, hint=f"did you mean {near[0]}?")


def _configuration(values: dict[str, Any]) -> Any:
    from pydantic import ValidationError

    from tracker.batch import Settings

    try:
        return Settings(**values)
    except ValidationError as err:
        first = err.errors()[0]
        message = f"setting {'.'.join(map(str, first['loc']))}: {first['msg']}"
        raise UsageError(message) from err


def _field_names() -> set[str]:
    from tracker.batch import QUESTIONS, RECORDS

    return (set(RECORDS.names) | set(QUESTIONS.names) | {"domain", "skill"}) - {"question_key", "key", "special"}


def batch_of(header: Any, rows: list[dict[str, Any]]) -> Any:
    """A batch of logged rows. Raises UsageError for a value of the wrong type."""
    import pyarrow as pa

    from tracker.batch import LABELS, QUESTIONS, RECORDS, Batch

    try:
        answers = [
            {**row, "score_rule": row.get("score_rule", "logged"), "option_scores": _json_text(row.get("option_scores"))} for row in rows
        ]
        records = pa.Table.from_pylist(answers, schema=RECORDS)
        described = [_described(row) for row in rows]
        questions = pa.Table.from_pylist(described, schema=QUESTIONS)
    except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, ValueError, OverflowError) as err:
        message = f"a logged value has the wrong type: {err}"
        raise UsageError(message, hint="trackr schema records lists the types") from err
    labels = [
        {"key": row["question_key"], "scheme": scheme, "value": str(row[scheme]), "source": "native"}
        for row in rows
        for scheme in ("domain", "skill")
        if row.get(scheme) is not None
    ]
    return Batch(run=header, records=records, questions=questions, labels=pa.Table.from_pylist(labels, schema=LABELS))


def _described(row: dict[str, Any]) -> dict[str, Any]:
    """What a row says of its question; its hash joins it with the same question of other sources."""
    import orjson

    from tracker.readers.values import content_hash

    options = _json_text(row.get("options"))
    listed = orjson.loads(options) if options is not None else None
    text = row.get("text")
    told = {
        "n_options": len(listed) if listed else None,
        "content_hash": content_hash(text, listed, row.get("image_key")) if text else None,
    }
    return {**told, **row, "key": row["question_key"], "options": options}


def _json_text(value: Any) -> str | None:
    """A list as JSON text; a text that is JSON already stays."""
    import orjson

    return value if value is None or isinstance(value, str) else orjson.dumps(list(value)).decode()


def reading_of(header: Any, rows: list[dict[str, Any]], folder: Path) -> Any:
    """A reading of logged rows, ready to load."""
    import orjson

    from tracker.batch import Source
    from tracker.ingest.read import collect
    from tracker.study import Study

    source = Source(reader="log", uri=f"log:{header.external_id}", files=())
    content = orjson.dumps([header.model_dump(mode="json"), rows], default=str)
    return collect([batch_of(header, rows)], source, Study.empty(), folder, hashlib.sha256(content).hexdigest())
