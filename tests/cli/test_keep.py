"""``--keep``: figures and thresholds with the model, its card made again; what cannot be kept is refused at once."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from st_xling.cli import main
from st_xling.evaluation import read_saved_results
from st_xling.mining import PublishedThreshold, load_published_thresholds
from st_xling.utils.paths import shown_command
from tests.commands import parse
from tests.conftest import PAIRS
from tests.example_files import write_bucc
from tests.models.tiny_cross_encoder import tiny_cross_encoder
from tests.retrieval_files import ENGLISH, translated
from tests.training.transfer.sets import write_encoder, write_set

BUCC = ["--data", "phrasebook?size=30&gold=10", "--pairs", "de-en"]


def aligned(folder: Path) -> Path:
    """The shared pairs as a set of Tatoeba's."""
    folder.mkdir()
    for code, side in (("deu", 0), ("eng", 1)):
        lines = "".join(f"{pair[side]}\n" for pair in PAIRS)
        (folder / f"tatoeba.deu-eng.{code}").write_text(lines, encoding="utf-8")
    return folder


def judged(words: list[str], model: Path, json_path: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """What ``--json`` says of a run that keeps the same, by the command as it was kept."""
    assert main([*words, "--json", str(json_path), "--keep"]) == 0
    captured = capsys.readouterr()
    written = json.loads(json_path.read_text(encoding="utf-8"), parse_constant=pytest.fail)
    kept = read_saved_results(model)[-1]
    assert f"saved: {model / 'results.json'}" in captured.err and f"card: {model / 'README.md'}" in captured.err
    assert kept.signature == written["signature"] == captured.out.splitlines()[-1]
    assert kept.command == shown_command(shlex.join(["st-xling", *words]))
    parse(kept.command)
    return {"written": written, "kept": kept}


@pytest.mark.parametrize("task", ["tatoeba", "xsim", "precision", "retrieval"])
def test_figures_of_an_encoder(task: str, encoder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pairs = tmp_path / "de-en.tsv"
    pairs.write_text("".join(f"{source}\t{target}\n" for source, target in PAIRS), encoding="utf-8")
    data = {
        "tatoeba": ["--data", str(aligned(tmp_path / "tatoeba"))],
        "xsim": ["--data", str(tmp_path / "tatoeba"), "--k", "2"],
        "precision": ["--data", f"de-en={pairs}", "--at", "1,2"],
        "retrieval": ["--data", f"vi={translated(tmp_path / 'xx')}", "--bm25", "--device", "cpu"],
    }
    words = ["evaluate", task, str(encoder), *data[task]]
    results = judged(words, encoder, tmp_path / "f.json", capsys)
    assert results["kept"].task == task
    assert results["kept"].figures == results["written"][task]
    if task == "retrieval":
        assert set(results["kept"].figures) == {"my-encoder", "BM25"}
    assert main([*words, "--keep"]) == 0
    assert len(read_saved_results(encoder)) == 1
    assert not (encoder / "mining.json").exists()
    assert results["kept"].signature in (encoder / "README.md").read_text(encoding="utf-8")


def test_figures_of_a_cross_encoder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = tmp_path / "my-reranker"
    texts = [text for pair in PAIRS for text in pair]
    tiny_cross_encoder(texts, max_length=80).save_pretrained(str(model))
    (model / "README.md").unlink(missing_ok=True)
    data = f"en={translated(tmp_path / 'en', texts=ENGLISH)}"
    words = ["evaluate", "reranking", str(model), "--data", data, "--device", "cpu", "--samples", "20"]
    results = judged(words, model, tmp_path / "f.json", capsys)
    assert results["kept"].task == "reranking"
    assert results["kept"].figures == results["written"]["reranking"]


def test_figures_of_transfer_are_the_encoders(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They say how well the encoder transfers: its card has them, not that of the classifier in ``--out``."""
    encoder = Path(write_encoder(tmp_path / "encoder"))
    paths = write_set(tmp_path / "data", "pawsx")
    (encoder / "README.md").unlink()
    words = ["transfer", "pawsx", str(encoder), "--train", f"en={paths['en']}", "--test", f"th={paths['th']}"]
    words += ["--out", str(tmp_path / "run"), "--max-steps", "1", "--batch-size", "8"]
    results = judged(words, encoder, tmp_path / "f.json", capsys)
    assert results["kept"].task == "transfer-pawsx"
    assert results["kept"].figures == results["written"]["transfer"]
    assert not read_saved_results(tmp_path / "run")


def test_mining_publishes_its_threshold(encoder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["evaluate", "bucc", str(encoder), *BUCC, "--k", "3"]
    results = judged(words, encoder, tmp_path / "f.json", capsys)
    figures = results["written"]["bucc"]
    assert results["kept"].task == "bucc"
    assert figures.items() <= results["kept"].figures.items()
    measured = {name: figures[f"bucc_de-en_{name}"] for name in ("threshold", "precision", "recall", "f1")}
    options = {"margin": "ratio", "k": 3, "retrieval": "max", "signature": results["kept"].signature}
    threshold = load_published_thresholds(encoder)["de-en"]
    assert threshold == PublishedThreshold(**measured, **options)
    # Of the training split no mined pair is right, so that no threshold keeps any.
    for split, gold in (("training", "d1\te2"), ("test", "d1\te1")):
        for language, letter in (("de", "d"), ("en", "e")):
            lines = [f"{letter}1\tDer Hund schläft.", f"{letter}2\tDie Katze trinkt Milch."]
            (tmp_path / f"de-en.{split}.{language}").write_text("\n".join(lines), encoding="utf-8")
        (tmp_path / f"de-en.{split}.gold").write_text(gold, encoding="utf-8")
    infinite = ["evaluate", "bucc", str(encoder), "--data", str(tmp_path), "--k", "1"]
    tuned = [*words, "--threshold", "tune"]
    for line, reason in ((tuned, "it was tuned on the gold that it was evaluated by"), (infinite, "got inf")):
        assert main([*line, "--keep"]) == 0
        warning = capsys.readouterr().err
        assert "the threshold of de-en is not published: " in warning
        assert reason in warning
        assert load_published_thresholds(encoder)["de-en"] == threshold
    assert [kept.figures["bucc_de-en_threshold"] for kept in read_saved_results(encoder)][2] is None


def test_a_card_of_others_stays(encoder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (encoder / "README.md").write_text("# Theirs\n", encoding="utf-8")
    assert main(["evaluate", "bucc", str(encoder), *BUCC, "--keep"]) == 0
    assert f"not written by st-xling and is kept; to replace it: st-xling card {encoder}" in capsys.readouterr().err
    assert (encoder / "README.md").read_text(encoding="utf-8") == "# Theirs\n"
    assert read_saved_results(encoder)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("some-body/some-model", "--keep writes into the model's folder: there is no folder some-body/some-model"),
        ("/proc/self", "--keep writes into the model's folder: /proc/self is not writable"),
        ("RESULTS", "results.json: expected JSON"),
    ],
)
def test_what_cannot_be_kept_is_refused_before_anything_is_read(
    model: str, message: str, encoder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The data are not there: that would be told next."""
    if model == "/proc/self" and not Path(model).is_dir():
        pytest.skip("no folder that nobody can write in")
    (encoder / "results.json").write_text("{", encoding="utf-8")
    folder = str(encoder) if model == "RESULTS" else model
    assert main(["evaluate", "bucc", folder, "--data", "absent", "--pairs", "de-en", "--keep"]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("task", ["tatoeba", "xsim", "precision", "bucc", "retrieval"])
def test_data_keep_their_own_name(
    task: str, encoder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Own news, in the layout of BUCC's files, were published as BUCC; own pairs as "precision", and so on."""
    pairs = tmp_path / "nachrichten.tsv"
    pairs.write_text("".join(f"{source}\t{target}\n" for source, target in PAIRS), encoding="utf-8")
    for split, drawn_from in (("training", "dev"), ("test", "test")):
        write_bucc(tmp_path / "zeitung", "de", split, drawn_from)
    data = {
        "bucc": [str(tmp_path / "zeitung")],
        "retrieval": [f"en={translated(tmp_path / 'fragen', texts=ENGLISH)}"],
    }.get(task, [f"de-en={pairs}"])
    name = {"bucc": "zeitung", "retrieval": "fragen"}.get(task, "nachrichten.tsv")
    words = ["evaluate", task, str(encoder), "--data", *data, "--keep", "--json", str(tmp_path / "figures.json")]
    assert main(words) == 0, capsys.readouterr().err
    signature = json.loads((tmp_path / "figures.json").read_text(encoding="utf-8"))["signature"]
    assert f"|data:{name}@" in signature
    card = (encoder / "README.md").read_text(encoding="utf-8")
    assert f"type: {name}\n" in card and f"name: {name} (" in card and f"({name})" in card
    shown = card.replace(signature, "").replace(f"evaluate {task}", "")
    assert not re.search(r"BUCC|Tatoeba|XTREME|(type|name): (bucc|tatoeba|precision|xsim|retrieval)\b", shown)
