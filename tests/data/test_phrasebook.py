"""The embedded corpus: sizes, splits and alignments of its rows, true gold pairs and answers, seeds, errors."""

import hashlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from pyarrow import BufferReader
from pyarrow.parquet import ParquetFile

from st_xling.data import phrasebook
from st_xling.data.phrasebook import (
    LANGUAGES,
    SPLITS,
    mining_phrases,
    parallel_phrases,
    phrase_passages,
    phrase_sentences,
)

FOLDER = Path(phrasebook.__file__).parent
SENTENCES = {"train": 15_000, "dev": 3_000, "test": 3_000}
PASSAGES = {"train": 2_400, "dev": 600, "test": 600}


def test_the_data_card_describes_the_file() -> None:
    card = (FOLDER / "README.md").read_text(encoding="utf-8")
    for split in SPLITS:
        assert f"| `{split}` | {SENTENCES[split]:,} | {PASSAGES[split]:,} |" in card
        sizes = [len(phrasebook._rows_of_split(kind, split)) for kind in ("sentence", "question", "passage")]
        assert sizes == [SENTENCES[split], PASSAGES[split], PASSAGES[split]]
    columns = ParquetFile(FOLDER / "phrases.parquet").schema.names
    assert columns == ["split", "kind", *LANGUAGES, *(f"{language}_slots" for language in LANGUAGES)]
    assert set(columns) - set(re.findall(r"`(\w+)`", card)) <= {f"{language}_slots" for language in LANGUAGES[1:-1]}


def test_every_text_is_as_it_was() -> None:
    """That no text is twice or in two splits, and that each question has one answer, was tested where it was made.

    Any change of a text or a slot is a change of the corpus' version.
    """
    digest = hashlib.sha256()
    for column in ParquetFile(FOLDER / "phrases.parquet").schema.names:
        digest.update("\n".join(map(str, [column, *phrasebook._column(column)])).encode())
    assert digest.hexdigest()[:16] == "205621f7d1fdb0c8"


def test_alignment_follows_the_words() -> None:
    """Word order differs, ``hat … verkauft`` and ``卖给 了`` answer ``sold``, and a classifier has no partner."""
    for language, expected in {
        "de": ["Er He", "hat sold", "meinem my", "Vater father.", "ein a", "Auto car", "verkauft. sold"],
        "zh": ["他 He", "卖给 sold", "了 sold", "我 my", "爸爸 father.", "一 a", "汽车 car"],
    }.items():
        row = parallel_phrases(language, "en", size=12)[11]
        pairs = [f"{row['source_tokens'][i]} {row['target_tokens'][j]}" for i, j in row["alignment"]]
        assert pairs == expected


def test_rows_of_a_seed_are_parallel_in_all_languages_and_begin_alike() -> None:
    large = parallel_phrases("de", "en", size=300, seed=4)
    assert parallel_phrases("de", "en", size=50, seed=4).to_list() == large.select(range(50)).to_list()
    assert large["source"][:] == phrase_sentences("de", size=300, seed=4)
    assert parallel_phrases("zh", "en", size=300, seed=4)["target"][:] == large["target"][:]


def test_alignment_is_valid() -> None:
    rows = parallel_phrases("zh", "fr", size=300).to_list()
    back = parallel_phrases("fr", "zh", size=300)["alignment"][:]
    for row, reverse in zip(rows, back):
        assert row["alignment"] == sorted(row["alignment"]) == sorted([j, i] for i, j in reverse) != []
        assert row["source"] == "".join(row["source_tokens"]) and row["target"] == " ".join(row["target_tokens"])


def test_same_rows_in_another_process() -> None:
    call = "str(phrase_sentences('vi', split='test', size=40, seed=3)) + repr(mining_phrases(size=40, gold=9, seed=3))"
    code = (
        f"from st_xling.data.phrasebook import phrase_sentences, mining_phrases; print({call})\n"
        "import sys; assert not {'datasets', 'torch'} & sys.modules.keys(), 'importing and drawing are cheap'"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "1"}
    finished = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True, encoding="utf-8"
    )
    assert finished.stdout == f"{eval(call)}\n"


def test_no_thread_of_arrow_reads_a_python_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three commands in a hundred that drew sentences ended by an abort, after their output was written.

    Arrow's threads read the open Python file ahead and waited for the interpreter, which was gone.
    """
    read = []

    class Noted(ParquetFile):
        def __init__(self, source: object) -> None:
            read.append(source)
            super().__init__(source)

    monkeypatch.setattr("pyarrow.parquet.ParquetFile", Noted)
    phrasebook._column.cache_clear()
    assert phrase_sentences("en", size=1) and read
    assert all(isinstance(source, BufferReader) for source in read)


@pytest.mark.parametrize("split", SPLITS)
def test_seeds_draw_other_sentences(split: str) -> None:
    """Up to half of a split with seed 0 and with another seed have none in common"""
    half = SENTENCES[split] // 2
    first, second, third = (phrase_sentences("en", split=split, size=half, seed=seed) for seed in (0, 1, 2))
    assert not set(first) & set(second) and second != third and sorted(second) == sorted(third)


def test_mining_set_tells_the_truth() -> None:
    size, gold, seed = 400, 60, 7
    corpora = mining_phrases("fr", "zh", size=size, gold=gold, seed=seed)
    drawn = parallel_phrases("fr", "zh", split="test", size=2 * size - gold, seed=seed)
    translation = dict(zip(drawn["source"], drawn["target"]))
    assert len(set(corpora.source)) == len(set(corpora.target)) == size
    target_index = {text: index for index, text in enumerate(corpora.target)}
    pairs = [
        (i, target_index[translation[text]])
        for i, text in enumerate(corpora.source)
        if translation[text] in target_index
    ]
    assert pairs == corpora.gold and len(pairs) == gold and [i for i, _ in pairs] != [j for _, j in pairs]
    assert mining_phrases(size=5, gold=0).gold == [] and len(mining_phrases(size=5, gold=5).gold) == 5


def test_passages_of_a_prefix_a_seed_and_a_choice_of_languages() -> None:
    small, large = (phrase_passages(["de"], split="test", size=size) for size in (5, 20))
    assert large.passages["de"][:5] == small.passages["de"] and large.ids[:5] == small.ids
    other = phrase_passages(["de", "zh"], split="test", size=300, seed=1)
    assert not set(other.ids) & set(small.ids) and not set(other.passages["de"]) & set(small.passages["de"])
    assert phrase_passages(["fr", "de"], split="test", size=5).passages["de"] == small.passages["de"]


@pytest.mark.parametrize(
    ("call", "facts"),
    [
        (lambda: parallel_phrases("de", "english"), "got 'english'"),
        (lambda: parallel_phrases("de", "en", split="valid"), "train, dev, test: got 'valid'"),
        (lambda: phrase_sentences("en", size=15_001), "train .* 15000 .*size=15001"),
        (lambda: mining_phrases(size=10, gold=11), "gold=11 for size=10"),
        (lambda: phrase_passages(["de"], split="dev", size=601), "dev .* 600 .*size=601"),
    ],
)
def test_errors_name_what_came(call, facts: str) -> None:
    with pytest.raises(ValueError, match=facts):
        call()
