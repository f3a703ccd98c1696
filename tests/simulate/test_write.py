"""What is written: both forms read back to the same answers, aggregates equal the rows, truth equals both."""

from __future__ import annotations

import hashlib
import json
import os
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from tracker.batch import Batch, Refusal, RunHeader
from tracker.catalog import load as load_catalog
from tracker.errors import UsageError
from tracker.readers import lmms_eval, native
from tracker.readers.base import Folder, Reader
from tracker.simulate import Report, preset, simulate
from tracker.simulate.spec import StudyPlan, parse
from tracker.study import Study

if TYPE_CHECKING:
    from collections.abc import Iterator

Key = tuple[str, str, int]
SMALL = """
seed = 11
models = ["InternVL3-1B", "InternVL3-8B", "Qwen3-VL-2B"]
failed = 0.02
without_probabilities = 0.01
benchmark = [
    { name = "HRBench4K", questions = 24, input_sizes = [224, 1024] },
    { name = "HRBench8K", questions = 24, input_sizes = [4096] },
    { name = "MME-RealWorld-Lite", questions = 30, repeated = 5, input_sizes = [224, 1024] },
    { name = "TreeBench", questions = 20, input_sizes = [224, 1024] },
    { name = "V*Bench", questions = 20, input_sizes = [224, 1024] },
]
"""


def small() -> StudyPlan:
    """A study of a few hundred rows with everything in it."""
    return parse(SMALL, "small")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small study in both forms."""
    folder = tmp_path_factory.mktemp("simulated") / "study"
    simulate(small(), folder, form="both")
    return folder


@pytest.fixture(scope="module")
def truth(written: Path) -> dict[str, Any]:
    """What was planted."""
    planted: dict[str, Any] = json.loads((written / "truth.json").read_text(encoding="utf-8"))
    return planted


class Read:
    """All batches of a folder by model, benchmark (catalog names) and input size."""

    def __init__(self, reader: Reader, root: Path, part: str) -> None:
        study, catalog = Study.load(root / "study.toml"), load_catalog()
        self.refused: list[Refusal] = []
        self.headers: dict[Key, RunHeader] = {}
        self.records: dict[Key, list[dict[str, Any]]] = defaultdict(list)
        self.questions: dict[tuple[str, str], dict[str, Any]] = {}
        self.scores: dict[Key, dict[str, float | None]] = {}
        for batch, header in self._batches(reader, root / part, study):
            model, benchmark = catalog.model(header.model), catalog.benchmark(header.benchmark or "")
            assert model is not None
            assert benchmark is not None
            assert header.configuration.input_size is not None
            key = model.name, benchmark.name, header.configuration.input_size
            self.headers[key] = header
            self.records[key].extend(batch.records.to_pylist())
            if batch.scores:
                self.scores[key] = {score.metric: score.value for score in batch.scores}
            for question in (batch.questions or pa.table({})).to_pylist():
                held = self.questions.setdefault((benchmark.name, question["key"]), {})
                held.update({name: value for name, value in question.items() if value is not None})

    def _batches(self, reader: Reader, folder: Path, study: Study) -> Iterator[tuple[Batch, RunHeader]]:
        for place, _, names in sorted(os.walk(folder)):
            for source in reader.find(Folder(Path(place), sorted(names)), study):
                for batch in reader.read(source, study):
                    if isinstance(batch, Refusal):
                        self.refused.append(batch)
                    else:
                        yield batch, study.apply(batch.run, source)


@pytest.fixture(scope="module")
def harness(written: Path) -> Read:
    """The folders of lmms-eval, read back."""
    return Read(lmms_eval.READER, written, "lmms_eval")


@pytest.fixture(scope="module")
def tables(written: Path) -> Read:
    """The native tables, read back."""
    return Read(native.READER, written, "native")


COMPARED = ("question_key", "prediction", "logit_prediction", "p_gold", "option_scores", "visual_tokens", "prompt_tokens", "generated_tokens", "tiles", "effective_pixels", "response")  # fmt: skip


def credit(record: dict[str, Any]) -> float | None:
    """DEFINITIONS: correct, else a score in [0, 1]."""
    if record["correct"] is not None:
        return float(record["correct"])
    score: float | None = record["score"]
    return score if score is not None and 0 <= score <= 1 else None


def test_nothing_is_refused_and_every_run_is_finished(harness: Read, tables: Read) -> None:
    assert harness.refused == tables.refused == []
    assert {header.status for read in (harness, tables) for header in read.headers.values()} == {"finished"}


def test_both_forms_hold_the_same_answers_under_the_same_configurations(harness: Read, tables: Read) -> None:
    assert set(harness.records) == set(tables.records)
    assert len(harness.records) == 3 * 9
    for key, records in harness.records.items():
        assert harness.headers[key].configuration == tables.headers[key].configuration
        scored = [record for record in records if credit(record) is not None]
        others = [record for record in tables.records[key] if credit(record) is not None]
        assert [[record[name] for name in COMPARED] for record in scored] == [[record[name] for name in COMPARED] for record in others]
        assert list(map(credit, scored)) == list(map(credit, others))
        for one, other in zip(records, tables.records[key], strict=True):
            assert (one["status"] == "failed") == (other["status"] == "failed") == (credit(one) is None)
            assert one["question_key"] == other["question_key"]


def test_both_forms_describe_the_questions_alike(harness: Read, tables: Read) -> None:
    assert set(harness.questions) == set(tables.questions)
    tasks = load_catalog().benchmarks
    for key, question in tables.questions.items():
        other = harness.questions[key]
        for name in ("image_key", "pair_key", "text", "gold", "n_options", "category", "subcategory"):
            assert other.get(name) == question.get(name), (key, name)
        assert json.loads(other["options"]) == json.loads(question["options"])
        assert question["task"] == tasks[key[0]].tasks[question["category"]]


def test_truth_counts_what_the_rows_hold(harness: Read, truth: dict[str, Any]) -> None:
    assert len(truth["cells"]) == len(harness.records)
    for cell in truth["cells"]:
        records = harness.records[cell["model"], cell["benchmark"], cell["input_size"]]
        earned = [value for record in records if (value := credit(record)) is not None]
        counted = [record["visual_tokens"] for record in records if credit(record) is not None]
        assert cell["generations"] == len(records)
        assert (cell["n"], cell["errors"]) == (len(earned), len(earned) - sum(earned))
        assert cell["visual_tokens"] == pytest.approx(sum(counted) / len(counted), rel=1e-12)
        assert cell["mean_wrong_probability"] == pytest.approx(cell["planted_error"], abs=1e-12)
    everything = [record for records in harness.records.values() for record in records]
    counts = truth["counts"]
    assert counts["generations"] == len(everything) == 3 * (2 * (24 + 35 + 20 + 20) + 24)
    assert counts["failed"] == sum(record["status"] == "failed" for record in everything) == round(0.02 * len(everything))
    assert counts["without_probabilities"] == sum(record["p_gold"] is None for record in everything) - counts["failed"]
    assert counts["without_probabilities"] == round(0.01 * counts["scored"])


def test_planted_errors_follow_the_law_from_the_cells_own_numbers(truth: dict[str, Any]) -> None:
    laws = {(law["series"], law["benchmark"]): law for law in truth["laws"]}
    for cell in truth["cells"]:
        law = laws[cell["series"], cell["benchmark"]]
        capacity = law["a_n"] * (cell["parameters"] / 6.60e9) ** -law["alpha"]
        vision = law["b_r"] * (cell["visual_tokens"] / 1_135) ** -law["beta"]
        assert cell["planted_error"] == pytest.approx(law["floor"] + capacity + vision, rel=1e-12)


def test_truth_knows_the_drawn_trajectories(harness: Read, truth: dict[str, Any]) -> None:
    """Recomputed from the rows: last scored attempt per configuration, mean over the configurations of the series."""
    catalog = load_catalog()
    followed: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for (model, benchmark, _), records in harness.records.items():
        last = {record["question_key"]: value for record in records if (value := credit(record)) is not None}
        for key, value in last.items():
            followed[catalog.models[model].series, benchmark, key].append(value)
    planted = {
        (part["series"], part["benchmark"], key): accuracy
        for part in truth["trajectories"]
        for key, accuracy in zip(part["question_keys"], part["accuracy"], strict=True)
        if accuracy is not None
    }
    assert planted == pytest.approx({key: sum(values) / len(values) for key, values in followed.items()}, abs=1e-9)
    assert truth["counts"]["trajectories"] == len(followed)
    assert truth["counts"]["observations"] == sum(map(len, followed.values()))


def test_aggregate_scores_equal_the_rows(harness: Read) -> None:
    for key, scores in harness.scores.items():
        scored = [record for record in harness.records[key] if credit(record) is not None]
        mean = sum(credit(record) or 0.0 for record in scored) / len(scored)
        if key[1] == "V*Bench":
            assert scores["vstar_overall_acc"] == pytest.approx(100 * mean, abs=1e-9)
        elif key[1] == "MME-RealWorld-Lite":
            assert scores["mme_realworld_score"] == pytest.approx(mean, abs=1e-12)
        elif key[1] == "TreeBench":
            assert scores["treebench_score"] == pytest.approx(mean, abs=1e-12)
        else:
            cycles: dict[str, list[float]] = defaultdict(list)
            for record in scored:
                pair = harness.questions[key[1], record["question_key"]]["pair_key"]
                cycles[pair.rpartition("-")[2]].append(credit(record) or 0.0)
            assert scores["average"] == pytest.approx(sum(sum(one) / len(one) for one in cycles.values()) / 4, abs=1e-12)


def test_rows_are_written_as_lmms_eval_writes_them(written: Path) -> None:
    for path in written.glob("lmms_eval/px*/*/*_samples_*.jsonl"):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines()):
            row = json.loads(line)
            assert row["doc_id"] == number
            assert isinstance(row["filtered_resps"], str)
            assert row["doc_hash"] == hashlib.sha256(b"null").hexdigest()
            assert len(row["token_counts"]) == 1
            assert not {"doc", "arguments", "resps"} & set(row)
            assert json.dumps(row, ensure_ascii=False) == line
    results = json.loads(next(written.glob("lmms_eval/px1024/OpenGVLab__InternVL3-8B/*_results.json")).read_text(encoding="utf-8"))
    assert results["config"]["model_args"] == "pretrained=OpenGVLab/InternVL3-8B,dtype=bfloat16,max_num=12"
    assert set(results["n-samples"]) == set(results["results"]) == {"hrbench4k", "mmerealworld_lite", "treebench", "vstar_bench"}
    assert results["n-samples"]["mmerealworld_lite"] == {"original": 35, "effective": 35}


def test_no_two_invocations_share_a_stamp(written: Path) -> None:
    stamps = [path.name for path in written.glob("lmms_eval/px*/*/*_results.json")]
    assert len(set(stamps)) == len(stamps) == 9


def digest(folder: Path) -> dict[str, str]:
    """Every file's bytes."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.rglob("*")) if path.is_file()
    }


def test_the_same_seed_writes_the_same_bytes_and_another_does_not(written: Path, tmp_path: Path) -> None:
    simulate(small(), tmp_path / "again", form="both")
    assert digest(tmp_path / "again") == digest(written)
    simulate(small().model_copy(update={"seed": 12}), tmp_path / "other", form="both")
    assert digest(tmp_path / "other") != digest(written)


def test_another_model_changes_no_answer_of_the_others(tmp_path: Path) -> None:
    plain = parse(SMALL.replace("failed = 0.02", "").replace("without_probabilities = 0.01", ""), "plain")
    simulate(plain, tmp_path / "three", form="native")
    simulate(plain.model_copy(update={"models": (*plain.models, "Qwen3-VL-8B")}), tmp_path / "four", form="native")
    for path in (tmp_path / "three" / "native").iterdir():
        assert path.read_bytes() == (tmp_path / "four" / "native" / path.name).read_bytes()


def test_a_law_that_leaves_zero_and_one_is_refused_with_the_cell_and_nothing_is_written(tmp_path: Path) -> None:
    square = "images = { width = 2000, height = 2000, shapes = [{ aspect = 1.0, share = 1 }] }"
    plan = parse(SMALL.replace('name = "V*Bench", questions', f'name = "V*Bench", {square}, questions'), "square")
    with pytest.raises(
        UsageError, match=r"planted error .* of InternVL3-1B on V\*Bench at 224 px \(256 tokens on average\) is not inside \(0, 1\)"
    ):
        simulate(plan, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("InternVL3-8B", "InternVL9-8B"), "models: the catalog has no 'InternVL9-8B'"),
        (('"TreeBench"', '"FreeBench"'), "benchmark.name: the catalog has no 'FreeBench'"),
        (('name = "HRBench8K", questions = 24', 'name = "HRBench8K", questions = 28'), "hold the same questions"),
    ],
)
def test_what_the_catalog_cannot_support_is_refused(change: tuple[str, str], message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=message):
        simulate(parse(SMALL.replace(*change), "changed"), tmp_path / "out")


def test_a_filled_folder_is_refused_and_force_replaces_a_simulation_only(tmp_path: Path) -> None:
    simulate(small(), tmp_path, form="both")
    with pytest.raises(UsageError, match="is not empty"):
        simulate(small(), tmp_path)
    simulate(small(), tmp_path, form="lmms_eval", force=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["labels.csv", "lmms_eval", "study.toml", "truth.json"]
    (tmp_path / "thesis.tex").write_text("years of work", encoding="utf-8")
    with pytest.raises(UsageError, match=r"holds 'thesis.tex', which no simulation wrote"):
        simulate(small(), tmp_path, force=True)
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(UsageError, match="is no folder"):
        simulate(small(), tmp_path / "file")


def test_a_place_that_cannot_be_written_is_one_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(UsageError, match="cannot be written"):
        simulate(small(), tmp_path / "file" / "out")


def test_an_interrupted_simulation_leaves_nothing_behind(tmp_path: Path) -> None:
    def stop(_: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        simulate(small(), tmp_path / "out", progress=stop)
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_simulation_left_is_cleared(tmp_path: Path) -> None:
    (tmp_path / ".partial" / "native").mkdir(parents=True)
    report = simulate(small(), tmp_path)
    assert report.generations == 666
    assert not (tmp_path / ".partial").exists()


def test_the_demo_preset_is_small_and_has_every_regime(tmp_path: Path) -> None:
    report: Report = simulate(preset("demo"), tmp_path)
    planted = json.loads((tmp_path / "truth.json").read_text(encoding="utf-8"))
    assert report.generations < 30_000
    assert min(planted["regimes"].values()) > 0.1 * report.generations / 25
    assert len({cell["series"] for cell in planted["cells"]}) == 3
    lines = (tmp_path / "labels.csv").read_text(encoding="utf-8").splitlines()
    assert {line.split(",")[3] for line in lines[1:]} == {f"{kind}{number}" for kind in "DS" for number in range(1, 7)}
