"""Sound evaluation output of every format in small pieces, held in memory: what the tests of this folder damage.

A unit is a folder that some reader reads without a word. Most are fixtures of `tests/data/ingest`; formats whose
files are binary are written here.
"""

from __future__ import annotations

import csv
import io
import json
import sqlite3
import struct
import tempfile
import zlib
from contextlib import closing
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.readers.harness import INGEST
from tracker.study import Study

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

STUDY = Study.model_validate(
    {
        "table": [
            {
                "files": r"adhoc\.[a-z]+$",
                "model": "lab/Adhoc",
                "benchmark": "Odd",
                "columns": {"question_id": "id", "prediction": "out", "gold": "key"},
            }
        ]
    }
)
"""Describes the ad-hoc tables, and nothing else."""


@dataclass(frozen=True, slots=True)
class Unit:
    """A folder (contents by relative path), the files in it that are worth damaging, and their format."""

    format: str
    name: str
    files: Mapping[str, bytes] = field(repr=False)
    targets: tuple[str, ...]

    def write(self, folder: Path, **damaged: bytes) -> Path:
        """The folder on disk, with other contents for some files."""
        for place, content in {**self.files, **damaged}.items():
            path = folder / place
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return folder


@cache
def all_units() -> tuple[Unit, ...]:
    """Every unit, in a fixed order."""
    makers = (_native, _adhoc, _score_tables, _from_fixtures, _inspect, _vlmevalkit, _mlflow_files, _mlflow_sqlite)
    return tuple(unit for make in makers for unit in make())


def formats() -> list[str]:
    """The formats in order."""
    return list(dict.fromkeys(unit.format for unit in all_units()))


def folder_of(format_: str, name: str, root: Path, targets: Sequence[str], below: str = "") -> Unit:
    """A folder on disk as a unit; `targets` are patterns of paths."""
    files = {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and below in path.as_posix()
    }
    chosen = [path.relative_to(root).as_posix() for pattern in targets for path in sorted(root.glob(pattern)) if path.is_file()]
    assert chosen, f"{root}: nothing matches {targets}"
    return Unit(format_, name, files, tuple(dict.fromkeys(chosen)))


# ---- fixtures ------------------------------------------------------------------------------------


def _from_fixtures() -> Iterable[Unit]:
    told: dict[str, dict[str, Sequence[str]]] = {
        "lm_eval": {
            "v043_two_filters": ["**/samples_*.jsonl", "**/results_*.json"],
            "v040_array": ["*.jsonl", "results.json"],
            "v049_given_name": ["samples_*.jsonl"],
            "v047_labelled": ["**/samples_toy_hard*.jsonl"],
            "v03": ["toy.json"],
        },
        "lmms_eval": {
            "v06": ["**/*_samples_mmmu_val.jsonl", "**/*_results.json"],
            "v024_doc": ["**/*_samples_mme.jsonl"],
            "v022_logs": ["**/mme.json", "**/results.json"],
            "no_results": ["**/*.jsonl"],
        },
        "vlmevalkit": {
            "hrbench": ["**/*_HRBench4K.xlsx", "**/*_openai_result.xlsx"],
            "mcq_status": ["**/*_MMStar_gpt-4o-mini_result.tsv", "**/*_MMBench_DEV_EN.tsv", "**/status.json", "**/*_MMStar_acc.csv"],
            "yes_no_and_free": ["**/*_POPE_auxmatch.json", "**/*_MMVet.json", "**/*_POPE_score.csv"],
        },
        "helm": {"generation": ["**/*.json"], "separate_original": ["**/scenario_state.json", "**/per_instance_stats.json"]},
        "opencompass": {
            "gen": ["**/predictions/**/*.json", "**/results/**/sums_gen.json"],
            "ppl": ["**/predictions/tiny-4bit/*.json", "**/results/tiny-4bit/*.json", "**/*.py"],
            "unfinished": ["**/tmp_cut.jsonl"],
        },
        "evalscope": {
            "v1": ["**/reviews/**/iquiz_EQ.jsonl", "**/predictions/**/iquiz_EQ.jsonl", "**/reports/**/*.json", "**/task_config.yaml"],
            "v1_14_writer": ["**/reviews/**/*mcq*.jsonl", "**/reports/**/*mcq.json"],
            "v0_17": ["**/reviews/**/arc*.jsonl"],
        },
        "lighteval": {"v0_13": ["**/*.parquet", "**/results_*.json"]},
        "every_eval_ever": {
            "lm_eval_converted": ["**/*.json", "**/*_samples.jsonl"],
            "samples_alone": ["rows.jsonl"],
            "v02_results": ["old.json"],
            "other_scales": ["scales.json", "scales_samples.jsonl"],
        },
        "inspect_ai": {"nan_and_keys": ["log.json", "logs.json"], "v1_old": ["*.json"], "choices_logprobs": ["log.json"]},
    }
    for format_, variants in told.items():
        for variant, targets in variants.items():
            yield folder_of(format_, variant, INGEST / format_ / variant, targets)


# ---- tables --------------------------------------------------------------------------------------


def native_rows() -> list[dict[str, Any]]:
    """Two runs of eight questions."""
    return [
        {
            "model": model,
            "benchmark": "Bench",
            "question_id": f"q{at:02}",
            "correct": at % 2 == 0,
            "p_gold": round(0.1 + at / 20, 3),
            "prediction": "AB"[at % 2],
            "gold": "A",
            "text": f"What is in picture {at}, and why? ",
            "options": ["a cat", "a dog"],
            "category": "animals",
            "input_size": 448,
        }
        for model in ("lab/Alpha", "lab/Beta")
        for at in range(8)
    ]


def adhoc_rows() -> list[dict[str, Any]]:
    """Nine rows in names of nobody."""
    return [{"id": f"item-{at:03}", "out": "ABC"[at % 3], "key": "ABC"[at % 2], "note": f"row {at}"} for at in range(9)]


def score_rows() -> list[dict[str, Any]]:
    """Two models on three benchmarks."""
    return [
        {"model": model, "benchmark": benchmark, "metric": "accuracy", "value": round(0.5 + at / 10, 3), "stderr": 0.01, "few_shot": 5}
        for model in ("lab/Alpha", "lab/Beta")
        for at, benchmark in enumerate(("MMLU", "ARC", "GSM8K"))
    ]


def jsonl(rows: Sequence[Mapping[str, Any]]) -> bytes:
    """Rows as JSON Lines."""
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def delimited(rows: Sequence[Mapping[str, Any]], mark: str = ",") -> bytes:
    """Rows as CSV or TSV."""
    out = io.StringIO()
    writer = csv.writer(out, delimiter=mark, lineterminator="\n")
    writer.writerow(rows[0])
    writer.writerows([json.dumps(cell) if isinstance(cell, list) else cell for cell in row.values()] for row in rows)
    return out.getvalue().encode()


def parquet(rows: Sequence[Mapping[str, Any]], **options: Any) -> bytes:
    """Rows as Parquet."""
    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist([dict(row) for row in rows]), out, **options)
    return out.getvalue()


def xlsx(rows: Sequence[Mapping[str, Any]]) -> bytes:
    """Rows as a workbook."""
    import xlsxwriter

    out = io.BytesIO()
    options = {"in_memory": True, "strings_to_numbers": False, "strings_to_formulas": False, "strings_to_urls": False}
    with xlsxwriter.Workbook(out, options) as book:
        sheet = book.add_worksheet()
        for at, row in enumerate([list(rows[0]), *(list(row.values()) for row in rows)]):
            for column, cell in enumerate(row):
                told = json.dumps(cell) if isinstance(cell, list) else cell
                (sheet.write_string if isinstance(told, str) else sheet.write)(at, column, told)
    return out.getvalue()


Rows = list[dict[str, Any]]
WRITERS: dict[str, Callable[[Rows], bytes]] = {
    "jsonl": jsonl,
    "csv": delimited,
    "tsv": lambda rows: delimited(rows, "\t"),
    "parquet": parquet,
    "xlsx": xlsx,
    "json": lambda rows: json.dumps(rows, indent=1).encode(),
}


def _native() -> Iterable[Unit]:
    for suffix in ("jsonl", "csv", "tsv", "parquet"):
        yield Unit("native", suffix, {f"answers.{suffix}": WRITERS[suffix](native_rows())}, (f"answers.{suffix}",))


def _adhoc() -> Iterable[Unit]:
    for suffix, write in WRITERS.items():
        yield Unit("table", suffix, {f"adhoc.{suffix}": write(adhoc_rows())}, (f"adhoc.{suffix}",))


def _score_tables() -> Iterable[Unit]:
    for suffix in ("csv", "json", "xlsx", "jsonl"):
        yield Unit("score_table", suffix, {f"board.{suffix}": WRITERS[suffix](score_rows())}, (f"board.{suffix}",))


def _vlmevalkit() -> Iterable[Unit]:
    folder = "Toy-VL/T20260101_Gabcdef12/Toy-VL"
    rows = [
        {
            "index": at,
            "question": f"Is there a cat in {at}?",
            "answer": "Yes",
            "category": "existence",
            "prediction": "Yes",
            "extracted": "Yes",
            "score": at % 2,
        }
        for at in range(6)
    ]
    files = {
        f"{folder}_POPE.xlsx": xlsx([{name: row[name] for name in list(row)[:5]} for row in rows]),
        f"{folder}_POPE_auxmatch.xlsx": xlsx(rows),
    }
    yield Unit("vlmevalkit", "auxmatch_xlsx", files, tuple(files))


# ---- Inspect archives ----------------------------------------------------------------------------


def deflate(data: bytes) -> bytes:
    """Raw deflate, as in archives."""
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


def zstd(data: bytes) -> bytes:
    """One Zstandard frame."""
    packed: bytes = pa.Codec("zstd").compress(data, asbytes=True)
    return packed


PACKERS: dict[int, Callable[[bytes], bytes]] = {0: bytes, 8: deflate, 93: zstd}


def archive(members: Mapping[str, bytes], method: int) -> bytes:
    """An archive, written by hand: the standard library does not pack Zstandard."""
    body, entries = b"", b""
    for name, data in members.items():
        packed, plain = PACKERS[method](data), name.encode()
        facts = struct.pack("<HHHHHIIIHH", 20, 0, method, 0, 0, zlib.crc32(data), len(packed), len(data), len(plain), 0)
        entries += b"PK\x01\x02" + struct.pack("<H", 20) + facts + struct.pack("<HHHII", 0, 0, 0, 0, len(body)) + plain
        body += b"PK\x03\x04" + facts + plain + packed
    end = b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, len(members), len(members), len(entries), len(body), 0)
    return body + entries + end


def inspect_members() -> dict[str, bytes]:
    """What is in the archive of a finished log of six samples."""
    log = json.loads((INGEST / "inspect_ai" / "choices_logprobs" / "log.json").read_text("utf-8"))
    header = {name: value for name, value in log.items() if name != "samples"}
    header["eval"]["dataset"]["samples"] = header["results"]["total_samples"] = header["results"]["completed_samples"] = 6
    model = log["samples"][0]
    samples = [{**model, "id": f"s{at}", "epoch": 1, "input": f"Question number {at}, rather long. " * 8} for at in range(6)]
    summaries = [{"id": one["id"], "epoch": 1, "scores": one.get("scores")} for one in samples]
    members: dict[str, Any] = {"_journal/start.json": {**header, "status": None}}
    members |= {f"samples/{one['id']}_epoch_1.json": one for one in samples}
    members |= {"_journal/summaries/1.json": summaries, "summaries.json": summaries, "header.json": header}
    return {name: json.dumps(one).encode() for name, one in members.items()}


def _inspect() -> Iterable[Unit]:
    for method, name in ((93, "zstd"), (8, "deflate"), (0, "stored")):
        yield Unit("inspect_ai", name, {"log.eval": archive(inspect_members(), method)}, ("log.eval",))


# ---- MLflow stores -------------------------------------------------------------------------------

RUN = "0123456789abcdef0123456789abcdef"
TABLE = json.dumps(
    {
        "columns": ["question_id", "question", "prediction", "gold", "correct"],
        "data": [[f"m{at}", f"What is {at}?", "A", "AB"[at % 2], at % 2 == 0] for at in range(6)],
    }
)


def _mlflow_files() -> Iterable[Unit]:
    run = f"mlruns/1/{RUN}"
    files = {
        "mlruns/1/meta.yaml": "artifact_location: x\nexperiment_id: '1'\nlifecycle_stage: active\nname: first\n",
        f"{run}/meta.yaml": f"artifact_uri: x\nend_time: 1700000001000\nexperiment_id: '1'\nlifecycle_stage: active\nrun_id: {RUN}\nrun_name: r\nstart_time: 1700000000000\nstatus: 3\n",
        f"{run}/params/model": "lab/Alpha",
        f"{run}/params/image_size": "448",
        f"{run}/tags/mlflow.runName": "r",
        f"{run}/metrics/loss": "".join(f"{1700000000000 + at} {1 / (at + 1)} {at}\n" for at in range(8)),
        f"{run}/metrics/val/acc": "1700000000000 0.5 0\n1700000000001 0.75 1\n",
        f"{run}/artifacts/eval_results.json": TABLE,
    }
    targets = [f"{run}/meta.yaml", f"{run}/metrics/loss", f"{run}/artifacts/eval_results.json", f"{run}/params/model", "mlruns/1/meta.yaml"]
    yield Unit("mlflow_files", "store", {name: text.encode() for name, text in files.items()}, tuple(targets))


MLFLOW_TABLES = """
CREATE TABLE alembic_version (version_num VARCHAR(32));
CREATE TABLE experiments (experiment_id INTEGER PRIMARY KEY, name VARCHAR(256), artifact_location VARCHAR(256), lifecycle_stage VARCHAR(32));
CREATE TABLE runs (run_uuid VARCHAR(32) PRIMARY KEY, name VARCHAR(250), source_type VARCHAR(20), user_id VARCHAR(256), status VARCHAR(20), start_time BIGINT,
    end_time BIGINT, lifecycle_stage VARCHAR(20), artifact_uri VARCHAR(200), experiment_id INTEGER);
CREATE TABLE metrics (key VARCHAR(250), value FLOAT, timestamp BIGINT, run_uuid VARCHAR(32), step BIGINT, is_nan BOOLEAN);
CREATE TABLE latest_metrics (key VARCHAR(250), value FLOAT, timestamp BIGINT, step BIGINT, is_nan BOOLEAN, run_uuid VARCHAR(32));
CREATE TABLE params (key VARCHAR(250), value VARCHAR(8000), run_uuid VARCHAR(32));
CREATE TABLE tags (key VARCHAR(250), value VARCHAR(8000), run_uuid VARCHAR(32));
"""


def _mlflow_sqlite() -> Iterable[Unit]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mlflow.db"
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("PRAGMA page_size = 1024")
            connection.executescript(MLFLOW_TABLES)
            connection.execute("INSERT INTO alembic_version VALUES ('bda7b8c39065')")
            connection.execute("INSERT INTO experiments VALUES (1, 'sweep', './mlruns/1', 'active')")
            for number in range(6):
                run, start = f"{number:032x}", 1_700_000_000_000 + number * 1000
                place = f"./mlruns/1/{run}/artifacts"
                connection.execute(
                    "INSERT INTO runs VALUES (?, ?, 'LOCAL', 'user', 'FINISHED', ?, ?, 'active', ?, 1)",
                    (run, f"run-{number}", start, start + 900, place),
                )
                connection.executemany(
                    "INSERT INTO params VALUES (?, ?, ?)", [("model", "lab/Alpha", run), ("image_size", str(224 + 112 * number), run)]
                )
                connection.executemany("INSERT INTO tags VALUES (?, ?, ?)", [("mlflow.runName", f"run-{number}", run), ("site", "a", run)])
                points = [(name, 1 / (at + 1), start + at, run, at, 0) for name in ("loss", "acc") for at in range(10)]
                connection.executemany("INSERT INTO metrics VALUES (?, ?, ?, ?, ?, ?)", points)
                connection.executemany(
                    "INSERT INTO latest_metrics VALUES (?, ?, ?, ?, 0, ?)",
                    [(name, value, time, step, run) for name, value, time, run, step, _ in points if step == 9],
                )
        content = path.read_bytes()
    table = f"mlruns/1/{0:032x}/artifacts/eval_results.json"
    yield Unit("mlflow_sqlite", "store", {"mlflow.db": content, table: TABLE.encode()}, ("mlflow.db", table))
