"""Inspect logs: our own documents, logs by the real writer beside what inspect_ai reads from them, real files, damage."""

from __future__ import annotations

import json
import random
import struct
import subprocess
import sys
import warnings
import zipfile
import zlib
from collections import defaultdict
from copy import deepcopy
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa
import pytest

from tests.conftest import ROOT, samples
from tests.ingest.tables import open_store
from tests.readers.harness import matches, read, rows, sources, variants
from tracker.batch import Batch, Refusal
from tracker.errors import InputError
from tracker.readers import inspect_zip
from tracker.readers.base import Folder
from tracker.readers.inspect_ai import READER
from tracker.readers.inspect_parse import parse_sample
from tracker.readers.inspect_zip import Archive
from tracker.study import Study

if TYPE_CHECKING:
    from collections.abc import Iterator

HEADER = {
    "version": 2,
    "status": "success",
    "eval": {
        "eval_id": "e",
        "run_id": "r",
        "created": "2026-01-01T00:00:00+00:00",
        "task": "t",
        "task_id": "i",
        "dataset": {},
        "model": "m",
    },
    "results": {"total_samples": 3, "scores": [{"name": "exact", "scorer": "exact", "metrics": {}}]},
    "stats": {},
}


@pytest.mark.parametrize("variant", variants("inspect_ai"))
def test_every_kind_of_log_is_read_as_written_down(variant: str) -> None:
    found, expected = matches(READER, variant)
    assert found == expected


# ---- the real writer -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Logs by inspect_ai's writer, in both formats, and what it reads from them."""
    pytest.importorskip("inspect_ai")
    folder = tmp_path_factory.mktemp("inspect")
    subprocess.run([sys.executable, str(ROOT / "tests/readers/inspect_writer.py"), str(folder)], cwd=folder, check=True, timeout=600)
    return folder


def _log(written: Path, kind: str, name: str) -> tuple[dict[str, Any], list[Batch], list[Refusal]]:
    expected = json.loads((written / "expected.json").read_text())[kind][name]
    return expected, *_read(written / kind / expected["file"])


def _read(path: Path) -> tuple[list[Batch], list[Refusal]]:
    (source,) = READER.find(Folder(path.parent, [path.name]), Study.empty())
    parts = list(READER.read(source, Study.empty()))
    return [one for one in parts if isinstance(one, Batch)], [one for one in parts if isinstance(one, Refusal)]


def _further(batches: list[Batch]) -> dict[tuple[int, str], Any]:
    """(record, scorer) -> score or special."""
    found, before = {}, 0
    for batch in batches:
        for one in batch.record_scores.to_pylist() if batch.record_scores is not None else []:
            found[before + one["row"], one["scorer"]] = one["special"] or one["score"]
        before += batch.records.num_rows
    return found


@pytest.mark.parametrize("kind", ["eval", "json"])
def test_epochs_errors_limits_and_several_scorers(written: Path, kind: str) -> None:
    expected, batches, refusals = _log(written, kind, "tiny")
    assert not refusals
    header = batches[-1].run
    assert (header.model, header.benchmark, header.external_id, header.status) == ("mockllm/model", "tiny", expected["eval_id"], "finished")
    assert (header.n_expected, header.configuration.few_shot, header.configuration.variant) == (10, 3, "message_limit=6")
    assert header.framework_version
    assert (header.started_at, header.ended_at) == (datetime.fromisoformat(expected["started"]), datetime.fromisoformat(expected["ended"]))
    frame = {(one["id"], one["epoch"]): one for one in expected["frame"]}
    records, further = list(rows(batches)), _further(batches)
    assert len(records) == len(frame) == 10
    for at, record in enumerate(records):
        one = frame[record["question_key"], record["repetition"] + 1]
        failed = bool(one["error"])
        assert (record["status"] == "failed") is failed
        assert record["correct"] == (None if failed else one["score_match"] == "C")
        assert record["score_rule"] == (None if failed else "match")
        rating = None if failed else (one["score_rating"] if one["score_rating"] is not None else "nan")
        assert further.get((at, "rating")) == rating
        assert further.get((at, "parts.length")) == (None if failed else 7.5)
        assert (record["response"] or "") == expected["completions"][f"{one['id']} {one['epoch']}"]
        turns = 0 if failed else one["total_tokens"] // 18
        assert (record["prompt_tokens"] or 0, record["generated_tokens"] or 0) == (15 * turns, 3 * turns)
        assert record["latency_s"] == one["working_time"]
    assert header.settings["samples"] == {"failed": 2, "limit_message": 2} == _counts(expected["frame"])
    questions = {one["key"]: one for batch in batches if batch.questions for one in batch.questions.to_pylist()}
    assert (questions["q-1"]["text"], questions["q-1"]["gold"]) == ("What is 1?", '["1","n1"]')
    assert (questions["q-1"]["category"], questions["q-1"]["subcategory"]) == ("math", "1")


def _counts(frame: list[dict[str, Any]]) -> dict[str, int]:
    return {"failed": sum(bool(one["error"]) for one in frame), "limit_message": sum(one["limit"] == "message" for one in frame)}


@pytest.mark.parametrize("kind", ["eval", "json"])
def test_aggregates_are_those_of_the_log_and_agree_with_the_records(written: Path, kind: str) -> None:
    expected, batches, _ = _log(written, kind, "tiny")
    stated = {one.metric: one for batch in batches for one in batch.scores}
    compared = 0
    for name, scorer, reducer, metric, value in expected["metrics"]:
        label = name if name == scorer else f"{scorer}.{name}"
        end = "" if reducer in {None, "mean"} else f"@{reducer}"
        if metric == "stderr":
            paired = "accuracy" if f"{label}.accuracy{end}" in stated else "mean"
            assert stated[f"{label}.{paired}{end}"].stderr == value
        else:
            assert stated[f"{label}.{metric}{end}"].value == value
        compared += 1
    assert compared == len(expected["metrics"]) > 8
    by_question = defaultdict(list)
    for record in rows(batches):
        if record["correct"] is not None:
            by_question[record["question_key"]].append(float(record["correct"]))
    means = [sum(one) / len(one) for one in by_question.values()]
    assert sum(means) / len(means) == pytest.approx(stated["match.accuracy"].value)
    assert stated["match.accuracy"].n == len(means)


@pytest.mark.parametrize("kind", ["eval", "json"])
def test_a_retry_is_a_run_of_its_own_and_its_failed_forerunner_is_not_finished(written: Path, kind: str) -> None:
    before, first, _ = _log(written, kind, "failed")
    after, second, _ = _log(written, kind, "retried")
    assert before["task_id"] == after["task_id"]
    assert first[-1].run.external_id != second[-1].run.external_id
    assert (first[-1].run.status, second[-1].run.status) == ("partial", "finished")
    assert "boom" in (first[-1].run.status_reason or "")
    assert first[-1].run.configuration == second[-1].run.configuration
    assert second[-1].run.ended_at >= first[-1].run.ended_at  # type: ignore[operator]
    assert (len(list(rows(first))), len(list(rows(second)))) == (len(before["frame"]), 10)
    assert second[-1].run.settings["samples"]["retried"] == sum(one["retries"] for one in after["frame"])


def test_after_a_retry_only_the_retry_counts(written: Path, sqlite_url: str, tmp_path: Path) -> None:
    expected = json.loads((written / "expected.json").read_text())["eval"]
    with open_store(sqlite_url, tmp_path) as store:
        report = store.ingest(written / "eval")
        assert not report.rejected
        told = store.sql("select external_id, status, current, n_records from runs where benchmark_name = 'tiny'").fetchall()
        cells = store.sql("select variant, n, errors from cells where benchmark = 'tiny'").fetchall()
    assert {one[0]: tuple(one[1:]) for one in told} == {
        expected["tiny"]["eval_id"]: ("finished", True, 10),
        expected["failed"]["eval_id"]: ("partial", False, len(expected["failed"]["frame"])),
        expected["retried"]["eval_id"]: ("finished", True, 10),
    }
    right = {name: sum(one["score_match"] == "C" for one in expected[name]["frame"]) for name in ("tiny", "retried")}
    assert {tuple(one) for one in cells} == {
        ("message_limit=6", 8, 8 - right["tiny"]),
        ("style=odd,message_limit=6", 10, 10 - right["retried"]),
    }


@pytest.mark.parametrize("kind", ["eval", "json"])
def test_choices_log_probabilities_images_and_agents(written: Path, kind: str) -> None:
    _, batches, _ = _log(written, kind, "pick")
    assert batches[-1].run.configuration.max_new_tokens == 77
    assert [(one["question_key"], one["prediction"], one["correct"]) for one in rows(batches)] == [
        ("inspect:1", "A", True), ("inspect:2", "B", False), ("inspect:3", "A", True), ("inspect:4", "B", False),
    ]  # fmt: skip
    _, batches, _ = _log(written, kind, "letters")
    first, second = rows(batches)
    assert orjson.loads(first["option_scores"]) == [-0.1, -2.5]
    assert (first["logit_prediction"], second["correct"]) == ("A", False)
    assert first["p_gold"] == pytest.approx(1 / (1 + 2.718281828459045**-2.4))
    assert first["p_gold"] + second["p_gold"] == pytest.approx(1)
    _, batches, _ = _log(written, kind, "look")
    assert batches[0].questions is not None
    (question,) = batches[0].questions.to_pylist()
    assert question["text"] == "What is shown? " * 20
    assert question["image_key"] == "sha256:6b7fa434f92a8b80aab02d9bf1a12e49ffcae424e4013a1c4f68b67e3d2bbcd0"
    _, batches, _ = _log(written, kind, "agent")
    assert batches[-1].run.model == "answering_agent"
    assert "hidden" not in json.dumps(batches[-1].run.settings)


def test_both_formats_of_one_log_say_the_same(written: Path) -> None:
    for name in ("tiny", "failed", "pick", "letters", "look"):
        told = []
        for kind in ("eval", "json"):
            _, batches, _ = _log(written, kind, name)
            records = sorted(rows(batches), key=lambda one: (one["question_key"], one["repetition"]))
            told.append(
                [
                    {key: value for key, value in one.items() if key in {"question_key", "repetition", "status", "score_rule"}}
                    for one in records
                ]
            )
            told[-1].append({"header": batches[-1].run.configuration.model_dump(), "status": batches[-1].run.status})
        assert told[0] == told[1]


def test_members_of_several_zstandard_frames_are_unpacked(written: Path, tmp_path: Path) -> None:
    """inspect_ai begins a new frame every 200 MB; here the same with small frames."""
    expected = json.loads((written / "expected.json").read_text())["eval"]["tiny"]
    with Archive(written / "eval" / expected["file"]) as archive:
        assert {member.method for member in archive.members.values()} == {93}
        kept = {name: archive.read(name) for name in archive.members}
    path = tmp_path / "frames.eval"
    codec = pa.Codec("zstd")
    _zip(path, kept, 93, lambda data: b"".join(codec.compress(data[at : at + 1000], asbytes=True) for at in range(0, len(data), 1000)))
    again, refusals = _read(path)
    assert not refusals
    assert pa.concat_tables(one.records for one in again) == pa.concat_tables(
        one.records for one in _read(written / "eval" / expected["file"])[0]
    )


def test_an_archive_of_the_real_writer_may_end_anywhere(written: Path, tmp_path: Path) -> None:
    expected = json.loads((written / "expected.json").read_text())["eval"]["tiny"]
    raw = (written / "eval" / expected["file"]).read_bytes()
    second = raw.index(b"PK\x03\x04", 10)
    path = tmp_path / "cut.eval"
    counts = []
    for cut in [*range(1, 130), *range(second, second + 130), *range(second + 130, len(raw), len(raw) // 40)]:
        path.write_bytes(raw[:cut])
        parts = _parts(path)
        if parts and not isinstance(parts, InputError):
            assert sum(isinstance(part, Refusal) for part in parts) == 1, cut
            assert parts[-1].run.status == "partial"  # type: ignore[union-attr]
            counts.append(sum(part.records.num_rows for part in parts if isinstance(part, Batch)))
    assert counts == sorted(counts)
    assert (counts[0], counts[-1]) == (0, 10)


def _zip(path: Path, members: dict[str, bytes], method: int, pack: Any, *, directory: bool = True) -> None:
    """An archive, written by hand."""
    body, entries = b"", b""
    for name, data in members.items():
        packed, plain = pack(data), name.encode()
        facts = struct.pack("<HHHHHIIIHH", 20, 0, method, 0, 0, zlib.crc32(data), len(packed), len(data), len(plain), 0)
        entries += b"PK\x01\x02" + struct.pack("<H", 20) + facts + struct.pack("<HHHII", 0, 0, 0, 0, len(body)) + plain
        body += b"PK\x03\x04" + facts + plain + packed
    end = b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, len(members), len(members), len(entries), len(body), 0)
    path.write_bytes(body + entries + end if directory else body)


# ---- real files ----------------------------------------------------------------------------------


def _raw(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Header and samples by the standard library alone."""
    if path.suffix == ".json":
        document = json.loads(path.read_text(encoding="utf-8"))
        return document, document.pop("samples", None) or []
    with zipfile.ZipFile(path) as archive:
        names = [name for name in dict.fromkeys(archive.namelist()) if name.startswith("samples/")]
        return json.loads(archive.read("header.json")), [json.loads(archive.read(name)) for name in names]


def _credit(value: Any) -> float | None:
    return {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}.get(value) if isinstance(value, str) else None if value is None else float(value)


def test_real_logs_give_the_records_and_accuracies_that_are_in_them() -> None:
    root = samples("inspect_ai")
    logs = sorted(path for path in root.rglob("*") if path.suffix in {".eval", ".json"})
    found = {Path(source.uri): source for source in sources(READER, root)}
    assert sorted(found) == [path.resolve() for path in logs]
    assert len(logs) == 48
    accuracies = 0
    for path, source in found.items():
        parts = list(READER.read(source, Study.empty()))
        batches = [one for one in parts if isinstance(one, Batch)]
        assert len(batches) == len(parts), path
        header, told = _raw(path)
        records = list(rows(batches))
        assert len(records) == len(told), path
        assert sum(one["status"] == "failed" for one in records) == sum(bool(one.get("error")) for one in told)
        assert [one["response"] for one in records if one["status"] != "failed"] == [_response(one) for one in told if not one.get("error")]
        for record, sample in zip(records, told, strict=True):
            usage = (sample.get("model_usage") or {}).get(header["eval"]["model"])
            assert (record["generated_tokens"], record["repetition"]) == (usage and usage["output_tokens"], sample["epoch"] - 1)
        name = (header["results"].get("scores") or [{}])[0].get("name")
        stated_credits = [
            _credit(one["scores"][name]["value"]) for one in told if name in (one.get("scores") or {}) and not one.get("error")
        ]
        mine = [float(one["correct"]) if one["correct"] is not None else one["score"] for one in records if one["score"] is not None]
        assert mine == stated_credits, path
        if mine and len(told) == header["results"]["total_samples"]:
            metrics = header["results"]["scores"][0]["metrics"]
            stated = metrics.get("accuracy", metrics.get("mean"))["value"]
            assert sum(mine) / len(mine) == pytest.approx(stated), path
            accuracies += 1
    assert accuracies >= 35


def _response(sample: dict[str, Any]) -> str | None:
    output = sample.get("output") or {}
    if output.get("completion"):
        return str(output["completion"])
    messages = [one["message"]["content"] for one in (output.get("choices") or [])[:1]]
    messages += [one["content"] for one in reversed(sample.get("messages") or []) if one["role"] == "assistant"]
    texts = [one if isinstance(one, str) else "\n".join(part["text"] for part in one if part["type"] == "text") for one in messages]
    return next((one for one in texts if one), None)


def test_agents_without_a_model_are_told_apart_by_their_arguments() -> None:
    batches, _ = read(READER, samples("inspect_ai", "starsim"))
    runs = {batch.run.external_id: batch.run for batch in batches}.values()
    agents = [run for run in runs if run.model == "a2a_agent_solver"]
    assert len(runs) == 21
    chosen = [{name: value for name, value in run.settings["task_args_passed"].items() if name != "request_timeout"} for run in agents]
    assert len(agents) == 11
    assert len({run.configuration.variant for run in agents}) == len({json.dumps(one, sort_keys=True) for one in chosen}) > 1
    assert not any("timeout" in str(run.configuration.variant) for run in agents)


def test_samples_without_their_transcripts_are_the_same_in_what_is_kept() -> None:
    compared = 0
    for path in sorted(samples("inspect_ai").rglob("*.eval")):
        with Archive(path) as archive:
            for name in archive.names("samples/"):
                raw = archive.read(name)
                whole, cut = orjson.loads(raw), parse_sample(raw, name)
                assert {key: whole[key] for key in cut if key in whole} == cut
                assert set(whole) - set(cut) <= {
                    "messages",
                    "events",
                    "timelines",
                    "attachments",
                    "events_data",
                    "turn_count",
                    "transcript",
                }
                compared += "events" not in cut
    assert compared > 400


# ---- damage --------------------------------------------------------------------------------------


def _parts(path: Path) -> list[Batch | Refusal] | InputError:
    found = READER.find(Folder(path.parent, [path.name]), Study.empty())
    if not found:
        return []
    try:
        return list(READER.read(found[0], Study.empty()))
    except InputError as err:
        return err


def _members() -> dict[str, bytes]:
    summaries = [{"id": f"s{at}", "epoch": 1, "scores": {"exact": {"value": at}}} for at in (1, 0, 1)]
    made: dict[str, Any] = {"_journal/start.json": {**HEADER, "status": None}}
    made |= {
        f"samples/s{at}_epoch_1.json": {
            "id": f"s{at}",
            "epoch": 1,
            "input": f"{at}? " * 50,
            "target": "t",
            "scores": {"exact": {"value": at % 2}},
        }
        for at in range(3)
    }
    made |= {"_journal/summaries/1.json": summaries, "summaries.json": summaries, "header.json": HEADER}
    return {name: json.dumps(one).encode() for name, one in made.items()}


def _deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


@pytest.mark.parametrize("method", [0, 8, 93])
def test_an_archive_cut_off_anywhere_gives_what_was_complete(tmp_path: Path, method: int) -> None:
    pack = {0: bytes, 8: _deflate, 93: lambda data: pa.Codec("zstd").compress(data, asbytes=True)}[method]
    whole = tmp_path / "whole.eval"
    _zip(whole, _members(), method, pack)
    batches, refusals = _read(whole)
    assert not refusals
    assert [one["correct"] for one in rows(batches)] == [False, True, False]
    raw = whole.read_bytes()
    ends = [raw.index(f"samples/s{at}_epoch_1.json".encode()) for at in range(3)]
    last = raw.index(b"_journal/summaries/1.json")
    for cut in sorted({*range(1, len(raw), max(len(raw) // 60, 1)), len(raw) - 1}):
        path = tmp_path / "cut.eval"
        path.write_bytes(raw[:cut])
        parts = _parts(path)
        if isinstance(parts, InputError):
            assert cut < ends[0], cut
            continue
        complete = sum(cut >= end for end in [ends[1] - 30, ends[2] - 30, last - 30]) if parts else 0
        records = [one for part in parts if isinstance(part, Batch) for one in part.records.to_pylist()]
        assert len(records) == complete, cut
        if parts:
            assert sum(isinstance(part, Refusal) for part in parts) == 1, cut
            assert parts[-1].run.status == "partial"  # type: ignore[union-attr]
            assert "directory" in (parts[-1].run.status_reason or "")  # type: ignore[union-attr]


def test_a_sample_logged_again_replaces_itself(tmp_path: Path) -> None:
    path = tmp_path / "twice.eval"
    first, second = _members(), _members()
    name = "samples/s0_epoch_1.json"
    again = second[name].replace(b'"value": 0', b'"value": 1')
    with warnings.catch_warnings(), zipfile.ZipFile(path, "w") as archive:
        warnings.simplefilter("ignore")
        for key, data in [*first.items(), (name, again)]:
            archive.writestr(key, data)
    batches, refusals = _read(path)
    assert not refusals
    assert sorted((one["question_key"], one["correct"]) for one in rows(batches)) == [("s0", True), ("s1", True), ("s2", False)]
    path.write_bytes(path.read_bytes()[:-40])
    batches, refusals = _read(path)
    assert len(refusals) == 1
    assert sorted((one["question_key"], one["correct"]) for one in rows(batches)) == [("s0", True), ("s1", True), ("s2", False)]


def test_a_damaged_member_costs_itself_alone(tmp_path: Path) -> None:
    path = tmp_path / "flipped.eval"
    _zip(path, _members(), 0, bytes)
    raw = bytearray(path.read_bytes())
    raw[raw.index(b"1? 1?") + 1] ^= 1
    path.write_bytes(raw)
    batches, (refusal,) = _read(path)
    assert "samples/s1_epoch_1.json" in refusal.reason
    assert "checksum" in refusal.reason
    assert [one["question_key"] for one in rows(batches)] == ["s0", "s2"]
    assert batches[-1].run.status == "partial"


def test_a_member_that_is_too_large_is_refused_before_it_is_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "large.eval"
    members = _members()
    members["samples/s1_epoch_1.json"] = b" " * 1_000_000 + members["samples/s1_epoch_1.json"]
    _zip(path, members, 8, _deflate)
    monkeypatch.setattr(inspect_zip, "LARGEST_MEMBER", 500_000)
    batches, (refusal,) = _read(path)
    assert "sample.events" in refusal.reason
    assert [one["question_key"] for one in rows(batches)] == ["s0", "s2"]


def test_a_log_without_header_was_not_finished(tmp_path: Path) -> None:
    path = tmp_path / "running.eval"
    members = _members()
    del members["header.json"], members["summaries.json"]
    _zip(path, members, 8, _deflate)
    batches, refusals = _read(path)
    assert not refusals
    assert (batches[-1].run.status, len(list(rows(batches)))) == ("partial", 3)
    assert "not finished" in (batches[-1].run.status_reason or "")


def _flipped(raw: bytes, seed: int) -> Iterator[bytes]:
    chance = random.Random(seed)
    for _ in range(60):
        damaged = bytearray(raw)
        for _ in range(chance.choice([1, 1, 4, 40])):
            damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
        yield bytes(damaged)


def test_flipped_bytes_end_in_a_refusal_or_in_values(tmp_path: Path) -> None:
    """Of an archive no flipped byte goes unnoticed inside a member: each has a checksum."""
    root = samples("inspect_ai")
    logs = [
        "inspect_tests/scorer/logs/2025-02-11T15-18-04-05-00_popularity_mj7khqpMM4GBCfVQozKgzB.eval",
        "inspect_tests/log/test_eval_log/log_streaming.eval",
        "eee_fixture/data_intercode_ctf_local_path.json",
    ]
    for seed, name in enumerate(logs):
        raw = (root / name).read_bytes()
        path = tmp_path / Path(name).name
        path.write_bytes(raw)
        whole = {(one["question_key"], one["repetition"]): one for one in rows(_read(path)[0])}
        for damaged in _flipped(raw, seed):
            path.write_bytes(damaged)
            parts = _parts(path)
            if isinstance(parts, InputError):
                assert len(str(parts).splitlines()) == 1
                continue
            records = [one for part in parts if isinstance(part, Batch) for one in part.records.to_pylist()]
            assert all(isinstance(part, Batch) or part.reason for part in parts)
            if path.suffix == ".eval":
                assert all(
                    {**one, "score_rule": None} == {**whole[one["question_key"], one["repetition"]], "score_rule": None} for one in records
                )


def test_documents_cut_off_anywhere_give_the_samples_before_the_cut(tmp_path: Path) -> None:
    raw = (samples("inspect_ai") / "eee_fixture" / "data_arc_sonnet.json").read_bytes()
    path = tmp_path / "log.json"
    counts = []
    for at in range(1, 31):
        path.write_bytes(raw[: len(raw) * at // 31])
        parts = _parts(path)
        if isinstance(parts, InputError) or not parts:
            counts.append(0)
            continue
        assert sum(isinstance(part, Refusal) for part in parts) == 1
        assert parts[-1].run.status == "partial"  # type: ignore[union-attr]
        counts.append(sum(part.records.num_rows for part in parts if isinstance(part, Batch)))
    assert counts == sorted(counts)
    assert set(counts) == {0, 1, 2, 3, 4, 5}


WRONG = [None, 0, -1, 1.5, True, "", "x", "attachment://x", [], [1], [None], ["x"], {}, {"x": 1}, {"content": [1, {"type": "text"}]}, 2**70]


def test_wrong_types_everywhere_end_in_values_or_refusals(tmp_path: Path) -> None:
    document = json.loads((ROOT / "tests/data/ingest/inspect_ai/nan_and_keys/log.json").read_text())
    chance = random.Random(5)
    path = tmp_path / "log.json"
    told = 0
    for _ in range(400):
        damaged = deepcopy(document)
        for _ in range(chance.choice([1, 2, 5])):
            _spoil(damaged, chance)
        path.write_text(json.dumps(damaged))
        parts = _parts(path)
        told += not isinstance(parts, InputError) and bool(parts)
    assert told > 200


def _spoil(value: Any, chance: random.Random) -> None:
    """Replace something somewhere inside by something else."""
    while True:
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        key = chance.choice(keys)
        if not isinstance(value[key], dict | list) or not value[key] or chance.random() < 0.2:
            value[key] = deepcopy(chance.choice(WRONG))
            return
        value = value[key]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "empty file"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n", "git lfs pull"),
        (b"PK\x03\x04", "no header.json"),
        (b"PK\x03\x04" + b"\0" * 500, "no header.json"),
    ],
    ids=["empty", "pointer", "magic", "nothing"],
)
def test_files_without_anything_are_refused_with_the_remedy(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "log.eval"
    path.write_bytes(content)
    found = _parts(path)
    assert isinstance(found, InputError)
    assert says in str(found)


def test_other_files_are_left_to_others_and_indexes_are_claimed(tmp_path: Path) -> None:
    _zip(tmp_path / "a.eval", _members(), 8, _deflate)
    _zip(tmp_path / "renamed.zip", _members(), 8, _deflate)
    _zip(tmp_path / "book.xlsx", {"[Content_Types].xml": b"<a/>"}, 8, _deflate)
    (tmp_path / "logs.json").write_text(json.dumps({"a.eval": HEADER}))
    (tmp_path / "other.json").write_text('{"status": "success", "eval": {"a": {"task_id": 1}}}')
    (tmp_path / "note.eval").write_text("notes")
    first, second = sources(READER, tmp_path)
    assert [Path(one.uri).name for one in (first, second)] == ["a.eval", "renamed.zip"]
    assert [one.name for one in first.claims] == ["logs.json"]


def test_archives_and_indexes_of_others_are_left_to_others(tmp_path: Path) -> None:
    for number, member in enumerate(("samples/", "samples/1.png", "samples/1.json", "_journal/x", "summaries.json/x")):
        _zip(tmp_path / f"{number}.zip", {member: b"x"}, 8, _deflate)
    assert sources(READER, tmp_path) == []
    _zip(tmp_path / "a.eval", _members(), 8, _deflate)
    row = json.dumps({"model": "m", "benchmark": "b", "question_id": "1", "correct": True})
    for name in ("logs.json", "listing.json", "eval-set.json", ".eval-set-id"):
        (tmp_path / name).write_text(row)
    (source,) = sources(READER, tmp_path)
    assert source.claims == ()
    for name in ("logs.json", "listing.json"):
        (tmp_path / name).write_text(json.dumps({"a.eval": HEADER}))
    (tmp_path / "eval-set.json").write_text(json.dumps({"eval_set_id": "x", "tasks": []}))
    (tmp_path / ".eval-set-id").write_text("5nMCHGP9JVyFm9cmGPCTxh")
    (source,) = sources(READER, tmp_path)
    assert len(source.claims) == 4


def test_links_to_one_log_are_one_source(tmp_path: Path) -> None:
    _zip(tmp_path / "a.eval", _members(), 8, _deflate)
    (tmp_path / "b.eval").symlink_to(tmp_path / "a.eval")
    assert len(sources(READER, tmp_path)) == 1
