"""The card of every kind of model that the recipes make: what it says, and that its lines run."""

from __future__ import annotations

import re

import pytest
from huggingface_hub import ModelCard

from st_xling.hub import CardOptions, card_text, write_card
from st_xling.hub.card.training_section import flat_recipe
from st_xling.training.run_folder import RunFolder
from tests.hub.conftest import RUNS

CALLS = {
    "encoder": "SentenceTransformer(",
    "lora": "SentenceTransformer(",
    "adapter": "SentenceTransformer(",
    "shared": "encode_query(",
    "separate": "encode_document(",
    "cross-encoder": "CrossEncoder(",
}
LANGUAGES = {
    "encoder": ["de", "fr", "en"],
    "lora": ["de", "en"],
    "adapter": ["zh", "vi"],
    "shared": ["en"],
    "separate": ["en"],
    "cross-encoder": ["zh", "en"],
}
LOSSES = {
    "encoder": ["TranslationRankingLoss", "RepresentationTranslationLoss"],
    "lora": ["TranslationRankingLoss"],
    "adapter": ["SiameseContrastiveLoss"],
    "shared": ["InBatchRankingLoss"],
    "separate": ["InBatchRankingLoss"],
    "cross-encoder": ["BinaryCrossEntropyLoss"],
}


@pytest.mark.parametrize("kind", RUNS)
def test_training_ends_with_our_card(kind, trained):
    folder = trained(kind)
    text = (folder / "README.md").read_text(encoding="utf-8")
    data = ModelCard(text, ignore_metadata_errors=False).data
    assert data.language == LANGUAGES[kind]
    assert data.library_name == "sentence-transformers"
    assert data.pipeline_tag == ("text-ranking" if kind == "cross-encoder" else "sentence-similarity")
    assert [tag for tag in data.tags if tag.startswith(("recipe:", "loss:"))] == [
        f"recipe:{RUNS[kind][0]}",
        *(f"loss:{name}" for name in LOSSES[kind]),
    ]
    assert data.base_model is None and data.license is None  # nothing that nobody said
    assert text == card_text(folder)


@pytest.mark.parametrize("kind", RUNS)
def test_every_hyper_parameter_the_data_and_the_cost_are_told(kind, trained):
    folder = trained(kind)
    text, run = (folder / "README.md").read_text(encoding="utf-8"), RunFolder(folder).read_manifest()
    for key, _ in flat_recipe(run["recipe"]):
        assert f"<code>{key}</code>" in text
    for name, facts in run["data"].items():
        line = next(line for line in text.splitlines() if line.startswith(f"| {name} |"))
        assert f"{facts['rows']:,}" in line and facts["sha8"] in line and line.endswith("| apache-2.0 |")
    assert "| processor |" in text and "torch " in text
    assert f"st-xling train {RUNS[kind][0]}" in text and str(folder) not in text
    assert ("pictures/token_states.png" in text) == (folder / "pictures" / "token_states.png").is_file()
    assert (folder / "pictures" / "token_states.png").is_file() == (kind in ("encoder", "lora"))
    assert not (folder / "training" / "token_states.safetensors").exists()


@pytest.mark.parametrize("kind", RUNS)
def test_the_lines_of_python_run(kind, trained, capsys):
    folder = trained(kind)
    text = (folder / "README.md").read_text(encoding="utf-8")
    [lines] = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert CALLS[kind] in lines and "path/to/this/folder" in lines
    exec(compile(lines.replace("path/to/this/folder", str(folder)), "README.md", "exec"), {"__name__": "card"})
    assert capsys.readouterr().out.strip()


def test_citations_are_those_of_the_losses_and_the_paper(trained):
    assert "li2023dap" in card_text(trained("encoder")) and "yang2019additive" in card_text(trained("encoder"))
    assert "huang2023crosslingual" in card_text(trained("adapter"))
    assert "hu2023language" in card_text(trained("shared"))
    assert "chen2020crosslingual" in card_text(trained("cross-encoder"))


def test_the_same_folder_gives_the_same_bytes(copy_of):
    folder = copy_of("encoder")
    before = (folder / "README.md").read_bytes()
    write_card(folder)
    assert (folder / "README.md").read_bytes() == before
    moved = folder.rename(folder.with_name("elsewhere"))
    assert write_card(moved).read_bytes() == before


def test_a_model_without_a_run_has_a_card_of_what_is_known(make_model, tmp_path):
    make_model().save_pretrained(str(tmp_path / "foreign"))
    text = write_card(tmp_path / "foreign").read_text(encoding="utf-8")
    for unknown in ("## Training", "### Data", "### Cost", "**Languages", "**Licence", "fingerprint", "None"):
        assert unknown not in text
    assert "16 dimensions" in text and "SentenceTransformer(" in text
    assert ModelCard(text, ignore_metadata_errors=False).data.language is None


def test_a_model_of_the_hub_is_the_base_and_a_folder_is_not(copy_of):
    folder = copy_of("encoder")
    manifest = RunFolder(folder).read_manifest()
    for start, base in (("some-org/some-model", "some-org/some-model"), (str(folder), None), ("../other", None)):
        (folder / "card.json").unlink(missing_ok=True)
        RunFolder(folder).write_manifest({**manifest, "model": start})
        data = ModelCard(write_card(folder).read_text(encoding="utf-8")).data
        assert data.base_model == base
        assert data.get("base_model_relation") == ("finetune" if base else None)
    said = write_card(folder, options=CardOptions(base_model="me/base")).read_text(encoding="utf-8")
    assert ModelCard(said).data.base_model == "me/base"


def test_the_ids_of_data_sets_are_seen_once_where_the_run_was_made(copy_of, monkeypatch, tmp_path):
    folder = copy_of("encoder")
    manifest = RunFolder(folder).read_manifest()
    command = "st-xling train dap --data some-org/parallel?name=de-en --data dir/fr-en --out x"
    RunFolder(folder).write_manifest({**manifest, "command": command})
    (folder / "card.json").unlink()
    (tmp_path / "dir" / "fr-en").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    first = write_card(folder).read_text(encoding="utf-8")
    assert ModelCard(first).data.datasets == ["some-org/parallel"]
    assert "https://huggingface.co/datasets/some-org/parallel" in first
    monkeypatch.chdir("/")  # where there is no dir/fr-en
    assert write_card(folder).read_text(encoding="utf-8") == first
