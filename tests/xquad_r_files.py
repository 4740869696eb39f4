"""A paragraph of XQuAD-R in two languages."""

import json
from pathlib import Path
from typing import Any

TEXTS = {
    "en": (["The cat sleeps.", "The dog eats.", "It rains."], ["Who sleeps?", "What falls?"]),
    "zh": (["猫在睡觉。", "狗在吃东西。", "下雨了。"], ["谁在睡觉？", "什么落下？"]),
}
SPANS = {"en": [(0, "cat"), (2, "rains")], "zh": [(0, "猫"), (2, "雨")]}


def write_xquad_r(folder: Path, language: str, **changes: Any) -> Path:
    """One paragraph of three sentences; Chinese without spaces between them."""
    sentences, questions = TEXTS[language]
    gap = "" if language == "zh" else " "
    context = gap.join(sentences)
    breaks = []
    for sentence in sentences:
        start = context.index(sentence)
        breaks.append([start, start + len(sentence)])
    qas = []
    for number, (question, (_, span)) in enumerate(zip(questions, SPANS[language])):
        answer = {"text": span, "answer_start": context.index(span)}
        qas.append({"id": f"q{number}", "question": question, "answers": [answer]})
    paragraph = {"context": context, "sentence_breaks": breaks, "sentences": sentences, "qas": qas} | changes
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{language}.json"
    path.write_text(json.dumps({"data": [{"title": "t", "paragraphs": [paragraph]}]}), encoding="utf-8")
    return path
