"""The rows of a details file in native columns: nested columns of every version, and before 0.7 columns of Python text."""

from __future__ import annotations

import ast
import hashlib
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tracker.batch import Refusal
from tracker.errors import InputError
from tracker.readers.keys import image_place, keyed, own_ids, question_key
from tracker.readers.lighteval_results import category_of, is_share, says_correct, task_of
from tracker.readers.lines import foreign, listed
from tracker.readers.lm_choices import Choice, letter
from tracker.readers.lm_samples import question_of
from tracker.readers.single import chunk_of
from tracker.readers.tabular import PARQUET_MAGIC, parquet_place, parquet_schema, said_by
from tracker.readers.values import content_hash, json_text, number, option_list, text, whole

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    import pyarrow as pa

    from tracker.readers.tabular import Chunk

BATCH_ROWS, BATCH_ROWS_WITH_IMAGES = 1_000, 50
LONGEST_TEXT = 4 << 20
"""Longer Python text is not taken apart."""
SHORT_ANSWER = 200
_LEFT_OUT = frozenset({"fewshot_samples", "logits", "pred_logits", "stop_sequences", "padded", "truncated"})
"""Parts of a row that are large or say nothing here."""
_ASKED = re.compile(r"\A(?:Question|Q)\s*:\s*(?P<text>.*?)\s*\n\s*(?:Answer|A)\s*:?\s*\Z", re.DOTALL)
_ANSWER = re.compile(r"\s*\n\s*(?:Answer|A|Réponse|Antwort|Respuesta)\s*:?\s*\Z")
_NO_LITERAL = re.compile(r"(?<![\w.'\"])(-?)(?:nan|inf)(?![\w'\"])")
_LETTER = re.compile(r"[A-Z]")


@dataclass(slots=True)
class Details:
    """A details file being read; what was met decides at the end whether the run is complete."""

    path: Path
    task: str
    other_scales: frozenset[str] = frozenset()
    rows: int = 0
    generates: bool | None = None
    """Whether its answers were generated (or options only scored), as the first rows show."""
    damage: str | None = None
    asked_task: str | None = None
    shots: int | None = None
    _names: dict[str, str] = field(default_factory=dict)

    def chunks(self) -> Iterator[Chunk | Refusal]:
        """The rows in file order; a row group that cannot be read is refused and the next one read."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        schema = details_schema(self.path)
        names = [name for name in schema.names if name not in _LEFT_OUT]
        wanted = [one for name in names for one in _parts(schema.field(name))]
        size = BATCH_ROWS_WITH_IMAGES if _has_images(schema) else BATCH_ROWS
        with parquet_place(self.path) as place, pq.ParquetFile(place) as file:
            done = 0
            for group in range(file.num_row_groups):
                start = done
                try:
                    for batch in file.iter_batches(batch_size=size, row_groups=[group], columns=wanted):
                        yield from self._chunk(batch, done)
                        done += batch.num_rows
                except (pa.ArrowException, OSError, UnicodeDecodeError) as err:
                    reason = f"row group {group} cannot be read: {said_by(err)} (run lighteval again)"
                    self.damage = self.damage or f"row group {group} of the details cannot be read"
                    yield Refusal(file=str(self.path), line=done + 1, reason=reason)
                done = start + file.metadata.row_group(group).num_rows

    def _chunk(self, batch: pa.RecordBatch, before: int) -> Iterator[Chunk | Refusal]:
        made: list[dict[str, Any]] = []
        places: list[int] = []
        for place, row in enumerate(batch.to_pylist(), before + 1):
            try:
                found = self.record({str(name).strip("_"): value for name, value in row.items()}, place)
            except (ValueError, TypeError, RecursionError) as err:
                reason = f"row {place}: cannot be understood: {said_by(err)} (run lighteval again)"
                yield Refusal(file=str(self.path), line=place, reason=reason)
                continue
            if isinstance(found, str):
                yield Refusal(file=str(self.path), line=place, reason=f"row {place}: {found}")
                continue
            made.append(found)
            places.append(place)
        self.rows += len(made)
        if made:
            yield chunk_of(made, places)

    def record(self, row: Mapping[str, Any], place: int) -> dict[str, Any] | str:
        """One record; text says why there is none."""
        if "model_response" in row or "doc" in row:
            doc, answer = _object(row.get("doc")), _object(row.get("model_response"))
            metrics = _object(row.get("metric", row.get("metrics")))
        else:
            doc, answer, metrics = _older(row)
            shots = whole(row.get("num_asked_few_shots"))
            self.shots = self.shots if self.shots is not None else shots
        if not doc and not answer and not metrics:
            return "neither a document nor an answer nor a metric (run lighteval again)"
        self.asked_task = self.asked_task or text(doc.get("task_name")) or None
        choices = [text(one) or "" for one in _list(doc.get("choices"))]
        golds = [at for one in _list(doc.get("gold_index")) if (at := whole(one)) is not None and 0 <= at < max(len(choices), 1)]
        scores = _likelihoods(answer.get("logprobs"), len(choices))
        said = [one for one in (text(one) for one in _list(answer.get("text"))) if one is not None]
        if self.generates is None:
            self.generates = bool(said) if said or scores else None
        found = _question(doc, choices, golds, scored=scores is not None)
        specific = _object(doc.get("specific"))
        final = [one for one in (text(one) for one in _list(answer.get("text_post_processed"))) if one is not None] or said
        extracted = [text(one) for one in _list(specific.get("extracted_predictions"))]
        made: dict[str, Any] = {
            "question_id": self._key(doc, specific, found, place),
            "response": (said[0] if len(said) == 1 else json_text(said)) if said else None,
            "prediction": _prediction(extracted, final),
            "gold": found["gold"] or (_gold(choices, golds) or text(doc.get("gold")) if not found["options"] else None),
            "prompt_tokens": _prompt_tokens(answer.get("input_tokens")),
            "generated_tokens": _generated_tokens(answer.get("output_tokens")) if said else None,
            **self._judged(metrics),
            **{name: value for name, value in found.items() if name != "gold"},
            "category": category_of(self.task),
        }
        if scores is not None:
            choice = Choice(scores, tuple(golds))
            made |= {
                "option_scores": json_text(scores),
                "p_gold": choice.p_gold,
                "logit_prediction": choice.best,
                "gold": choice.gold_text,
                "n_options": len(scores),
            }
        return made

    def _judged(self, metrics: Mapping[str, Any]) -> dict[str, Any]:
        """Credit by the first metric that can be a share of right answers; the others beside it. Inputs of corpus metrics are no score."""
        flat = {
            name: value
            for name, value in metrics.items()
            if isinstance(value, bool) or (value is not None and number(value) != (None, None))
        }
        primary = next((name for name in flat if is_share(name, self.other_scales)), None)
        value = flat.pop(primary) if primary is not None else None
        correct = value if isinstance(value, bool) else None
        if correct is None and primary is not None and says_correct(primary) and number(value).value in {0.0, 1.0}:
            correct = number(value).value == 1.0
        score = float(value) if isinstance(value, bool) else value
        return {"correct": correct, "score": score, "score_rule": primary, "scores": flat}

    def _key(self, doc: Mapping[str, Any], specific: Mapping[str, Any], found: Mapping[str, Any], place: int) -> str:
        """The data set's own id where one is known, else the document's id, else the hash of what is asked, else the place in the file."""
        benchmark = task_of(self.task).name
        for name in own_ids(benchmark):
            own = text(specific.get(name))
            if own is not None and own.strip():
                return own
        given = (text(doc.get("id")) or "").strip()
        if given:
            return keyed("lighteval", given)
        return question_key("lighteval", benchmark, {}, found["content_hash"]) or f"lighteval:{place}"


def details_schema(path: Path) -> pa.Schema:
    """Schema of a details file; InputError where it is none."""
    try:
        with path.open("rb") as stream:
            start = stream.read(256)
    except OSError as err:
        message = f"cannot be read: {err.strerror or err}"
        raise InputError(message, where=str(path)) from err
    if not start:
        message = "empty file"
        raise InputError(message, where=str(path), hint="delete it or run lighteval again")
    if not start.startswith(PARQUET_MAGIC):
        message = foreign(start, path) or "no Parquet file"
        raise InputError(message, where=str(path), hint="delete it or run lighteval again")
    schema = parquet_schema(path)
    names = {name.strip("_") for name in schema.names}
    if not ({"model_response", "predictions"} & names) or not ({"metric", "metrics"} & names):
        message = (
            f"expected the columns doc, metric and model_response (before 0.11: predictions and metrics), found {listed(schema.names)}"
        )
        raise InputError(message, where=str(path), hint="run lighteval again, or leave the file out")
    return schema


def _parts(one: pa.Field) -> list[str]:
    """A column, or of a struct those parts that are wanted."""
    import pyarrow as pa

    if not pa.types.is_struct(one.type) or one.name.strip("_") not in {"doc", "model_response"}:
        return [one.name]
    return [
        f"{one.name}.{one.type.field(place).name}" for place in range(one.type.num_fields) if one.type.field(place).name not in _LEFT_OUT
    ]


def _has_images(schema: pa.Schema) -> bool:
    import pyarrow as pa

    name = next((name for name in schema.names if name.strip("_") == "doc"), None)
    if name is None or not pa.types.is_struct(schema.field(name).type):
        return False
    place = schema.field(name).type.get_field_index("images")
    return place >= 0 and not pa.types.is_null(schema.field(name).type.field(place).type)


def _older(row: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any], Mapping[str, Any]]:
    """A row before 0.11 in the parts of today. Before 0.7 every value is Python text."""
    plain = {name: _literal(value) for name, value in row.items() if name not in {"example", "full_prompt", "instruction"}}
    predictions = _list(plain.get("predictions"))
    pairs = [one[0] if isinstance(one, list | tuple) and len(one) == 2 and isinstance(one[1], bool) else one for one in predictions]
    numeric = len(pairs) > 0 and all(isinstance(one, int | float) and not isinstance(one, bool) for one in pairs)
    golds = _list(plain.get("gold"))
    choices = _list(plain.get("choices")) or golds
    doc = {
        "query": text(row.get("example")) or text(row.get("full_prompt")),
        "instruction": text(row.get("instruction")),
        "choices": choices,
        "gold_index": plain.get("gold_index") if _list(plain.get("gold_index")) else list(range(len(golds))),
        "specific": plain.get("specifics", plain.get("specific")),
    }
    answer = {
        "logprobs": pairs if numeric else [],
        "text": [] if numeric else [text(one) for one in _flat(predictions)],
        "input_tokens": plain.get("input_tokens"),
        "output_tokens": plain.get("cont_tokens"),
    }
    return doc, answer, _object(plain.get("metrics"))


def _question(doc: Mapping[str, Any], choices: Sequence[str], golds: Sequence[int], *, scored: bool) -> dict[str, Any]:
    """Text, options and gold without the wrapping that the task puts around them."""
    query, original = text(doc.get("query")) or "", text(doc.get("original_query"))
    instruction = (text(doc.get("instruction")) or "").strip()
    body = query.strip()
    body = body[len(instruction) :].strip() if instruction and body.startswith(instruction) else body
    match = _ASKED.fullmatch(body)
    body = match["text"] if match else _ANSWER.sub("", body)
    options = [one.strip() for one in choices] if len(choices) > 1 and (scored or len(set(golds)) < len(choices)) else None
    asked: str | None = body or query or None
    if options and all(_LETTER.fullmatch(one) for one in options):
        known = question_of(body)
        listed = option_list(known.options) if known.options else None
        if listed and len(listed) == len(options):
            asked, options = known.text, listed
    if original and original.strip():
        asked = original.strip()
    image = _image(doc.get("images"))
    return {
        "text": asked,
        "options": options,
        "gold": _letters(golds) if options else None,
        "image_key": image,
        "content_hash": content_hash(asked, options) if asked else None,
    }


def _letters(golds: Sequence[int]) -> str | None:
    named = [letter(one) for one in golds]
    return named[0] if len(named) == 1 else json_text(named) if named else None


def _gold(choices: Sequence[str], golds: Sequence[int]) -> str | None:
    told = [choices[one].strip() for one in golds if one < len(choices)]
    return told[0] if len(told) == 1 else json_text(told) if told else None


def _likelihoods(logprobs: Any, options: int) -> list[float | None] | None:
    """One log-likelihood per option; with an unconditioned half behind them only the first half is the options'."""
    listed = _list(logprobs)
    if options < 2 or len(listed) not in {options, 2 * options}:
        return None
    found = [number(one) for one in listed[:options]]
    return [one.value if one.value is not None else {"inf": float("inf"), "-inf": float("-inf")}.get(one.special or "") for one in found]


def _prediction(extracted: Sequence[str | None], final: Sequence[str]) -> str | None:
    """What the metric took from the answer, where it says so; else the answer where it is short."""
    told = next((one for one in extracted if one), None)
    if told is not None:
        return told
    return final[0].strip() if len(final) == 1 and len(final[0].strip()) <= SHORT_ANSWER else None


def _prompt_tokens(tokens: Any) -> int | None:
    """Length of the prompt; where there is one list per option the first counts, all hold the same prompt."""
    listed = _list(tokens)
    inner = listed[0] if listed and isinstance(listed[0], list | tuple) else listed
    return len(inner) or None


def _generated_tokens(tokens: Any) -> int | None:
    """Tokens of all generated answers together."""
    listed = _list(tokens)
    count = (
        sum(len(one) for one in listed if isinstance(one, list | tuple)) if listed and isinstance(listed[0], list | tuple) else len(listed)
    )
    return count or None


def _image(images: Any) -> str | None:
    """Key of the one image of a question: its address or relative path, else the hash of its bytes, else the end of its path on one machine."""
    listed = _list(images)
    if len(listed) != 1 or not isinstance(listed[0], dict):
        return None
    path, held = listed[0].get("path"), listed[0].get("bytes")
    named = image_place(path) if isinstance(path, str) and path else None
    if named is not None and (named == path or not held):
        return named
    return f"sha256:{hashlib.sha256(held).hexdigest()[:32]}" if isinstance(held, bytes) and held else named


def _literal(value: Any) -> Any:
    """Python text (a list, an object, a number) as the value it was; anything else as it is. Nothing is ever run."""
    if not isinstance(value, str) or value[:1] not in "[({" or not value or len(value) > LONGEST_TEXT:
        return None if value in ("None", "") else value
    for attempt in (value, _NO_LITERAL.sub("None", value)):
        try:
            return ast.literal_eval(attempt)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            continue
    return value


def _object(value: Any) -> Mapping[str, Any]:
    """An object; also a map of Parquet, or its text."""
    found = _literal(value)
    if isinstance(found, list) and found and all(isinstance(one, tuple) and len(one) == 2 for one in found):
        found = {str(name): one for name, one in found}
    return {str(name): one for name, one in found.items() if one is not None} if isinstance(found, dict) else {}


def _list(value: Any) -> list[Any]:
    found = _literal(value)
    if found is None:
        return []
    return list(found) if isinstance(found, list | tuple) else [found]


def _flat(values: Sequence[Any]) -> Iterator[Any]:
    """Answers in lists of any depth; log-probabilities beside them are none."""
    for one in values:
        if isinstance(one, list | tuple):
            yield from _flat(one)
        elif isinstance(one, str):
            yield one
