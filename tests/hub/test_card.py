"""Cards: what the user says, results and metadata, hostile text, damaged files. Golden cards: tests/hub_cards."""

import dataclasses
import html
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import ModelCard

from st_xling.cli import main
from st_xling.evaluation import SavedResults, save_results
from st_xling.hub import CardOptions, card_text, write_card
from st_xling.hub.card import eval_results, fenced, one_line, plain, span
from st_xling.mining.thresholds import PublishedThreshold, publish_thresholds
from st_xling.utils.paths import shown_command
from st_xling.utils.tables import Column, Row
from tests.hub.publishing import change, contents
from tests.hub_cards.golden import recorded

pytest_plugins = ["tests.hub.publishing"]


def snippet(text: str, folder: Path) -> str:
    """The card's Python, which names the folder until the model has a name on the Hub."""
    [lines] = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert f'("{folder.name}")' in lines
    return lines


def metadata(text: str) -> Any:
    return ModelCard(text, ignore_metadata_errors=False).data


def test_training_ends_with_a_card(tmp_path):
    words = "train dap --data phrasebook:de,fr?size=60 --max-length 24 --model tiny --tiny vocabulary=300"
    words += f" --tiny hidden_size=16 --tiny layers=2 --max-steps 2 --batch-size 8 --out {tmp_path / 'run'}"
    assert main(words.split()) == 0
    text = (tmp_path / "run" / "README.md").read_text(encoding="utf-8")
    data = metadata(text)
    run = json.loads((tmp_path / "run" / "training" / "run.json").read_text(encoding="utf-8"))
    assert text == card_text(tmp_path / "run") and str(tmp_path) not in text and "pictures/cosines.png" in text
    assert data.base_model is None and data.license is None  # nothing that nobody said
    assert {"recipe:dap", "loss:TranslationRankingLoss", "loss:RepresentationTranslationLoss"} <= set(data.tags)
    assert data.pipeline_tag == "sentence-similarity" and data.language == ["de", "fr", "en"]
    for name, facts in run["data"].items():
        line = next(line for line in text.splitlines() if line.startswith(f"| {name} |"))
        assert f"{facts['rows']:,}" in line and facts["sha8"] in line and line.endswith("| apache-2.0 |")


@pytest.mark.parametrize("kind", ["encoder", "separate", "cross-encoder"])
def test_its_python_runs(kind: str, models: Path, capsys, monkeypatch):
    """As it stands, next to the folder; it named a model that nobody has."""
    monkeypatch.chdir(models)
    exec(compile(snippet(card_text(models / kind), models / kind), "card", "exec"), {"__name__": "card"})
    assert capsys.readouterr().out.strip()


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("encoder", ["Turns sentences of German, French and English into 32-dim", "random weights", "dap"]),
        ("retriever", ["Finds the passages that answer a question", "by an encoder for each"]),
        ("reranker", ["Puts the passages that a search has returned", "Chen et al. 2020"]),
    ],
)
def test_what_a_visitor_sees_first(kind: str, words: list[str], tmp_path: Path) -> None:
    """Purpose with objective and headline, lines to use it, short results, a picture; all else is folded."""
    text = write_card(recorded(kind, tmp_path)).read_text(encoding="utf-8")
    seen, *folded = text.partition("\n---\n")[2].split("<details>")
    purpose, use, results = re.split("\n## (?:Use|Results)\n", seen)
    assert all(word in purpose for word in words) and re.search(r"^It .*\*\*[\d.]+ %\*\*", purpose, re.MULTILINE)
    assert "pip install -U" in use and use.count("```") == 4
    assert results.count("\n| ") > 2 and len(re.findall("!\\[", results)) == 1
    assert len(folded) >= 5 and all(part.rstrip().endswith("</details>") for part in folded)


def test_adapters_name_their_base_and_peft(tmp_path):
    folder = recorded("encoder", tmp_path)
    change(folder / "adapter_config.json", base_model_name_or_path="some-org/base")
    change(folder / "training" / "run.json", model="some-org/base")
    text = write_card(folder).read_text(encoding="utf-8")
    assert metadata(text).base_model_relation == "adapter" and " peft\n" in text


def test_a_model_without_a_run_has_a_card_of_what_is_known(make_model, tmp_path):
    make_model().save_pretrained(str(tmp_path / "foreign"))
    text = write_card(tmp_path / "foreign").read_text(encoding="utf-8")
    for unknown in ("Training:", "### Data", "### Cost", "**Languages", "License:", "fingerprint", "None"):
        assert unknown not in text
    assert "16 dimensions" in text and "SentenceTransformer(" in text and metadata(text).language is None


def test_ids_of_the_hub_are_found_once_where_the_run_was_made(monkeypatch, tmp_path):
    folder = recorded("encoder", tmp_path)
    (tmp_path / "slim").mkdir()
    (tmp_path / "slim" / "README.md").write_text("---\nbase_model: some-org/root\n---\n", encoding="utf-8")
    starts = {"some-org/some-model": "some-org/some-model", str(tmp_path): None, "../other": None}
    for start, base in {**starts, str(tmp_path / "slim"): "some-org/root"}.items():
        (folder / "card.json").unlink(missing_ok=True)
        change(folder / "training" / "run.json", model=start)
        data = metadata(write_card(folder).read_text(encoding="utf-8"))
        assert data.base_model == base and data.get("base_model_relation") == ("finetune" if base else None)

    specs = {"de-en": "some-org/parallel?size=9", "fr-en": "dir/fr-en"}
    sources = [{"option": "data", "spec": spec, "names": [name]} for name, spec in specs.items()]
    change(folder / "training" / "run.json", sources=sources)
    (folder / "card.json").unlink()
    (tmp_path / "dir").mkdir()
    for code in ("fr", "en"):
        (tmp_path / "dir" / f"fr-en.{code}").write_text("", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    first = write_card(folder).read_text(encoding="utf-8")
    assert metadata(first).datasets == ["some-org/parallel"]
    assert "https://huggingface.co/datasets/some-org/parallel" in first and "<code>dir/fr-en</code>" in first
    monkeypatch.chdir("/")  # where there is no dir/fr-en
    assert write_card(folder).read_text(encoding="utf-8") == first


@pytest.mark.parametrize("default", [None, "query"])
def test_prompts_are_named_and_used(default: str | None, models: Path, tmp_path: Path, capsys, monkeypatch) -> None:
    """Those of queries are likely where the model has no default."""
    folder = Path(shutil.copytree(models / "encoder", tmp_path / "prompted"))
    prompts = {"query": "query: ", "document": "passage: ", "odd": "a|`b\n"}
    change(folder / "config_sentence_transformers.json", prompts=prompts, default_prompt_name=default)
    text = card_text(folder)
    assert "<code>query</code> <code>'query: '</code>, <code>document</code> <code>'passage: '</code>" in text
    assert ("<code>query</code> is put before each text" in text) == (default is not None)
    lines = snippet(text, folder)
    # "before each text" left open whether one has to type it.
    assert "# adds 'query: ' itself" in lines and ('prompt_name="query"' in lines) == (default is None)
    monkeypatch.chdir(tmp_path)
    exec(compile(lines, "card", "exec"), {"__name__": "card"})
    assert "tensor" in capsys.readouterr().out and "encode_document" in lines


def test_options_reach_the_card_and_can_be_taken_back(tmp_path, capsys):
    folder = recorded("encoder", tmp_path)
    words = ["--license", "mit", "--data-license", "de-en=cc-by-2.0", "--repo", "me/mine", "--base-model", "me/base"]
    words += ["--languages", "deu,zh-TW", "--limits", "None\n\nat *all*."]
    assert main(["card", str(folder), *words, "--title", "Mine"]) == 0
    assert f"the card is {folder / 'README.md'}" in capsys.readouterr().out
    assert main(["card", str(folder), "--title", ""]) == 0
    text = (folder / "README.md").read_text(encoding="utf-8")
    data = metadata(text)
    assert (data.license, data.language, data.base_model) == ("mit", ["de", "zh"], "me/base")
    limits = "<summary>Limits</summary>\n\nNone\n\nat *all*.\n"
    for shown in ("| cc-by-2.0 |", limits, "# mine\n", "bucc me/mine"):
        assert shown in text
    given = json.loads((folder / "card.json").read_text(encoding="utf-8"))["given"]
    assert given["license"] == "mit" and "title" not in given
    assert "Texts are cut" in write_card(folder, options=CardOptions(limits="")).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--data-license", "xx-yy=mit"], "got xx-yy; there are de-en, fr-en"),
        (["--repo", "a/b/c"], "'a/b/c'"),
        (["--languages", "de,<script>"], "names no known language: got '<script>'"),
        ([], "(?s)mining.json.*de-en"),  # which is damaged
    ],
)
def test_faults_change_nothing(words, message, tmp_path, capsys):
    folder = recorded("encoder", tmp_path)
    if not words:
        content = {"version": 1, "pairs": {"de-en": {"threshold": 10**400}}}
        (folder / "mining.json").write_text(json.dumps(content), encoding="utf-8")
    before = contents(folder)
    assert main(["card", str(folder), *words]) == 2
    assert re.search(message, capsys.readouterr().err)
    assert contents(folder) == before


@pytest.mark.parametrize(
    ("name", "content", "fault"),
    [
        ("training/run.json", {"command": 5}, "text at command, got 5"),
        ("training/run.json", {"data": {"a": {"rows": "many"}}}, "a whole number at data.a.rows, got 'many'"),
        ("training/run.json", {"sources": [5]}, r"an object at sources\[0\], got 5"),
        ("training/run.json", {"recipe": {"losses": 3}}, "an object at recipe.losses, got 3"),
        ("results.json", {"slim": 5}, "an object at slim, got 5"),
    ],
)
def test_records_of_another_form_are_named(name, content, fault, tmp_path):
    """A record that a person had edited ended in an AttributeError, which named neither file nor place."""
    folder = recorded("encoder", tmp_path)
    change(folder / name, **content)
    with pytest.raises(ValueError, match=f"{name}: expected {fault}"):
        write_card(folder)


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ({"said": {"license": "mit"}, "found": {}}, "expected the keys given, hub_ids, got said, found; remove"),
        ({"given": {"licence": "mit"}}, "expected the keys title, repo_id, license, .*, got licence; remove"),
        ({"given": {"license": 5}}, "expected text at given.license, got 5"),
    ],
)
def test_card_file_of_another_form_is_named(content: dict[str, Any], fault: str, tmp_path: Path) -> None:
    """Options under other keys were lost without a word, or ended in a TypeError that did not name the file."""
    folder = recorded("encoder", tmp_path)
    before = (folder / "card.json").write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(ValueError, match=f"card.json: {fault}"):
        write_card(folder, options=CardOptions(title="Mine"))
    assert (folder / "card.json").stat().st_size == before


def test_folders_without_a_model_have_no_card(tmp_path, capsys):
    assert main(["card", str(tmp_path)]) == 2
    assert "expected the folder of a model" in capsys.readouterr().err and not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        ("st-xling train dap --data 'x y.tsv' --out /tmp/a/run --overwrite --json=f.json --cache c --resume", None),
        ("st-xling evaluate bucc m --keep --json 'a b'", "st-xling evaluate bucc a/b"),
    ],
)
def test_commands_are_shown_without_what_one_machine_needs(typed, shown):
    assert (shown or "st-xling train dap --data 'x y.tsv' --out run") in shown_command(typed, "a/b")


BUCC_MEASURES = [Column("precision", "precision"), Column("recall", "recall"), Column("F1", "f1", picture=True)]
FROM_TRAIN = {"threshold": 1.0625, "threshold_source": "train"}
FIGURES = {"histograms": {"de-en": {"low": 0.9, "high": 1.3, "correct": [0, 0, 2, 3], "wrong": [40, 30, 2, 0]}}}
BUCC = SavedResults(
    "bucc",
    FIGURES,
    "bucc|threshold:train|split:test|data:mine@01234567",
    "st-xling evaluate bucc my-encoder --data x --keep --json f.json",
    [*BUCC_MEASURES, *(Column(name, percent=False) for name in ("threshold", "mined"))],
    [
        Row("de-en", [0.75, 0.5, 0.6, 1.0625, 4], arguments=FROM_TRAIN),
        Row("fr-en", [0.75, 0.5, 0.6, None, 4], arguments={**FROM_TRAIN, "threshold": None}),
        Row("all", [0.5, 0.5, 0.5, None, None], average=True),
    ],
)
RERANKING = SavedResults(
    "reranking",
    {"score": 0.5},
    "reranking|n:8|data:xquad@01234567",
    "st-xling evaluate reranking my-encoder --data x --keep --json f.json",
    [Column("acc@1", "accuracy_at_1", picture=True), Column("MRR", "mrr"), Column("BM25 MRR")],
    [
        Row("all", [0.5, 0.625, 0.25], average=True, intervals=[[0.4, 0.6], [0.525, 0.725], None]),
        Row("en → zh", [0.5, 0.625, 0.25]),
    ],
)


@pytest.fixture
def evaluated(tmp_path: Path) -> Path:
    folder = recorded("encoder", tmp_path)
    change(folder / "results.json", evaluations=[])
    for results in (BUCC, RERANKING):
        save_results(folder, results)
    return folder


def test_results_reach_the_metadata_with_their_signature(evaluated):
    """Those of the main measure, over all rows; another system's results are not the model's: there is no BM25."""
    results = metadata(card_text(evaluated)).eval_results
    names = [
        (result.dataset_config, result.dataset_split, result.metric_type, result.metric_name) for result in results
    ]
    assert names == [("all", "test", "f1", "F1"), ("all", None, "accuracy_at_1", "acc@1")]
    assert [result.metric_value for result in results] == [0.5, 0.5]
    assert [result.metric_args["signature"] for result in results] == [BUCC.signature, RERANKING.signature]
    [result] = eval_results(dataclasses.replace(BUCC, rows=BUCC.rows[:1]))
    assert result.metric_args["threshold"] == 1.0625 and result.metric_args["threshold_source"] == "train"


def test_every_table_has_its_signature_and_a_command_to_paste(evaluated):
    search = {"margin": "ratio", "k": 4, "retrieval": "max"}
    threshold = PublishedThreshold(threshold=1.06, precision=0.9, recall=None, f1=None, **search, signature="bucc|x")
    publish_thresholds(evaluated, {"de-en": threshold})
    text = write_card(evaluated, options=CardOptions(repo_id="me/encoder")).read_text(encoding="utf-8")
    assert "| de-en | 75.0 | 50.0 | 60.0 | 1.0625 | 4 |" in text
    assert "| **all** | 50.0 (40.0–60.0) | 62.5 (52.5–72.5) | 25.0 |" in text
    for results in (BUCC, RERANKING):
        assert f"Signature: `{results.signature}`" in text
        assert f"st-xling evaluate {results.task} me/encoder --data x\n" in text
    assert "| de-en | 1.0600 | 90.0 | – | – | ratio margin, k 4, max |" in text and "`bucc|x`" in text
    assert 'SentenceTransformer("me/encoder")' in text


def test_the_card_of_a_cut_vocabulary(models: Path, tmp_path: Path) -> None:
    out = tmp_path / "small"
    words = ["slim", str(models / "encoder"), "--languages", "de,en", "--data", "phrasebook:de?size=60"]
    assert main([*words, "--out", str(out)]) == 0
    card = (out / "README.md").read_text(encoding="utf-8")
    slim = json.loads((out / "results.json").read_text(encoding="utf-8"))["slim"]
    tokens = slim["report"]["size"]["tokens"]
    same = slim["report"]["parity"]
    assert f"| tokens | {tokens['before']:,} | {tokens['after']:,} |" in card
    assert f"| text that was counted | {same['texts']} | {same['cosine_mean']:.5f} |" in card
    assert slim["signature"] in card and "st-xling slim" in card and "The same model as `encoder`" in card
    assert metadata(card).language == ["de", "en"] and "of German and English into" in card
    for source, base in (("encoder", "user/huge"), ("user/large", "user/large")):  # a folder, and a Hub id
        card = {"license": "mit", "base_model": "user/huge"}
        change(out / "results.json", slim={**slim, "source": source, "source_card": card})
        data = metadata(card_text(out))
        assert (data.license, data.base_model, data.base_model_relation) == ("mit", base, "quantized")
    data = metadata(write_card(out, options=CardOptions(license="apache-2.0")).read_text(encoding="utf-8"))
    assert data.license == "apache-2.0" and "huge" not in (out / "card.json").read_text(encoding="utf-8")


HOSTILE = [
    "a\\|b|c",
    "line\nbreak\r\n| new | row |",
    "<script>alert(1)</script> &lt;b&gt; &#60;i&#62;",
    "```\nout\n``` `code` ``more``",
    "---\nlicense: mit\n---",
    "1. # heading [click](javascript:alert(1))",
    "**bold** _it_ ~~gone~~ $x$",
    "</code></table>-->",
    "'quote\" {{ jinja }} {% raw %}",
    "\u202egnp.exe\u202c \ufeff\x00\x1b[31m",
    "\ud800 half",
    "زبان‌ها 中文 🙂",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_text(text):
    shown = plain(text)
    assert not re.search(r"[<>|`*\[\]\\~$\n\r]|&(?!#\d+;)", shown)
    assert not re.match(r"[-+=#>]|\d+[.)](\s|$)", shown) and html.unescape(shown) == one_line(text)
    block = fenced(text, "bash").splitlines()
    fence = block[0].removesuffix("bash")
    assert block[-1] == fence and not any(fence in line for line in block[1:-1])
    ticks = re.match(r"`+", span(text))[0]
    assert span(text).endswith(ticks) and "\n" not in span(text)
    assert ticks not in re.findall(r"`+", span(text)[len(ticks) : -len(ticks)])


def test_one_data_set_has_one_license(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The last of two licenses of a data set was published, and nothing said that there had been another."""
    (tmp_path / "modules.json").write_text("[]", encoding="utf-8")
    licenses = ["--data-license", "de-en=mit", "--data-license", "de-en=cc0-1.0"]
    assert main(["card", str(tmp_path), *licenses]) == 2
    assert "gives de-en two licenses, mit and cc0-1.0" in capsys.readouterr().err
