"""What a reader hands over: one run (or a piece of one) as a small header and Arrow tables.

This module is the contract between readers and ingest; it knows no format and no database.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path  # noqa: TC003 - dataclass fields are read at run time
from typing import Any, Literal

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field, field_validator

RECORDS = pa.schema(
    [
        pa.field("question_key", pa.string(), nullable=False),
        pa.field("repetition", pa.int32()),
        pa.field("attempt", pa.int32()),
        pa.field("status", pa.string()),
        pa.field("correct", pa.bool_()),
        pa.field("score", pa.float64()),
        pa.field("special", pa.string()),
        pa.field("score_rule", pa.string()),
        pa.field("prediction", pa.string()),
        pa.field("logit_prediction", pa.string()),
        pa.field("p_gold", pa.float64()),
        pa.field("option_scores", pa.string()),
        pa.field("visual_tokens", pa.int64()),
        pa.field("prompt_tokens", pa.int64()),
        pa.field("generated_tokens", pa.int64()),
        pa.field("tiles", pa.int64()),
        pa.field("effective_pixels", pa.int64()),
        pa.field("vision_flops", pa.float64()),
        pa.field("latency_s", pa.float64()),
        pa.field("response", pa.string()),
    ]
)
"""Records of one run in file order. Null repetition means 0. Null attempt means "number it": the next attempt
of the same (question, repetition) in file order. Null status means "derive it": scored where a credit exists
(correct, or score in [0, 1]), else unscored; a reader says `failed` where the source says that no answer came."""

QUESTIONS = pa.schema(
    [
        pa.field("key", pa.string(), nullable=False),
        pa.field("content_hash", pa.string()),
        pa.field("image_key", pa.string()),
        pa.field("pair_key", pa.string()),
        pa.field("text", pa.string()),
        pa.field("options", pa.string()),
        pa.field("gold", pa.string()),
        pa.field("n_options", pa.int64()),
        pa.field("task", pa.string()),
        pa.field("category", pa.string()),
        pa.field("subcategory", pa.string()),
        pa.field("image_width", pa.int64()),
        pa.field("image_height", pa.int64()),
    ]
)
"""What the source says about its questions, one row per key (later rows of a repeated key are ignored)."""

LABELS = pa.schema(
    [
        pa.field("key", pa.string(), nullable=False),
        pa.field("scheme", pa.string(), nullable=False),
        pa.field("value", pa.string(), nullable=False),
        pa.field("source", pa.string(), nullable=False),
    ]
)
"""Labels of questions (scheme such as domain or skill)."""

RECORD_SCORES = pa.schema(
    [
        pa.field("row", pa.int64(), nullable=False),
        pa.field("scorer", pa.string(), nullable=False),
        pa.field("score", pa.float64()),
        pa.field("special", pa.string()),
    ]
)
"""Further scores; `row` is the position of the record in the same batch's records table."""

METRIC_POINTS = pa.schema(
    [
        pa.field("metric", pa.string(), nullable=False),
        pa.field("step", pa.int64(), nullable=False),
        pa.field("seq", pa.int32(), nullable=False),
        pa.field("tokens", pa.float64()),
        pa.field("flops", pa.float64()),
        pa.field("value", pa.float64()),
        pa.field("special", pa.string()),
        pa.field("logged_at", pa.timestamp("us", tz="UTC")),
    ]
)
"""Points of training curves; `seq` numbers the points of one (metric, step) of a batch from 0, in their order."""


PRECISIONS = {
    "half": "float16", "fp16": "float16", "f16": "float16", "bf16": "bfloat16", "fp32": "float32", "float": "float32", "f32": "float32",
    "int8": "8bit", "int4": "4bit",
}  # fmt: skip
"""Spellings of precisions, and the one that is kept."""


class AggregateScore(BaseModel):
    """An aggregate score as the source states it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    metric: str
    value: float | None = None
    special: Literal["nan", "inf", "-inf"] | None = None
    stderr: float | None = None
    n: int | None = None
    step: int | None = None
    tokens: float | None = None
    benchmark: str | None = None


class Settings(BaseModel):
    """The configuration columns, as far as the source gives them (DEFINITIONS: exactly these make a configuration)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    input_mode: Literal["fixed", "native"] | None = None
    input_size: int | None = Field(default=None, gt=0)
    max_tiles: int | None = Field(default=None, gt=0)
    pixel_cap: int | None = Field(default=None, gt=0)
    source_quality: str | None = None
    vision_branches: int | None = Field(default=None, gt=0)
    language_branches: int | None = Field(default=None, gt=0)
    few_shot: int | None = Field(default=None, ge=0)
    precision: str | None = None
    max_new_tokens: int | None = Field(default=None, gt=0)
    prompt: str | None = None
    variant: str | None = None

    @field_validator("precision")
    @classmethod
    def _one_spelling(cls, value: str | None) -> str | None:
        """bf16, torch.bfloat16 and bfloat16 are one precision."""
        if value is None:
            return None
        name = value.strip().removeprefix("torch.").lower()
        return PRECISIONS.get(name, name) or None


class RunHeader(BaseModel):
    """One run, without its records."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: str = Field(min_length=1)
    benchmark: str | None = None
    kind: Literal["evaluation", "training"] = "evaluation"
    configuration: Settings = Settings()
    external_id: str | None = None
    """The source's own run id; None means the source's uri."""
    framework: str | None = None
    framework_version: str | None = None
    status: Literal["finished", "partial", "failed"] = "finished"
    status_reason: str | None = None
    n_expected: int | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    system: str | None = None
    settings: dict[str, Any] = Field(default_factory=dict)
    tags: dict[str, Any] = Field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """A run, or the next piece of one.

    Pieces of one run share (model, benchmark, configuration, external_id); the header of the last piece is the
    run's header, so a reader that learns at the end that a file is truncated says so there.
    """

    run: RunHeader
    records: pa.Table
    questions: pa.Table | None = None
    labels: pa.Table | None = None
    record_scores: pa.Table | None = None
    metric_points: pa.Table | None = None
    scores: tuple[AggregateScore, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Something in a source that was refused; the rest goes in."""

    file: str
    reason: str
    line: int | None = None
    text: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The files of one or more runs that belong together: the unit of change.

    `uri` is the resolved path of its main file (or an address); `files` is everything whose bytes matter;
    `mapping` is whatever outside the bytes decides how they are read (JSON values only). The bytes (or `content`,
    which stands for them where the source is no file, such as one run in a database), the mapping and the reader's
    version make the digest. Files of other folders may be among `files`: whatever a source names, no later folder offers.
    """

    reader: str
    uri: str
    files: tuple[Path, ...]
    mapping: dict[str, Any] = field(default_factory=dict)
    content: str | None = None
    """A digest of the content, where `files` are not what is to be compared."""
    claims: tuple[Path, ...] = ()
    """Files that belong to this source and are not compared: no other reader is offered them."""
    group: str | None = None
    """Sources of one group are read together, by `BulkReader.read_many`."""
    experiment: str | None = None
    """Name of the experiment, where the format has such a thing (`--experiment` chooses by it)."""
    time: datetime | None = None
    """When it last changed, where something better than the files' own times is known (`--since` chooses by it)."""
    address: str | None = None
    """Another name of it that `[[path]]` rules see, where `uri` does not say what they want to know."""
    left_out: str | None = None
    """Why it is not read though it was found (such as "deleted in MLflow"): counted in the summary."""


_NO_RECORDS = RECORDS.empty_table()


def empty_records() -> pa.Table:
    """A records table without rows."""
    return _NO_RECORDS
