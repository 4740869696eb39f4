"""What a call cannot use is refused, never ignored: options that exclude or need each other, and numbers."""

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest

from st_xling.cli import main
from st_xling.cli.rules import SHARED, Excludes, Needs, check_numbers
from tests.commands import COMMANDS

SIGNED = ("around", "threshold", "rescore_threshold")
"""Numbers that may be below 0."""


def parameter_names(rule: object) -> set[str]:
    if isinstance(rule, Excludes):
        return {rule.option, *rule.others}
    if isinstance(rule, Needs):
        return {*rule.options, rule.other}
    return {*rule.options}  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", COMMANDS)
def test_rules_name_options_of_their_command(name: str) -> None:
    """A misspelled name would switch a rule off."""
    names = {parameter.name for parameter in COMMANDS[name].params}
    for rule in COMMANDS[name].rules:
        assert parameter_names(rule) <= names


def test_shared_rules_name_options_of_some_command() -> None:
    names: set[str] = set()
    for command in COMMANDS.values():
        names.update(parameter.name for parameter in command.params)
    for rule in SHARED:
        assert parameter_names(rule) <= names


def value_of(command: str, flag: str, text: str) -> object:
    """Return what an option's text is read as, or ``None`` if it is refused."""
    parameters = COMMANDS[command].params
    words: list[str] = []
    for parameter in parameters:
        spelling = parameter.opts[0]
        if not parameter.required or spelling == flag:
            continue
        if spelling.startswith("-"):
            words.append(spelling)
        is_task = command == "st-xling transfer" and parameter.name == "task"
        words.append("pos" if is_task else "1")
    try:
        context = COMMANDS[command].make_context(command, [*words, flag, text])
    except Exception:
        return None
    return next(context.params[parameter.name] for parameter in parameters if parameter.opts[0] == flag)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_number_has_a_range(name: str) -> None:
    """``--threshold nan`` kept no pair, ``--eval-steps -1`` and ``--seed -1`` failed after the data were read.

    A new option of a number must be put into a table of :mod:`st_xling.cli.rules`.
    """
    for parameter in COMMANDS[name].params:
        flag = parameter.opts[0]
        if not flag.startswith("-"):
            continue
        for text in ("nan", "inf"):
            value = value_of(name, flag, text)
            if isinstance(value, float):
                with pytest.raises(ValueError, match=f"{flag} must be a finite number: got {text}"):
                    check_numbers({parameter.name: value}, {parameter.name: flag})
        value = value_of(name, flag, "-1")
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if is_number and parameter.name not in SIGNED:
            with pytest.raises(ValueError, match=f"{flag} must be"):
                check_numbers({parameter.name: value}, {parameter.name: flag})


def test_numbers_in_range_pass() -> None:
    check_numbers({"threshold": -0.5, "seed": 0, "warmup": 0, "batch_size": 1, "min_score": 0.0, "json": None})
    for name, value in {"seed": 2**32, "min_score": 1.5, "hold_out": 1.0, "epochs": 0.0, "k": 0}.items():
        with pytest.raises(ValueError, match=name.replace("_", "-")):
            check_numbers({name: value})
    assert math.isfinite(2**32)


MINE = "mine a.de a.en --out o.tsv"
TRAIN = "train tr --model tiny --data p.tsv --out o"
STORES = "--source-embeddings s.npy --target-embeddings t.npy"
BAD = {
    # A model has no license of its own in push: it went out without one, and nobody said so.
    "push m user/m --license mit": "--license does not apply: m is the folder of a model",
    "push m user/m --overwrite --results r.json": "--results and --overwrite do not apply",
    "push m user/m --source-language de --target-language en": "--source-language and --target-language do not apply",
    "push p.tsv user/p --license mit": "add --source-language and --target-language",
    # A revision of a folder was ignored.
    "encode m a.de --out s --revision main": "--revision is for models of the Hub: m is on this machine",
    "rerank m --queries a.de --passages a.en --out o --batch-size 8": "did you mean --token-budget?",
    "mine a.de a.en --out o.tsv --model m --src-lang de": "did you mean --source-language?",
    # Two modes of mining
    f"{MINE} {STORES} --prompt q": "--prompt does not apply: both texts have embeddings",
    f"{MINE} {STORES} --batch-size 8 --dtype bfloat16": "--dtype and --batch-size do not apply",
    MINE: "expected --model, or embeddings of both texts: got neither for the source and the target",
    "score p.tsv --out o.tsv --source-embeddings a.de": "for the target; add --model or --target-embeddings",
    f"{MINE} --source-embeddings none.store --model m": "there is no folder none.store",
    f"{MINE} --model m --rescore-threshold 0.5": "--rescore-threshold needs --rescore",
    f"{MINE} --model m --target-precision 0.9": "--target-precision needs --calibrate",
    f"{MINE} {STORES} --calibrate p.tsv": "--calibrate needs --model",
    f"{MINE} --model m --calibrate p.tsv --threshold 1.1": "--threshold and --calibrate both set the threshold",
    f"{MINE} --model m --prompt q --prompt-name query": "--prompt cannot be used with --prompt-name",
    f"{MINE} --model m --memory-mib 0": "--memory-mib must be at least 1",
    f"{MINE} --model m --filter-limit copy=nan": "expected NAME=NUMBER",
    f"score p.tsv --out o.tsv {STORES} --layer 2": "--layer does not apply",
    "align-documents a.de a.en --model m --out o --format vecalign --rejects r": "--rejects does not apply",
    "align-documents a.de a.en --model m --out o --min-score nan": "--min-score must be a finite number",
    "align-words p.tsv --model m --out o --gold-from-1": "--gold-from-1 needs --gold",
    "align-words p.tsv --model m --out o --gold p.tsv --every-layer --layer 2": "--every-layer cannot be used with",
    "search q --model m --store m --passages p.tsv --max-candidates 3": "--max-candidates needs --reranker",
    # Training
    "train tr --list": "--list lists all recipes",
    "train tr --print --model m": "--model does not apply: --print only prints a recipe",
    f"{TRAIN} --epochs 1 --max-steps 3": "--epochs cannot be used with --max-steps",
    f"{TRAIN} --resume --overwrite": "--resume cannot be used with --overwrite",
    f"{TRAIN} --drop-leaks --fail-on-leak": "--drop-leaks cannot be used with --fail-on-leak",
    f"{TRAIN} --revision main": "--revision does not apply: the model tiny is built here",
    f"{TRAIN} --warmup nan": "--warmup must be a finite number",
    f"{TRAIN} --eval-steps -1": "--eval-steps must be at least 0",
    f"{TRAIN} --seed -1": "--seed must be at least 0",
    f"{TRAIN} --tiny vocabulary=1e9": "tiny.vocabulary must be a whole number",
    f"{TRAIN} --tiny vocabulary=1000000000": "tiny vocabulary must be from 15 to 1,000,000",
    f"{TRAIN} --tiny hidden_size=0 --tiny layers=1": "tiny hidden_size must be from 2",
    f"{TRAIN} --tiny max_length=-3": "tiny max_length must be from 3",
    f"{TRAIN} --tiny hiden_size=8": "did you mean 'hidden_size'",
    f"{TRAIN} --set arguments.warmup_steps=.nan": "arguments.warmup_steps must be a finite number",
    f"{TRAIN} --set arguments.seed=-1": "arguments.seed must be at least 0: got -1",
    f"{TRAIN} --set arguments.weight_decay=-.inf": "arguments.weight_decay must be a finite number",
    "train tr --model m --data p.tsv --out o --tiny layers=1": "--tiny does not apply: it shapes the model 'tiny' only",
    "train sf --model m --data p.tsv --out o --sweep --layer 3": "--sweep cannot be used with --layer",
    "train xpr-mixed --model m --data p.tsv --out o --prompt ''": "--prompt is for encoders and retrievers",
    "train xpr-mixed --model m --data p.tsv --dev p.tsv --out o --dev-share 0.2": "--dev-share cannot be used",
    "transfer pos m --train en=p.tsv --test en=p.tsv --out o --epochs 1 --max-steps 2": "--epochs cannot be used",
    "transfer pos m --train en=p.tsv --test en=p.tsv --out o --hold-out 1": "--hold-out must be below 1",
    "transfer xnli m --train p.tsv --test de=p.tsv --out o": "'p.tsv', which names no language",
    "transfer xnli m --train en=p.tsv?size=0 --test de=p.tsv --out o": "expected size=8000, a number above 0",
    # Papers: each of their steps failed, or the folder was missed after half a minute.
    "reproduce dap 1 --rows Nothing": "row must be one of as it is, TR",
    "reproduce dap 1 --model ./none": "there is no such folder. Check the name. The models that are made here are mlm",
    "reproduce dap 1 --scale small --data none --precision fp32": "--data must be a folder: there is none at none",
    "reproduce none.yaml": "expected a file none.yaml",
    "train none.yaml --model tiny --data p.tsv --out o": "expected a file none.yaml",
    "slim a.de --languages de --data de=a.de --out o": "expected the Hub id or folder of a model, got the file a.de",
    # Evaluation
    "evaluate retrieval bm25 --data de=x --prompt q --device cpu": "--prompt and --device do not apply: bm25",
    "evaluate xsim m --data de-en=p.tsv --seed 3": "--seed needs --plus-plus",
    "evaluate tatoeba m --data de-en=p.tsv --center-text p.tsv": "--center-text does not apply: it needs --center",
    "evaluate bucc m --data phrasebook --threshold inf": "--threshold must be a finite number",
    # Languages
    f"{MINE} --model m --source-language german": "--source-language names no known language: got 'german'",
    f"{MINE} --model m --target-language ger": "did you mean 'de'?",
    "encode m a.de --out s --language DE": "did you mean 'de'?",
    "train tr --model tiny --data ger-en=p.tsv --out o": "got 'ger'; did you mean 'de'?",
    "train tr --model tiny --data xx-en=p.tsv --out o": "xx-en=p.tsv names no known language: got 'xx'",
    "train tr --model tiny --data german-en=p.tsv --out o": "got 'german-en'; did you mean 'de-en'?",
    "leak --train DE-EN=p.tsv --eval p.tsv": "got 'DE-EN'; did you mean 'de-en'?",
    "transfer pos m --train german=p.tsv --test en=p.tsv --out o": "got 'german'; did you mean 'de'?",
    "card m --data-license foo": "--data-license expects NAME=ID",
    "train ir --model tiny --data queries=p.tsv --mono xx=p.tsv --out o": "got 'xx'",
    "train tr --model tiny --data de-en=p.tsv --out o --pivot english": "--pivot names no known language",
    "slim m --languages de,xx --data de=a.de --out o": "--languages names no known language: got 'xx'",
    "card m --languages Deutsch,en": "did you mean 'de'?",
    "push p.tsv user/p --source-language german --target-language en --license mit": "did you mean 'de'?",
    "evaluate precision m --data xx-en=p.tsv": "got 'xx'",
    "evaluate retrieval m --data de=a.de --query-languages en,zz": "got 'zz'",
    "leak --train xx-en=p.tsv --eval p.tsv": "got 'xx'",
    "align-words xx-en=p.tsv --model m --out o": "got 'xx'",
    # stdout
    f"{MINE.replace('o.tsv', '-')} --model m --rejects -": "--out - and --rejects - both write to stdout",
    f"{MINE} --model m --rejects - --json -": "--rejects - and --json - both write to stdout",
    "encode m a.de --out -": "--out must be a folder, which cannot be written to stdout",
}


def test_what_cannot_be_used_is_refused_before_torch_is_imported(tmp_path: Path) -> None:
    """It took seconds until a command line was known to be wrong, or it was ignored. All lines run in one process."""
    for name in ("a.de", "a.en", "p.tsv", "r.json"):
        (tmp_path / name).write_text("Guten Morgen.\tGood morning.\n", encoding="utf-8")
    (tmp_path / "m").mkdir()
    script = f"""
import io, shlex, sys
from contextlib import redirect_stderr
from st_xling.cli import main
for line, fact in {BAD!r}.items():
    shown = io.StringIO()
    with redirect_stderr(shown):
        assert main(shlex.split(line)) == 2, line
    message = " ".join(shown.getvalue().replace("│", "").split())
    assert fact in message, (line, message)
heavy = {{"torch", "transformers", "sentence_transformers", "datasets"}} & set(sys.modules)
assert not heavy, heavy
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60, cwd=tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.de", "a.en", "m", "p.tsv", "r.json"]


CLOSED = """
import sys
from st_xling.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize(
    ("words", "status", "shown"),
    [("train --list", 0, ""), ("train --list --json -", 2, "--json - writes to stdout, which is closed")],
)
def test_a_closed_stdout(words: str, status: int, shown: str) -> None:
    """``>&-`` ended in a traceback."""
    command = f"exec {sys.executable} -c '{CLOSED}' {words} >&-"
    process = subprocess.run(["sh", "-c", command], capture_output=True, text=True)
    assert (process.returncode, process.stdout) == (status, "")
    assert shown in process.stderr
    assert "Traceback" not in process.stderr
    both_closed = subprocess.run(["sh", "-c", f"{command} 2>&-"], capture_output=True, text=True)
    assert both_closed.returncode == status


def test_options_that_apply_are_taken(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``--print`` takes a recipe, ``--lora-keep`` may stand with ``--lora``, ``auto`` with ``--calibrate``."""
    assert main(["train", "tr", "--print"]) == 0
    capsys.readouterr()
    for line in (
        "train tr --model absent-model --data x.tsv --out o --lora --lora-keep",
        "mine a b --out o --model absent-model --calibrate g --threshold auto --target-precision 0.9",
        "push absent user/pairs --license mit",
    ):
        assert main(line.split()) == 2
        message = capsys.readouterr().err
        assert "appl" not in message
        assert "cannot be used" not in message


def test_a_data_set_has_the_languages_of_its_results(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``mine`` knew both languages, and ``push`` asked for them."""
    pairs = tmp_path / "pairs.tsv"
    results = tmp_path / "mine.json"
    pairs.write_text("Der Hund schläft.\tThe dog sleeps.\nEs regnet.\tIt rains.\n", encoding="utf-8")
    facts = {"pairs": 2, "rejected": {}, "source_language": "de", "target_language": "en"}
    results.write_text(json.dumps({"mine": facts, "signature": "mine|model:m|st-xling:0.1.0"}), encoding="utf-8")
    words = ["push", str(pairs), "user/pairs", "--license", "mit", "--dry-run"]
    assert main([*words, "--results", str(results)]) == 0
    assert "# German–English sentence pairs" in capsys.readouterr().out
    assert main(words) == 2
    assert "add --source-language and --target-language" in capsys.readouterr().err


def test_languages_are_checked_before_the_model_is_loaded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``--languages deu,xyz`` was told after ten seconds of loading, with the name of a table in Python."""
    (tmp_path / "m").mkdir()  # nothing that could be loaded
    for task in ("tatoeba", "xsim"):
        assert main(["evaluate", task, str(tmp_path / "m"), "--data", "phrasebook:de", "--languages", "deu,xyz"]) == 2
        assert "languages must be among the 112 of Tatoeba's test sets" in capsys.readouterr().err
