"""The files that the examples of README and ``--help`` name, small, with text of the phrasebook.

Languages that it does not have are stood in for by one that it has, so that a file in Finnish reads as Spanish: an
example shows how files are given, and what is learnt from them is other tests' business.
"""

import shutil
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sentence_transformers import SentenceTransformer

from st_xling.data.phrasebook import PhrasePassages, mining_phrases, parallel_phrases, phrase_passages
from st_xling.evaluation.alignment import format_links
from st_xling.evaluation.tatoeba import TATOEBA_GROUPS
from st_xling.losses import TranslationRankingLoss
from st_xling.models import tiny_encoder
from st_xling.models.tiny import Architecture
from tests.data.reranking.aligned_sentences import question, squad, write_translation, write_v2
from tests.document_files import plain, write_docx, write_epub
from tests.modern_models import saved_start
from tests.retrieval_files import beir, json_lines, lines
from tests.training.transfer.sets import LABELS, pair_lines, treebank
from tests.xquad_r_files import write_xquad_r

STAND_IN = {"fi": "es", "ar": "vi", "ko": "zh", "sw": "es"}
PAIRS = QUESTIONS = 60  # more than a batch of retrievers' 48, in which no text may come twice
RECIPE = "name: mine\nlosses:\n  translation_ranking:\n    margin: 0.2\narguments:\n  per_device_train_batch_size: 16\n"
TAUGHT = {"bert-base-multilingual-cased", "intfloat/multilingual-e5-small"}
HUB_MODELS: dict[str, Architecture] = {
    "bert-base-multilingual-cased": "bert",
    "xlm-roberta-base": "xlm-roberta",
    "intfloat/multilingual-e5-small": "bert",
    "sentence-transformers/all-mpnet-base-v2": "bert",
}


def write_example_files(folder: Path) -> None:
    """All of them, under the names that the examples have."""
    (folder / "my-recipe.yaml").write_text(RECIPE, encoding="utf-8")
    write_parallel_text(folder)
    write_mining_text(folder)
    write_documents(folder)
    write_questions(folder)
    write_retrieval_sets(folder)
    write_classified(folder)
    write_hub_models(folder)


def pairs(source: str, target: str = "en", *, size: int = PAIRS, split: str = "train") -> list[tuple[str, str]]:
    rows = parallel_phrases(STAND_IN.get(source, source), target, size=size, split=split)
    return list(zip(rows["source"], rows["target"]))


def passages(*languages: str, size: int = 12) -> PhrasePassages:
    """Questions and passages, also of languages for which another one stands in."""
    stand_ins = {code: STAND_IN.get(code, code) for code in languages}
    phrases = phrase_passages(list(stand_ins.values()), split="test", size=size)
    return PhrasePassages(
        phrases.ids,
        {code: phrases.questions[stand_in] for code, stand_in in stand_ins.items()},
        {code: phrases.passages[stand_in] for code, stand_in in stand_ins.items()},
    )


def tsv(path: Path, rows: Sequence[tuple[str, str]]) -> None:
    lines(path, ["\t".join(row) for row in rows])


def write_parallel_text(folder: Path) -> None:
    for name, size in (("pairs.tsv", PAIRS), ("corpus.tsv", 80), ("crawl.tsv.gz", 80)):
        tsv(folder / name, pairs("de", size=size))
    for side, texts in zip(("de", "en"), zip(*pairs("de", size=80))):
        lines(folder / f"crawl.{side}.gz", texts)
    for name, split, language in (("gold.tsv", "train", "de"), ("dev.tsv", "dev", "zh"), ("test.tsv", "test", "de")):
        tsv(folder / name, pairs(language, split=split, size=30))
    tsv(folder / "new-pairs.tsv", pairs("de", split="dev"))
    lines(folder / "questions.txt", passages("en").questions["en"])
    gold = parallel_phrases("de", "en", size=30, split="test")["alignment"]
    lines(folder / "test.links", [format_links(links) for links in gold])
    for language in ("ar", "fi"):
        tsv(folder / f"{language}-en.tsv.gz", pairs(language))
    scores = [1.1 - 0.002 * row for row in range(PAIRS)]
    scored = [
        {"score": score, "source_ids": [str(row)], "target_ids": [str(row)], "source": source, "target": target}
        for row, (score, (source, target)) in enumerate(zip(scores, pairs("de")))
    ]
    json_lines(folder / "scored.jsonl.gz", scored)
    french = pairs("fr")
    json_lines(folder / "more.jsonl.gz", [{"fr": source, "en": target} for source, target in french])
    for side, texts in zip(("fr", "en"), zip(*pairs("fr", split="test"))):
        lines(folder / f"test.{side}", texts)
    for code in TATOEBA_GROUPS["xtreme36"]:
        language = "fr" if code == "fra" else "de"
        sides = zip(*pairs(language, split="test", size=8))
        for side, texts in zip((code, "eng"), sides):
            lines(folder / "tatoeba" / "v1" / f"tatoeba.{code}-eng.{side}", texts)
    random = np.random.default_rng(0)
    for side in ("de", "en"):  # vectors of the pairs
        np.save(folder / f"{side}.npy", random.standard_normal((PAIRS, 1024), dtype=np.float32))


def write_mining_text(folder: Path) -> None:
    news = mining_phrases("de", "en", split="test", size=60, gold=40)
    for language, texts in (("de", news.source), ("en", news.target)):
        for ending in ("", ".gz", ".txt.gz"):
            lines(folder / f"news.{language}{ending}", texts)
    splits = {"training": "dev", "test": "test", "sample": "test"}
    for corpus in ("mining", "bucc2018"):
        for language in ("de", "fr", "zh"):
            for split, drawn_from in splits.items():
                write_bucc(folder / corpus / f"{language}-en", language, split, drawn_from)
    source = folder / "bucc2018" / "zh-en" / "zh-en.training.zh"
    (folder / source.name).write_bytes(source.read_bytes())


def write_documents(folder: Path) -> None:
    """Documents with their translations, as single files and in folders, and gold groups of sentences."""
    for number, name in enumerate(("book", "news/1", "news/2")):
        texts = parallel_phrases("de", "fr", split="test", size=12, seed=number)
        for language, column in (("de", "source"), ("fr", "target")):
            path = folder / (f"{name}.{language}" if number == 0 else f"{name[:4]}/{language}/{name[-1]}.txt")
            path.parent.mkdir(parents=True, exist_ok=True)
            lines(path, texts[column])
    for language, column in (("de", "source"), ("fr", "target")):
        lines(folder / f"report.{language}.txt", [" ".join(texts[column][start : start + 4]) for start in (0, 4, 8)])
    write_files_of_people(folder, texts["source"], texts["target"])
    tsv(folder / "list.tsv", [("book.de", "book.fr"), ("news/de/1.txt", "news/fr/1.txt")])
    lines(folder / "book.gold", [f"[{row}]:[{row}]" for row in range(12)])


def write_files_of_people(folder: Path, german: Sequence[str], french: Sequence[str]) -> None:
    """Books, a report and subtitles of a text and its translation, and translations of a program."""
    for number in (1, 2):
        for language, texts in (("de", german), ("fr", french)):
            path = folder / "books" / language / f"{number}.{language}.epub"
            path.parent.mkdir(parents=True, exist_ok=True)
            write_epub(path, plain(*texts[number:]))
            write_epub(folder / f"book.{language}.epub", plain(*texts))
    write_docx(folder / "report.fr.docx", plain(*french))
    times = [f"00:00:{second:02}.000 --> 00:00:{second:02}.900" for second in range(len(german))]
    lines(folder / "film.de.srt", chain.from_iterable((time, text, "") for time, text in zip(times, german)))
    cues = chain.from_iterable((time, text, "") for time, text in zip(times, french))
    lines(folder / "film.fr.vtt", ["WEBVTT", "", *cues])

    messages = pairs("de")
    entries = chain.from_iterable((f'msgid "{english}"', f'msgstr "{text}"', "") for text, english in messages)
    lines(folder / "app.po", ['msgid ""', 'msgstr "Language: de\\n"', "", *entries])
    units = "".join(
        f"<unit id='{number}'><segment><source>{english}</source><target>{text}</target></segment></unit>"
        for number, (text, english) in enumerate(messages)
    )
    file = f'<xliff version="2.0" srcLang="en" trgLang="de"><file id="f">{units}</file></xliff>'
    (folder / "app.de.xlf").write_text(file, encoding="utf-8")


def write_bucc(folder: Path, language: str, split: str, drawn_from: str) -> None:
    phrases = mining_phrases(language, "en", split=drawn_from, size=40, gold=20)
    prefix = folder / f"{language}-en.{split}"
    for side, texts in ((language, phrases.source), ("en", phrases.target)):
        tsv(Path(f"{prefix}.{side}"), [(f"{side}-{row:09}", text) for row, text in enumerate(texts)])
    gold = [(f"{language}-{source:09}", f"en-{target:09}") for source, target in phrases.gold]
    tsv(Path(f"{prefix}.gold"), gold)


def write_questions(folder: Path) -> None:
    """Questions with passages: in SQuAD's form, as pairs, and for two stages of search."""
    phrases = passages("en", "zh", "de", size=QUESTIONS)
    for code in ("en", "zh"):
        rows = list(zip(phrases.ids, phrases.questions[code], phrases.passages[code]))
        paragraphs = [(passage, [question(name, query, passage[:4])]) for name, query, passage in rows]
        articles = [(f"article {start}", paragraphs[start : start + 2]) for start in range(0, QUESTIONS, 2)]
        squad(folder / f"xquad.{code}.json", articles)

    english = zip(phrases.questions["en"], phrases.passages["en"])
    json_lines(folder / "nq.jsonl", [{"query": query, "passage": passage} for query, passage in english])
    swahili = passages("sw", size=QUESTIONS).passages["sw"]
    json_lines(folder / "sw-passages.jsonl", text_rows(phrases.ids, swahili))

    query_ids = [f"q-{name}" for name in phrases.ids]
    queries = [row | {"language": "de"} for row in text_rows(query_ids, phrases.questions["de"])[:4]]
    answers = text_rows(phrases.ids, [*phrases.passages["en"][:12], *phrases.passages["zh"][12:]])
    json_lines(folder / "q.jsonl", queries)
    json_lines(folder / "p.jsonl", answers)
    tsv(folder / "q.tsv", [(row["id"], row["text"]) for row in queries])
    tsv(folder / "p.tsv.gz", [(row["id"], row["text"]) for row in answers])
    run = []
    for query in queries:
        run += [f"{query['id']} Q0 {name} {rank} {9 - rank} bm25" for rank, name in enumerate(phrases.ids[:6])]
    lines(folder / "bm25.trec", run)

    write_v2(folder / "insuranceQA" / "V2", part="test")
    write_translation(folder / "insuranceqa-corpus-zh", part="test")
    for code in ("en", "zh"):
        write_xquad_r(folder / "xquad-r", code)


def text_rows(ids: Sequence[str], texts: Sequence[str]) -> list[dict[str, str]]:
    return [{"id": name, "text": text} for name, text in zip(ids, texts)]


def write_retrieval_sets(folder: Path) -> None:
    """Retrieval sets in the layouts of Mr.TyDi, BEIR (that of MLQA's sets) and MIRACL."""
    for language, code in (("arabic", "ar"), ("finnish", "fi"), ("korean", "ko")):
        mrtydi = folder / f"mrtydi-v1.1-{language}"
        phrases = passages(code)
        json_lines(mrtydi / "collection" / "docs.jsonl", text_rows(phrases.ids, phrases.passages[code]))
        for split in ("dev", "test"):
            tsv(mrtydi / f"topic.{split}.tsv", list(zip(phrases.ids, phrases.questions[code])))
            lines(mrtydi / f"qrels.{split}.txt", [f"{name} Q0 {name} 1" for name in phrases.ids])

    phrases = passages("de", "zh", "en")
    queries = {code: dict(zip(phrases.ids, phrases.questions[code])) for code in ("de", "zh", "en")}
    relevant = [(name, name, 1) for name in phrases.ids]
    for set_name, code in (("mlqa-de", "de"), ("mlqa-zh", "zh"), ("mlqa-dev-zh", "zh")):
        beir(folder / set_name, dict(zip(phrases.ids, phrases.passages[code])), queries, relevant)

    miracl = folder / "miracl"
    phrases = passages("fi")
    json_lines(miracl / "miracl-corpus-v1.0-fi" / "docs-0.jsonl", text_rows(phrases.ids, phrases.passages["fi"]))
    topics = miracl / "miracl-v1.0-fi"
    tsv(topics / "topics" / "topics.miracl-v1.0-fi-dev.tsv", list(zip(phrases.ids, phrases.questions["fi"])))
    qrels = [f"{name}\tQ0\t{name}\t1" for name in phrases.ids]
    lines(topics / "qrels" / "qrels.miracl-v1.0-fi-dev.tsv", qrels)


def write_classified(folder: Path) -> None:
    """XNLI, PAWS-X and treebanks, as they are published; Arabic for any language but English and Thai."""
    spoken = {"en": "en", "de": "ar", "zh": "th", "fr": "th", "ar": "ar"}
    inference = {code: pair_lines(spoken[code], LABELS["xnli"]) for code in ("en", "de", "zh")}
    lines(folder / "multinli.tsv", inference["en"])
    keys = ("sentence1", "sentence2", "gold_label")
    json_lines(folder / "multinli.jsonl", [dict(zip(keys, row.split("\t"))) for row in inference["en"]])
    for code in ("de", "zh"):
        lines(folder / f"xnli.{code}.tsv", inference[code])
    rows = ["\t".join(["language", *keys])]
    for code in ("en", "de"):
        rows += [f"{code}\t{row}" for row in inference[code]]
    lines(folder / "xnli.test.tsv", rows)
    for code, name in (("en", "train"), ("de", "test_2k"), ("fr", "test_2k")):
        lines(folder / code / f"{name}.tsv", pair_lines(spoken[code], LABELS["pawsx"]))
    lines(folder / "en_ewt-ud-train.conllu", treebank("en"))
    lines(folder / "ar_padt-ud-test.conllu.gz", treebank("ar"))


def write_hub_models(folder: Path) -> None:
    """Tiny encoders instead of those of the Hub, without pooling as well; some of them are taught German."""
    phrases = passages("de", "zh", "en", size=QUESTIONS)
    texts: list[str] = []
    for code in ("de", "zh", "en"):
        texts += phrases.passages[code]
        texts += phrases.questions[code]
    for code in ("de", "fr", "vi"):
        texts += chain.from_iterable(pairs(code))
    for name, architecture in HUB_MODELS.items():
        model = tiny_encoder(
            texts,
            architecture=architecture,
            vocabulary=500,
            layers=2,
            hidden_size=32,
            heads=2,
            max_length=510,
            pooling="cls",
            dropout=0.0,
        )
        if name in TAUGHT:
            teach(model, pairs("de", size=400))
        transformer: Any = model[0]
        transformer.auto_model.save_pretrained(folder / name)
        transformer.tokenizer.save_pretrained(folder / name)
    shutil.copytree(saved_start("qwen3"), folder / "Qwen" / "Qwen3-Embedding-0.6B")


def teach(
    model: SentenceTransformer, text: Sequence[tuple[str, str]], *, steps: int = 60, batch_size: int = 50
) -> None:
    """Train until translations in this text are found, as ``mine --calibrate`` needs some that are."""
    loss = TranslationRankingLoss(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    for step in range(steps):
        start = step * batch_size % len(text)
        columns = [model.preprocess(list(side)) for side in zip(*text[start : start + batch_size])]
        optimizer.zero_grad()
        loss(columns, None).backward()
        optimizer.step()
