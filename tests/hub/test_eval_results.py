"""Results that the Hub's leaderboards read, by huggingface_hub's reader; and next to mteb's own."""

import json
from pathlib import Path

import mteb
import yaml
from huggingface_hub import parse_eval_result_entries

from st_xling.data.test_sets import HUB_TEST_SETS
from st_xling.evaluation import TATOEBA_GROUPS, SavedResults, save_results
from st_xling.hub import CardOptions, eval_result_entries, write_card
from st_xling.hub.eval_results import EVAL_RESULTS_FILE
from st_xling.hub.push import is_published
from st_xling.utils.tables import Column, Row
from tests.hub_cards.golden import recorded


def tatoeba(figures: dict[str, float], *, data: str = "tatoeba", parts: str = "") -> SavedResults:
    signature = f"tatoeba|languages:deu,jpn|{parts}data:{data}@0a1b2c3d|st-xling:1"
    rows = [Row("deu", [0.5])]
    columns = [Column("mean", "accuracy")]
    return SavedResults("tatoeba", figures, signature, "st-xling evaluate …", columns, rows, date="2026-03-31")


def test_the_hub_reads_what_the_card_writes(tmp_path: Path) -> None:
    """Values are plain numbers and dates are texts: YAML of numpy's numbers, or a date of Python, was unreadable."""
    folder = recorded("encoder", tmp_path)
    figures = {"tatoeba_deu_to_en_weighted_f1": 0.912345678, "tatoeba_deu_to_en_accuracy": 0.93}
    not_a_number = {"tatoeba_jpn_to_en_weighted_f1": float("nan"), "tatoeba_xxx_to_en_weighted_f1": 0.5}
    save_results(folder, tatoeba({**figures, **not_a_number}))
    save_results(folder, tatoeba({"tatoeba_deu_to_en_weighted_f1": 1.0}, data="tatoeba-500-seed0"))
    save_results(folder, tatoeba({"tatoeba_deu_to_en_weighted_f1": 1.0}, parts="center:joint|"))
    write_card(folder, options=CardOptions(repo_id="me/encoder"))

    text = (folder / EVAL_RESULTS_FILE).read_text(encoding="utf-8")
    assert "date: '2026-03-31'" in text and "null" not in text and "nan" not in text and "!!" not in text
    content = yaml.safe_load(text)
    assert json.loads(json.dumps(content)) == content
    [entry] = parse_eval_result_entries(content)
    assert (entry.dataset_id, entry.task_id) == (HUB_TEST_SETS["tatoeba"].dataset, "Tatoeba_deu-eng_test")
    assert entry.value == 91.23457 and type(entry.value) is float and entry.date == "2026-03-31"
    assert entry.notes == tatoeba({}).signature and entry.source_url == "https://huggingface.co/me/encoder"
    assert is_published(EVAL_RESULTS_FILE)

    # An evaluation that was replaced by another data set's leaves no result behind.
    (folder / "results.json").write_text("{}", encoding="utf-8")
    write_card(folder)
    assert not (folder / EVAL_RESULTS_FILE).exists()


def test_task_ids_are_those_of_mteb() -> None:
    """Of all 112 languages, the mean too; mteb's own push has these ids, values and order of magnitude."""
    task = mteb.get_task("Tatoeba")
    shares = {code: 0.5 + number / 1000 for number, code in enumerate(TATOEBA_GROUPS["laser112"])}
    scores = {f"{code}-eng": {"main_score": share} for code, share in shares.items()}
    result = mteb.TaskResult.from_task_results(task, {"test": scores}, evaluation_time=0.0)
    theirs = {entry.dataset.task_id: entry.value for entry in result._to_hf_benchmark_result().root}

    figures = {f"tatoeba_{code}_to_en_weighted_f1": share for code, share in shares.items()}
    ours = eval_result_entries([tatoeba(figures)])
    assert {entry.task_id: entry.value for entry in ours} == theirs
    assert {entry.dataset_id for entry in ours} == {task.metadata.dataset["path"]}
