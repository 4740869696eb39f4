"""Two-stage mining by full mining: time against the pairs that are kept, for growing shares of embedded sentences.

Text: the test split of the mining sets of the folder that ``ST_XLING_DATA`` names and BUCC 2018's zh-en sample, or
``--source``, ``--target`` and ``--gold`` (a line ``source line TAB target line``, counted from 0, a translation).
Encoder: ``--model``, else that of ``ST_XLING_E5``. First stage: ``--static``, one or more static encoders, which
``st-xling train static`` makes.

Every sentence is embedded once, by the full run, which is timed; in two stages its vector is taken from there, and its
part of the time, by its characters, is added to what was spent on all else. With ``--vectors SOURCE TARGET`` (``.npy``)
and ``--encode-seconds`` the full run does not embed either. ``--points FILE`` saves the curve as JSON.
"""

import json
import math
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sentence_transformers import SentenceTransformer

from tests.benchmarks.measure import Ratio, Run, Skipped, data_folder, encoder_folder, log, main

SETS = ("de-en", "fr-en", "ru-en", "zh-en", "bucc2018")


class RecordingEncoder(SentenceTransformer):
    """Encodes each text once, and remembers its vector and the seconds that it took."""

    run: Run
    vectors: dict[str, np.ndarray]
    seconds: dict[str, float]
    charged: float

    def encode(self, sentences: Any, **options: Any) -> Any:
        new = [text for text in sentences if text not in self.vectors]
        if new:
            encoded: list[np.ndarray] = []
            spent = self.run.seconds(lambda: encoded.extend(super(RecordingEncoder, self).encode(new, **options)))
            self.remember(new, encoded, spent)
        self.charged += sum(self.seconds[text] for text in sentences)
        return np.stack([self.vectors[text] for text in sentences])

    def remember(self, texts: list[str], vectors: Any, seconds: float) -> None:
        """Remember vectors, and divide the seconds that they took by characters."""
        characters = sum(map(len, texts))
        for text, vector in zip(texts, vectors):
            self.vectors[text] = vector
            self.seconds[text] = seconds * len(text) / characters


@dataclass
class Point:
    """A run.

    Attributes:
        name: Text.
        share: Share of the sentences to embed; 1 for the full run.
        embedded: Share of the sentences that were embedded, the background included.
        seconds: Of all, embedding included.
        pairs: Number of pairs.
        kept: Share of the pairs of the full run.
        right_kept: Share of those of them that are gold pairs.
        estimated: Share of the pairs that the run says it keeps; NaN if it does not.
        precision: Of gold pairs.
        recall: Of gold pairs.
        f1: Of gold pairs.
        signature: Of the run.
    """

    name: str
    share: float
    embedded: float
    seconds: float
    pairs: int
    kept: float
    right_kept: float
    estimated: float
    precision: float
    recall: float
    f1: float
    signature: str


def read(run: Run, name: str) -> tuple[list[str], list[str], set[tuple[str, str]]]:
    """Return source, target, and pairs of lines, counted from 1, that are translations."""
    from st_xling.data import read_bucc
    from st_xling.data.phrasebook import mining_phrases

    if run.quick:
        phrases = mining_phrases("de", "en", size=300, gold=60)
        return phrases.source, phrases.target, {(str(source + 1), str(target + 1)) for source, target in phrases.gold}
    if name == "bucc2018":
        corpus = read_bucc(data_folder() / "bucc2018", "zh-en", "sample")
    else:
        corpus = read_bucc(data_folder() / "mining", name, "test")
    source_rows = {sentence_id: str(row) for row, sentence_id in enumerate(corpus.source_ids, 1)}
    target_rows = {sentence_id: str(row) for row, sentence_id in enumerate(corpus.target_ids, 1)}
    gold = {(source_rows[source], target_rows[target]) for source, target in corpus.gold or []}
    return corpus.source, corpus.target, gold


def mined(path: Path) -> set[tuple[str, str]]:
    """Ids of the pairs of a file; of equal sentences the first ones."""
    from st_xling.mining import tsv_cells

    pairs = set()
    for line in path.read_text(encoding="utf-8").split("\n")[1:-1]:
        _, source, target, *_ = tsv_cells(line)
        pairs.add((source.split(",")[0], target.split(",")[0]))
    return pairs


def mine_in_stages(
    run: Run,
    name: str,
    texts: tuple[Path, Path],
    gold: set[tuple[str, str]],
    encoder: RecordingEncoder,
    statics: list[str],
    shares: list[float],
    prompt: str | None,
) -> Iterator[Point]:
    """Mine all sentences, then in two stages with each share."""
    from st_xling.mining import EncodingOptions, FirstStageOptions, SearchOptions, mine_texts

    full: set[tuple[str, str]] = set()
    out = texts[0].with_name("pairs.tsv")
    for share in [1.0, *shares]:
        first_stage = None if share == 1 else FirstStageOptions(model=statics, share=share)
        encoder.charged = 0.0
        encoded_before = sum(encoder.seconds.values())
        started = run.clock()
        report = mine_texts(
            *texts,
            out,
            model=encoder,
            first_stage=first_stage,
            threshold="estimated",
            search=SearchOptions(method="auto"),
            encoding=EncodingOptions(prompt=prompt, device="cpu"),
        )
        seconds = run.clock() - started
        # What was embedded now is in both; what was remembered is charged.
        seconds += encoder.charged - (sum(encoder.seconds.values()) - encoded_before)
        pairs = mined(out)
        full = full or pairs
        correct = len(pairs & gold)
        stage = report.first_stage
        yield Point(
            name=name,
            share=share,
            embedded=1.0 if stage is None else stage.share,
            seconds=seconds,
            pairs=len(pairs),
            kept=len(pairs & full) / max(1, len(full)),
            right_kept=len(pairs & full & gold) / max(1, len(full & gold)),
            estimated=math.nan if stage is None or stage.recall is None else stage.recall,
            precision=correct / max(1, len(pairs)),
            recall=correct / max(1, len(gold)),
            f1=2 * correct / max(1, len(pairs) + len(gold)),
            signature=report.signature,
        )


def measure(
    run: Run,
    *,
    sets: tuple[str, ...] = SETS,
    static: tuple[str, ...] = (),
    shares: tuple[float, ...] = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4),
    model: str | None = None,
    prompt: str | None = "query: ",
    dtype: str = "float32",
    source: str | None = None,
    target: str | None = None,
    gold: str | None = None,
    vectors: tuple[str, ...] = (),
    encode_seconds: float = 0.0,
    points: str | None = None,
) -> Iterator[Ratio]:
    import torch

    folder = encoder_folder(model)
    if not static:
        raise Skipped("name a static encoder (--static), such as one of st-xling train static")
    encoder = RecordingEncoder(folder, device="cpu", model_kwargs={"dtype": getattr(torch, dtype)})
    encoder.run = run
    encoder.charged = 0.0
    measured: list[Point] = []
    for name in ["own"] if source else sets:
        encoder.vectors = {}
        encoder.seconds = {}
        with tempfile.TemporaryDirectory() as temporary:
            texts = (Path(temporary) / "source", Path(temporary) / "target")
            if source:
                assert target and gold
                sides = [Path(path).read_text(encoding="utf-8").split("\n")[:-1] for path in (source, target)]
                rows = [line.split("\t") for line in Path(gold).read_text(encoding="utf-8").split("\n")[:-1]]
                translations = {(str(int(row[0]) + 1), str(int(row[1]) + 1)) for row in rows}
            else:
                source_lines, target_lines, translations = read(run, name)
                sides = [source_lines, target_lines]
            for path, lines in zip(texts, sides):
                path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
            if vectors:
                matrix = np.concatenate([np.load(path) for path in vectors]).astype(np.float32)
                encoder.remember([*sides[0], *sides[1]], matrix, encode_seconds)
            for point in mine_in_stages(run, name, texts, translations, encoder, [*static], [*shares], prompt):
                measured.append(point)
                log(json.dumps(asdict(point)))
        full, *others = [point for point in measured if point.name == name]
        for point in others:
            note = (
                f"{point.embedded:.1%} embedded, {point.kept:.1%} of the pairs kept (estimated {point.estimated:.1%}), "
                f"{point.right_kept:.1%} of the right ones, F1 {point.f1:.3f} by {full.f1:.3f}, "
                f"recall {point.recall:.3f} by {full.recall:.3f}"
            )
            yield Ratio(
                f"{name}, {point.share:.0%} of the sentences: time", "full run", point.seconds / full.seconds, note=note
            )
    if points:
        Path(points).write_text(json.dumps([asdict(point) for point in measured], indent=1), encoding="utf-8")


if __name__ == "__main__":
    main(measure, quick={"sets": ("de-en",), "shares": (0.3,)})
