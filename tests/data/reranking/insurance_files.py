"""InsuranceQA v2 and its Chinese translation in the published layouts, four questions of them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

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
    lines = [f"life\t{encoded(text)}\t{' '.join(truths)}\t{' '.join(found)}\n" for text, truths, found in rows]
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
