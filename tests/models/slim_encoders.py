"""Small encoders over tokenizers of each kind, trained on five languages of the phrasebook."""

import copy
import json
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import AutoConfig, AutoModel, BertTokenizer, PreTrainedTokenizerFast, XLMRobertaTokenizer

from st_xling.data.phrasebook import parallel_phrases
from st_xling.models import load_encoder, tiny_encoder

KINDS = ("wordpiece", "unigram", "byte-level", "byte-fallback", "tiny")
_ROBERTA = {"bos_token": "<s>", "eos_token": "</s>", "cls_token": "<s>", "sep_token": "</s>"}
_ROBERTA |= {"pad_token": "<pad>", "unk_token": "<unk>", "mask_token": "<mask>"}
_ORDER = ["<s>", "<pad>", "</s>", "<unk>"]
SHAPE: dict[str, Any] = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
SHAPE |= {"max_position_embeddings": 130}


@lru_cache(maxsize=1)
def phrases() -> dict[str, list[str]]:
    """Sentences by language."""
    texts_by_language: dict[str, list[str]] = {}
    for code in ("de", "fr", "vi", "zh"):
        rows = parallel_phrases(code, "en", size=150)
        texts_by_language[code] = list(rows["source"])
        texts_by_language["en"] = list(rows["target"])
    return texts_by_language


def german_english() -> list[str]:
    return [*phrases()["de"], *phrases()["en"]]


def everything() -> list[str]:
    return [text for texts in phrases().values() for text in texts]


@lru_cache(maxsize=8)
def _made(kind: str) -> SentenceTransformer:
    if kind == "tiny":
        return tiny_encoder(everything(), vocabulary=600, hidden_size=16, heads=2, dropout=0.0).to("cpu")
    makers = {"wordpiece": _wordpiece, "unigram": _unigram, "byte-level": _byte_level, "byte-fallback": _byte_fallback}
    return over(makers[kind]())


def encoder(kind: str) -> SentenceTransformer:
    """One of :data:`KINDS`, a copy of its own."""
    return copy.deepcopy(_made(kind))


def over(tokenizer: Any) -> SentenceTransformer:
    """An encoder with random weights over a tokenizer; a RoBERTa if that has ``<pad>``."""
    config = AutoConfig.for_model("xlm-roberta" if tokenizer.pad_token == "<pad>" else "bert", **SHAPE)
    config.vocab_size = len(tokenizer) + 7  # as mE5 has rows that no token owns
    for name in ("pad_token_id", "bos_token_id", "eos_token_id"):
        setattr(config, name, getattr(tokenizer, name))
    torch.manual_seed(0)
    core = AutoModel.from_config(config)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "core"
        core.save_pretrained(path)
        tokenizer.model_max_length = 128
        tokenizer.save_pretrained(path)
        return load_encoder(str(path), device="cpu").eval()


def _wordpiece() -> Any:
    core = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    core.normalizer = normalizers.BertNormalizer(lowercase=False, strip_accents=False)
    core.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[unused1]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    core.train_from_iterator(everything(), trainers.WordPieceTrainer(vocab_size=900, special_tokens=special))
    return BertTokenizer(vocab=core.get_vocab(with_added_tokens=True), do_lower_case=False, strip_accents=False)


def _unigram() -> Any:
    core = Tokenizer(models.Unigram())
    core.pre_tokenizer = pre_tokenizers.Metaspace()
    core.train_from_iterator(
        everything(), trainers.UnigramTrainer(vocab_size=900, special_tokens=_ORDER, unk_token="<unk>")
    )
    pieces = [(piece, score) for piece, score in json.loads(core.to_str())["model"]["vocab"]]
    # As in XLM-R, the mask stands behind all pieces.
    return XLMRobertaTokenizer(vocab=[*pieces, ("<mask>", 0.0)])


def _byte_level() -> Any:
    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=900, special_tokens=[*_ORDER, "<mask>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    core.train_from_iterator(everything(), trainer)
    core.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    made = PreTrainedTokenizerFast(tokenizer_object=core, model_input_names=["input_ids", "attention_mask"], **_ROBERTA)
    made.add_tokens(["<query>"])  # an id behind all pieces
    return made


def _byte_fallback() -> Any:
    core = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    core.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    core.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Replace("▁", " ")])
    bytes_ = [f"<0x{number:02X}>" for number in range(256)]
    trainer = trainers.BpeTrainer(vocab_size=1400, special_tokens=[*_ORDER, "<mask>", *bytes_])
    core.train_from_iterator(everything(), trainer)
    content = json.loads(core.to_str())
    # Bytes are pieces of the model, not added tokens.
    content["added_tokens"] = [token for token in content["added_tokens"] if not token["content"].startswith("<0x")]
    core = Tokenizer.from_str(json.dumps(content))
    core.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    return PreTrainedTokenizerFast(tokenizer_object=core, model_input_names=["input_ids", "attention_mask"], **_ROBERTA)
