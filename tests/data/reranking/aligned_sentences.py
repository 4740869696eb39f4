"""Small aligned sets by hand, in five scripts, and files in the form of SQuAD and of InsuranceQA."""

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from st_xling.data.reranking.pairs import AlignedPairs

QUERIES = {
    "en": ["Where does the cat sit?", "Who bought books?", "When did it rain?", "What is red?"],
    "zh": ["猫坐在哪里？", "谁买了书？", "什么时候下的雨？", "什么是红色的？"],
    "ar": ["أين تجلس القطة؟", "من اشترى الكتب؟", "متى هطل المطر؟", "ما هو الأحمر؟"],
    "th": ["แมวนั่งที่ไหน", "ใครซื้อหนังสือ", "ฝนตกเมื่อไร", "อะไรสีแดง"],
    "fr": ["Où est assis le chat ?", "Qui a acheté des livres ?", "Quand a-t-il plu ?", "Qu’est-ce qui est rouge ?"],
}
PASSAGES = {
    "en": ["The cat sits on the roof.", "I bought three old books 🙂", "It rained yesterday.", "The apples are red."],
    "zh": ["猫坐在屋顶上。", "我买了三本旧书🙂", "昨天下雨了。", "苹果是红色的。"],
    "ar": ["القطة تجلس على السطح.", "اشتريت ثلاثة كتب قديمة 🙂", "أمطرت أمس.", "التفاح أحمر."],
    "th": ["แมวนั่งอยู่บนหลังคา", "ฉันซื้อหนังสือเก่าสามเล่ม 🙂", "เมื่อวานฝนตก", "แอปเปิลสีแดง"],
    "fr": [
        "Le chat est sur le toit.",
        "J’ai acheté trois vieux livres 🙂",
        "Il a plu hier.",
        "Les pommes sont rouges.",
    ],
}


def by_hand(*languages: str) -> AlignedPairs:
    """Four relevant pairs in some of the five languages; by default in all."""
    codes = languages or tuple(QUERIES)
    return AlignedPairs({code: QUERIES[code] for code in codes}, {code: PASSAGES[code] for code in codes}, [1] * 4)


def numbered(rows: int, *languages: str, labels: Sequence[int] | None = None) -> AlignedPairs:
    """Pairs whose texts say row and language: ``q3 zh``, ``p3 zh``."""
    return AlignedPairs(
        {code: [f"q{row} {code}" for row in range(rows)] for code in languages},
        {code: [f"p{row} {code}" for row in range(rows)] for code in languages},
        [1] * rows if labels is None else labels,
    )


def squad(path: Path, articles: Sequence[tuple[str, Sequence[tuple[str, Sequence[dict[str, Any]]]]]]) -> Path:
    """Write ``(title, [(context, questions)])`` in SQuAD's form."""
    data = [
        {"title": title, "paragraphs": [{"context": context, "qas": list(qas)} for context, qas in paragraphs]}
        for title, paragraphs in articles
    ]
    path.write_text(json.dumps({"version": "1.1", "data": data}, ensure_ascii=False), encoding="utf-8")
    return path


def question(identity: str, text: str, answer: str) -> dict[str, Any]:
    """A question of SQuAD's form with one answer."""
    return {"id": identity, "question": text, "answers": [{"text": answer, "answer_start": 0}]}


ENGLISH = ["Does auto insurance cover hail ?", "What is term life ?", "Who needs renters insurance ?", "Why me ?"]
CHINESE = ["汽车保险是否覆盖冰雹？", "什么是定期人寿保险？", "谁需要租房保险？", "为什么是我？"]
TRUTHS = [["11"], ["12", "13"], ["19"], ["14"]]
POOLS = [["15", "11", "16"], ["13", "17", "12", "18"], ["11", "12", "13"], ["18", "14"]]
"""No pool of the third question holds its ground truth, 19."""
ANSWERS = {str(label): f"answer {label} , in words" for label in range(11, 20)}


def write_v2(folder: Path, *, part: str = "train", pool: int = 500) -> Path:
    """The English release: every word by its index in a vocabulary."""
    words = sorted({word for text in [*ENGLISH, *ANSWERS.values()] for word in text.split()})
    index = {word: f"idx_{number}" for number, word in enumerate(words)}

    def encoded(text: str) -> str:
        return " ".join(index[word] for word in text.split())

    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocabulary").write_text("".join(f"{index[word]}\t{word}\n" for word in words), encoding="utf-8")
    answers = "".join(f"{label}\t{encoded(text)}\n" for label, text in ANSWERS.items())
    (folder / "InsuranceQA.label2answer.token.encoded.gz").write_bytes(gzip.compress(answers.encode()))
    rows = zip(ENGLISH, TRUTHS, POOLS)
    lines = [
        f"life\t{encoded(text)}\t{' '.join(truths)}\t{' '.join(candidates)}\n" for text, truths, candidates in rows
    ]
    name = f"InsuranceQA.question.anslabel.token.{pool}.pool.solr.{part}.encoded"
    (folder / name).write_text("".join(lines), encoding="utf-8")
    return folder


def write_translation(folder: Path, *, part: str = "train") -> Path:
    """``insuranceqa-corpus-zh``: both languages beside each other."""
    (folder / "pool").mkdir(parents=True, exist_ok=True)
    rows: dict[str, Any] = {
        str(row): {"zh": zh, "en": en, "domain": "life", "answers": truths, "negatives": ["15", "16", "17", "18"]}
        for row, (zh, en, truths) in enumerate(zip(CHINESE, ENGLISH, TRUTHS))
    }
    answers = {label: {"zh": f"第{label}号回答", "en": text} for label, text in ANSWERS.items()}
    for name, content in ((part, rows), ("answers", answers)):
        path = folder / "pool" / f"{name}.json.gz"
        path.write_bytes(gzip.compress(json.dumps(content, ensure_ascii=False).encode()))
    return folder
