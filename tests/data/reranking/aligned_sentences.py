"""Small aligned sets by hand, in five scripts."""

from __future__ import annotations

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
