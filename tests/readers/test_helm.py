"""HELM: folders that its own runner wrote, real folders, every part of a folder alone, and damage."""

from __future__ import annotations

import json
import re
import shutil
from datetime import UTC, datetime
from math import exp
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import samples
from tests.readers.harness import INGEST, matches, read, rows, sources, variants
from tracker.batch import Batch, Refusal
from tracker.errors import InputError
from tracker.readers.helm import READER
from tracker.readers.helm_rows import image_of
from tracker.readers.helm_spec import Spec, key_of, main_split, perturbation_name, primary
from tracker.study import Study

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FILES = ("run_spec.json", "scenario.json", "scenario_state.json", "stats.json", "per_instance_stats.json")
MAPPED = "exact_match of the mapped letter (no statistics)"


@pytest.mark.parametrize("variant", variants("helm"))
def test_what_the_runner_wrote_is_read_as_written_down(variant: str) -> None:
    found, expected = matches(READER, variant)
    assert found == expected


def _folders(root: Path) -> list[Path]:
    return sorted(path.parent for path in root.rglob("run_spec.json"))


def _json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def _real_folders() -> list[Path]:
    return _folders(samples("helm"))


def _stated(folder: Path, metric: str, split: str) -> float | None:
    for stat in _json(folder / "stats.json"):
        name = stat["name"]
        if name["name"] == metric and name.get("split") == split and "perturbation" not in name:
            return float(stat["mean"])
    return None


def test_accuracy_of_real_folders_is_the_stated_one() -> None:
    folders = _real_folders()
    assert len(folders) == 4
    for folder in folders:
        batches, refusals = read(READER, folder)
        assert not refusals
        splits = {one["instance"]["id"]: one["instance"]["split"] for one in _json(folder / "scenario_state.json")["request_states"]}
        main = "test" if "test" in splits.values() else "valid"
        assert len({batch.run.benchmark for batch in batches}) == len(batches) == len(set(splits.values()))
        seen: dict[str, dict[str, Any]] = {}
        for batch in batches:
            split = main if not (batch.run.benchmark or "").endswith(" (valid)") else "valid"
            found = batch.records.to_pylist()
            right = [row["correct"] for row in found]
            assert len(found) == list(splits.values()).count(split) == batch.run.n_expected
            assert sum(right) / len(right) == pytest.approx(_stated(folder, "exact_match", split), abs=1e-12)
            stated = {score.metric: score.value for score in batch.scores}
            assert stated["exact_match"] == pytest.approx(sum(right) / len(right), abs=1e-12)
            assert {score.n for score in batch.scores} == {len(found)}
            seen |= {row["question_key"].removeprefix("helm:"): row for row in found}
        for entry in _json(folder / "per_instance_stats.json"):
            values = {stat["name"]["name"]: stat.get("mean") for stat in entry["stats"]}
            row = seen[entry["instance_id"]]
            assert row["score"] == values["exact_match"]
            assert row["prompt_tokens"] == values["num_prompt_tokens"]
            assert row["latency_s"] == pytest.approx(values["inference_runtime"])
        assert set(seen) == set(splits)


def test_further_metrics_of_real_folders_are_kept() -> None:
    folder = next(one for one in _real_folders() if one.name.startswith("narrative_qa"))
    batch = read(READER, folder)[0][0]
    assert batch.record_scores is not None
    f1 = [row["score"] for row in batch.record_scores.to_pylist() if row["scorer"] == "f1_score"]
    assert sum(f1) / len(f1) == pytest.approx(_stated(folder, "f1_score", "test"))
    assert batch.questions is not None
    assert batch.questions["gold"].to_pylist()[0] == '["The school Mascot","the schools mascot"]'


def test_letters_alone_give_the_same_verdict_as_the_statistics(tmp_path: Path) -> None:
    judged = 0
    for place, folder in enumerate(_real_folders()):
        whole = {row["question_key"]: row for row in rows(read(READER, folder)[0])}
        alone = tmp_path / str(place) / folder.name
        alone.mkdir(parents=True)
        shutil.copy(folder / "scenario_state.json", alone)
        batches, refusals = read(READER, alone)
        assert not refusals
        for row in rows(batches):
            full = whole[row["question_key"]]
            if row["score_rule"] == MAPPED:
                judged += 1
                assert row["correct"] == full["correct"]
            else:
                assert row["correct"] is None
            assert (row["prediction"], row["response"]) == (full["prediction"], full["response"])
    assert judged == 30


def test_statistics_alone_give_scored_records_without_text(tmp_path: Path) -> None:
    folder = INGEST / "helm" / "perturbed"
    source = _folders(folder)[0]
    alone = tmp_path / source.name
    alone.mkdir()
    shutil.copy(source / "per_instance_stats.json", alone)
    batches, refusals = read(READER, alone)
    assert not refusals
    full, _ = read(READER, folder)
    assert [row["correct"] for row in rows(batches)] == [row["correct"] for row in rows(full)]
    assert [batch.run.configuration.variant for batch in batches] == [None, "perturbation=lowercase"]
    assert {batch.run.model for batch in batches} == {"simple/model1"}
    assert {batch.run.benchmark for batch in batches} == {"simple_mcqa"}


def test_totals_alone_give_scores_without_records(tmp_path: Path) -> None:
    source = next(one for one in _real_folders() if one.name.startswith("mmlu-subject"))
    alone = tmp_path / source.name
    alone.mkdir()
    shutil.copy(source / "stats.json", alone)
    batches, refusals = read(READER, alone)
    assert not refusals
    assert [(batch.run.model, batch.run.benchmark, batch.records.num_rows) for batch in batches] == [
        ("openai/gpt2", "mmlu:subject=philosophy", 0),
        ("openai/gpt2", "mmlu:subject=philosophy (valid)", 0),
    ]
    stated = {score.metric: (score.value, score.n) for score in batches[0].scores}
    value, count = stated["exact_match"]
    assert count == 9
    assert value == pytest.approx(1 / 9)
    assert not [name for name in stated if "robustness" in name or name.startswith(("num_", "inference"))]


def test_instances_and_displayed_predictions_stand_in_for_request_states(tmp_path: Path) -> None:
    source = next(one for one in _real_folders() if (one / "display_predictions.json").exists())
    whole, _ = read(READER, source)
    alone = tmp_path / source.name
    shutil.copytree(source, alone)
    (alone / "scenario_state.json").unlink()
    batches, refusals = read(READER, alone)
    assert not refusals
    assert next(iter(rows(batches)))["response"] == " D"
    names = ("question_key", "correct", "score", "response", "prompt_tokens")
    assert [[row[name] for name in names] for row in rows(batches)] == [[row[name] for name in names] for row in rows(whole)]
    assert batches[0].questions is not None
    assert whole[0].questions is not None
    assert batches[0].questions["text"].equals(whole[0].questions["text"])


def _reference_sums(folder: Path, mode: str) -> Iterator[tuple[str, list[float], list[int]]]:
    """Independent of the reader: words are this writer's tokens."""
    found: dict[str, list[tuple[float, int]]] = {}
    for state in _json(folder / "scenario_state.json")["request_states"]:
        if state["request_mode"] == mode:
            reference = state["instance"]["references"][state["reference_index"]]["output"]["text"]
            count = len(re.findall(r"\S+", reference))
            tokens = state["result"]["completions"][0]["tokens"][-count:]
            found.setdefault(state["instance"]["id"], []).append((sum(one["logprob"] for one in tokens), count))
    for name, pairs in found.items():
        yield name, [pair[0] for pair in pairs], [pair[1] for pair in pairs]


@pytest.mark.parametrize("variant", ["separate_original", "separate_calibrated"])
def test_references_asked_one_by_one_become_option_scores(variant: str) -> None:
    folder = _folders(INGEST / "helm" / variant)[0]
    found = {row["question_key"]: row for row in rows(read(READER, folder)[0])}
    without = {name: sums for name, sums, _ in _reference_sums(folder, "calibration")}
    golds = {
        one["instance"]["id"]: next(place for place, ref in enumerate(one["instance"]["references"]) if "correct" in ref["tags"])
        for one in _json(folder / "scenario_state.json")["request_states"]
    }
    compared = 0
    for name, sums, counts in _reference_sums(folder, "original"):
        row = found[f"helm:{name}"]
        assert json.loads(row["option_scores"]) == pytest.approx(sums)
        weights = [exp(one) for one in sums]
        assert row["p_gold"] == pytest.approx(weights[golds[name]] / sum(weights))
        assert row["logit_prediction"] == "AB"[sums.index(max(sums))]
        ranked = (
            [a - b for a, b in zip(sums, without[name], strict=True)] if without else [a / n for a, n in zip(sums, counts, strict=True)]
        )
        assert row["prediction"] == "AB"[ranked.index(max(ranked))]
        assert row["correct"] == (ranked.index(max(ranked)) == golds[name])
        assert (row["prompt_tokens"], row["generated_tokens"], row["response"]) == (None, None, None)
        compared += 1
    assert compared == 5


def test_trials_are_repetitions_and_completions_further_scores() -> None:
    batches, _ = read(READER, INGEST / "helm" / "trials")
    found = list(rows(batches))
    assert sorted((row["question_key"], row["repetition"]) for row in found) == sorted(
        (key, trial) for key in {row["question_key"] for row in found} for trial in (0, 1)
    )
    assert batches[0].run.n_expected == len(found) == 10
    assert batches[0].record_scores is not None
    assert "exact_match@3" in set(batches[0].record_scores["scorer"].to_pylist())
    assert {row["score_rule"] for row in found} == {"exact_match"}


def test_perturbed_copies_are_a_run_and_questions_of_their_own() -> None:
    batches, _ = read(READER, INGEST / "helm" / "perturbed")
    plain, changed = batches
    assert (plain.run.configuration.variant, changed.run.configuration.variant) == (None, "perturbation=lowercase")
    assert plain.run.configuration.model_copy(update={"variant": "perturbation=lowercase"}) == changed.run.configuration
    assert plain.questions is not None
    assert changed.questions is not None
    assert plain.questions["pair_key"].to_pylist() == changed.questions["pair_key"].to_pylist()
    assert not set(plain.questions["key"].to_pylist()) & set(changed.questions["key"].to_pylist())
    worst = [score for score in plain.scores if score.metric == "exact_match (lowercase, worst)"]
    both = [min(a["score"], b["score"]) for a, b in zip(plain.records.to_pylist(), changed.records.to_pylist(), strict=True)]
    assert [score.value for score in worst] == [pytest.approx(sum(both) / len(both))]
    assert not [score for score in changed.scores if "worst" in score.metric]


@pytest.mark.parametrize(
    ("name", "benchmark", "model"),
    [
        ("mmlu:subject=philosophy,method=multiple_choice_joint,model=openai_gpt2", "mmlu:subject=philosophy", "openai/gpt2"),
        ("mmlu-subject=philosophy,method=multiple_choice_joint,model=openai_gpt2", "mmlu:subject=philosophy", "openai/gpt2"),
        ("commonsense:dataset=hellaswag,method=x,model=a_b,max_train_instances=0", "commonsense:dataset=hellaswag", "a/b"),
        ("narrative_qa-model=openai_gpt2", "narrative_qa", "openai/gpt2"),
        ("ice-cream:model=a_b-c_d,data_augmentation=canonical", "ice-cream", "a/b-c_d"),
        ("gsm:use_chain_of_thought=true,model=x", "gsm", "x"),
        ("plain", "plain", None),
        ("", "", None),
    ],
)
def test_names_of_runs_are_taken_apart(name: str, benchmark: str, model: str | None) -> None:
    spec = Spec({"name": name})
    assert (spec.benchmark, spec.model) == (benchmark, model)


def test_what_changes_the_prompt_is_in_the_configuration() -> None:
    spec = Spec({"name": "gsm:use_chain_of_thought=true,instructions=expert,model=x"}, adapter={"method": "generation"})
    assert spec.configuration().prompt == "use_chain_of_thought=true; instructions=expert"
    assert Spec({"name": "x"}, adapter={"method": "generation", "max_tokens": 0}).configuration().prompt is None
    assert Spec({"name": "x"}, adapter={"max_tokens": 0, "max_train_instances": -1}).configuration() == Spec().configuration()


def test_the_main_metric_is_the_one_by_which_helm_ranks() -> None:
    def told(*names: str, groups: tuple[str, ...] = ()) -> Spec:
        return Spec({"name": "x", "groups": list(groups), "metric_specs": [{"args": {"names": list(names)}}, {"args": {}}, 3]})

    every = ("num_references", "max_prob", "logprob", "rouge_l", "f1_score", "quasi_exact_match", "exact_match", "exact_match@5")
    assert primary(told("exact_match", "quasi_exact_match"), every) == "exact_match"
    assert primary(told("exact_match", "quasi_exact_match", groups=("boolq",)), every) == "quasi_exact_match"
    assert primary(told("quasi_exact_match", "exact_match"), every) == "quasi_exact_match"
    assert primary(told("f1_score", "exact_match"), every) == "exact_match"
    assert primary(told(), every) == "exact_match"
    assert primary(told("f1_score", "rouge_l"), ("rouge_l", "f1_score")) == "f1_score"
    assert primary(told("rouge_l", "bleu_1"), ("rouge_l", "bleu_1", "wer_score", "perplexity", "num_bytes")) is None
    assert primary(Spec({"groups": ["mmlu"], "metric_specs": None}), ("my_accuracy",)) == "my_accuracy"


def test_a_rating_is_never_the_main_metric(tmp_path: Path) -> None:
    """Neither by its name nor by the values seen: a rating of 1 would count as right."""

    def statistics(metric: str) -> list[dict[str, Any]]:
        stats = {number: {"name": {"name": metric, "split": "test"}, "count": 1, "mean": number} for number in (1, 5, 9)}
        return [{"instance_id": f"id{number}", "train_trial_index": 0, "stats": [stat]} for number, stat in stats.items()]

    for metric, kept in (("wildbench_score", None), ("own_judgement", None), ("own_share", "own_share")):
        told = statistics(metric)
        if kept:
            told = told[:1]
        folder = _write(tmp_path / metric, per_instance_stats=told, run_spec={"name": "x:model=a_b", "adapter_spec": {"model": "a/b"}})
        batches, _ = read(READER, folder)
        found = list(rows(batches))
        assert {row["score_rule"] for row in found} == {kept}
        assert [row["score"] for row in found] == [None if kept is None else 1.0] * len(told)
    assert primary(Spec({}), ("wildbench_score", "toxic_frac")) is None


def test_small_rules() -> None:
    assert (key_of("id7"), key_of("7"), key_of("med_3")) == ("helm:id7", "helm:7", "med_3")
    assert [main_split(one) for one in (["valid", "test"], ["train", "valid"], ["train"], [])] == ["test", "valid", "train", "test"]
    dialect = {"name": "dialect", "robustness": False, "fairness": True, "computed_on": "perturbed", "prob": 1.0, "seed": None}
    assert perturbation_name(dialect) == "dialect prob=1"
    assert perturbation_name(None) is None
    media = [
        {"content_type": "text/plain", "text": "What?"},
        {"content_type": "image/png", "location": "/home/a/benchmark_output/scenarios/vqa/images/1.png"},
    ]
    assert image_of({"multimedia_content": {"media_objects": media}}) == "vqa/images/1.png"
    assert image_of({"multimedia_content": {"media_objects": [{"content_type": "image/png", "location": "https://x.org/a/b/1.png"}]}}) == (
        "https://x.org/a/b/1.png"
    )


def _state(**changes: Any) -> dict[str, Any]:
    instance = {"input": {"text": "2+2?"}, "references": [{"output": {"text": "4"}, "tags": ["correct"]}], "split": "test", "id": "id1"}
    result = {"success": True, "completions": [{"text": " 4", "logprob": -0.1, "tokens": []}], "cached": True}
    return {"instance": instance, "train_trial_index": 0, "request": {"prompt": "2+2?"}, "result": result} | changes


def _write(folder: Path, **files: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, value in files.items():
        (folder / f"{name}.json").write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return folder


SPEC = {"name": "sums:model=a_b", "adapter_spec": {"method": "generation", "model": "a/b", "max_train_instances": 2}, "scenario_spec": {}}


def test_a_request_that_failed_has_no_answer(tmp_path: Path) -> None:
    failed = _state(result={"success": False, "error": "blocked", "completions": []}, instance=_state()["instance"] | {"id": "id2"})
    folder = _write(tmp_path, run_spec=SPEC, scenario_state={"request_states": [_state(), failed]})
    found = list(rows(read(READER, folder)[0]))
    assert [(row["status"], row["prediction"]) for row in found] == [(None, "4"), ("failed", None)]
    stats = [{"instance_id": "id2", "train_trial_index": 0, "stats": [{"name": {"name": "exact_match"}, "count": 1, "mean": 0.0}]}]
    scored = list(rows(read(READER, _write(folder, per_instance_stats=stats))[0]))
    assert [(row["status"], row["correct"]) for row in scored] == [(None, None), (None, False)]


def test_a_time_and_secrets_are_taken_from_where_they_are(tmp_path: Path) -> None:
    timed = _state(result=_state()["result"] | {"request_datetime": 1_700_000_000, "request_time": 2.5})
    spec = SPEC | {"annotators": [{"args": {"api_key": "sk-1"}}]}
    run = read(READER, _write(tmp_path, run_spec=spec, scenario_state={"request_states": [timed]}))[0][0].run
    assert run.started_at == datetime.fromtimestamp(1_700_000_000, UTC)
    assert run.ended_at == datetime.fromtimestamp(1_700_000_002.5, UTC)
    assert "sk-1" not in json.dumps(run.settings)


def test_fewer_records_than_instances_is_known(tmp_path: Path) -> None:
    totals = [{"name": {"name": "num_instances", "split": "test"}, "count": 1, "mean": 3.0}]
    run = read(READER, _write(tmp_path, run_spec=SPEC, scenario_state={"request_states": [_state()]}, stats=totals))[0][0].run
    assert run.n_expected == 3


def test_a_damaged_entry_takes_no_neighbour_with_it(tmp_path: Path) -> None:
    bad = [3, None, {"instance": None}, _state(instance={"id": ["x"]}), _state(train_trial_index="x"), _state(train_trial_index=-1)]
    odd = _state(instance={"id": "id9", "input": 3, "references": [None, {"output": None}], "split": 5}, result=[1], output_mapping=[])
    folder = _write(
        tmp_path,
        run_spec=SPEC,
        scenario_state={"request_states": [*bad, _state(), odd]},
        per_instance_stats=[
            None,
            {"instance_id": "id1"},
            {"instance_id": "id1", "stats": [None, {"name": 3}, {"name": {"name": "exact_match"}, "mean": "NaN"}]},
        ],
    )
    batches, refusals = read(READER, folder)
    found = {row["question_key"]: row for row in rows(batches)}
    assert set(found) == {"helm:id1", "helm:id9"}
    assert (found["helm:id1"]["special"], found["helm:id1"]["score"]) == ("nan", None)
    assert [one.reason.split(":")[0] for one in refusals] == [*(f"request state {place}" for place in range(1, 7)), "entry 1", "entry 2"]


def test_bare_nan_is_a_value_and_not_zero(tmp_path: Path) -> None:
    stats = '[{"instance_id": "id1", "train_trial_index": 0, "stats": [{"name": {"name": "exact_match", "split": "test"}, "count": 1, "mean": NaN}]}]'
    folder = _write(tmp_path, run_spec=SPEC, scenario_state={"request_states": [_state()]}, per_instance_stats=stats)
    assert [(row["score"], row["special"], row["correct"]) for row in rows(read(READER, folder)[0])] == [(None, "nan", None)]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 0.7, 0.999])
def test_a_file_that_is_cut_off_is_refused_and_the_others_are_read(tmp_path: Path, name: str, share: float) -> None:
    source = _folders(INGEST / "helm" / "perturbed")[0]
    folder = tmp_path / source.name
    shutil.copytree(source, folder)
    path = folder / name
    size = path.stat().st_size
    path.write_bytes(path.read_bytes()[: min(int(size * share), size - 3)])
    batches, refusals = read(READER, folder)
    assert [one.file for one in refusals] == [str(path)]
    assert len(list(rows(batches))) == 10
    if name in {"scenario_state.json", "per_instance_stats.json"}:
        assert {(batch.run.status, batch.run.status_reason) for batch in batches} == {("partial", f"{name} cannot be used")}
    else:
        assert {batch.run.status for batch in batches} == {"finished"}
    if name == "per_instance_stats.json":
        assert {row["score_rule"] for row in rows(batches)} <= {MAPPED, None}


@pytest.mark.parametrize(
    "content", ["version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "", "{", "[]", "\x00\x01", "[1,2]"]
)
def test_a_folder_without_anything_usable_is_an_error_in_one_line(tmp_path: Path, content: str) -> None:
    folder = _write(tmp_path / "sums:model=a_b", scenario_state=content, per_instance_stats=content)
    for source in sources(READER, folder):
        with pytest.raises(InputError) as caught:
            list(READER.read(source, Study.empty()))
        assert "\n" not in str(caught.value)


def test_a_run_without_a_name_for_its_model_is_an_error(tmp_path: Path) -> None:
    folder = _write(tmp_path / "nothing", scenario_state={"request_states": [_state()]})
    with pytest.raises(InputError, match="names no model"):
        read(READER, folder)


@pytest.mark.parametrize("value", [None, 3, "x", [], {}, [[]], [{}], [None], {"request_states": 3}, {"name": []}])
def test_wrong_types_never_raise_anything_else(tmp_path: Path, value: Any) -> None:
    source = _folders(INGEST / "helm" / "separate_original")[0]
    for name in FILES:
        folder = tmp_path / name / source.name
        shutil.copytree(source, folder)
        (folder / name).write_text(json.dumps(value))
        batches, refusals = read(READER, folder)
        assert list(rows(batches)) or refusals


def _mutations(value: Any) -> Iterator[tuple[Any, Any, Any]]:
    """Every place of the first entries: (container, key, value)."""
    if isinstance(value, dict | list):
        for key, one in list(value.items() if isinstance(value, dict) else enumerate(value[:1])):
            yield value, key, one
            yield from _mutations(one)


@pytest.mark.parametrize("replacement", [None, 7, "x", [], {}, [None], {"a": None}, -1.5])
def test_any_value_may_be_anything(tmp_path: Path, replacement: Any) -> None:
    source = _folders(INGEST / "helm" / "separate_original")[0]
    folder = tmp_path / source.name
    shutil.copytree(source, folder)
    for name in ("run_spec.json", "scenario_state.json", "per_instance_stats.json", "stats.json"):
        document = _json(source / name)
        for container, key, old in list(_mutations(document)):
            container[key] = replacement
            (folder / name).write_text(json.dumps(document))
            container[key] = old
            for one in sources(READER, folder):
                try:
                    parts = list(READER.read(one, Study.empty()))
                except InputError:
                    continue
                assert all(isinstance(part, Batch | Refusal) for part in parts)
        shutil.copy(source / name, folder / name)


def test_files_of_others_are_left_alone(tmp_path: Path) -> None:
    folder = _write(tmp_path, stats={"mean": 3}, run_spec={"a": 1}, scenario={"name": "x"}, instances=[], results={"results": {}})
    assert not sources(READER, folder)


@pytest.mark.parametrize("spec", [None, {"adapter_spec": {"max_tokens": 1}}, {"name": " "}, 3])
def test_the_folder_is_in_the_mapping_where_its_name_counts(tmp_path: Path, spec: Any) -> None:
    """Renaming such a folder changes what is read, and so must be seen."""
    more = {} if spec is None else {"run_spec": spec}
    for name in ("boolq:model=a_b", "imdb:model=a_c"):
        folder = _write(tmp_path / name, scenario_state={"request_states": [_state()]}, **more)
        (source,) = sources(READER, folder)
        assert source.mapping == {"folder": name}
    named = _write(tmp_path / "other", scenario_state={"request_states": [_state()]}, run_spec={"name": "boolq:model=a_b"})
    assert sources(READER, named)[0].mapping == {}


def test_one_folder_is_one_source_with_all_its_files() -> None:
    folder = next(one for one in _real_folders() if (one / "display_predictions.json").exists())
    (source,) = sources(READER, folder)
    assert source.uri.endswith("scenario_state.json")
    assert {path.name for path in source.files} == {*FILES, "instances.json", "display_predictions.json"}
    assert [path.name for path in source.claims] == ["display_requests.json"]
