"""Small encoders of the architectures that people start from today, saved as folders of sentence-transformers.

Weights are random; configurations, tokenizers, modules and prompts have the shape of the published models': Qwen3
Embedding, EmbeddingGemma, mmBERT, multilingual E5 large, sentence-T5 and static embeddings. Tokenizers are trained on
three languages of the phrasebook.
"""

from __future__ import annotations

import atexit
import json
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Dense, Normalize, Transformer
from sentence_transformers.sentence_transformer.modules import Pooling, StaticEmbedding
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from torch import nn
from transformers import (
    AutoModelForMaskedLM,
    Gemma3TextConfig,
    Gemma3TextModel,
    ModernBertConfig,
    ModernBertModel,
    PreTrainedTokenizerFast,
    Qwen3Config,
    Qwen3Model,
    T5Config,
    T5EncoderModel,
    XLMRobertaConfig,
    XLMRobertaModel,
)

from st_xling.data.phrasebook import parallel_phrases

STARTS = ("qwen3", "embedding-gemma", "modernbert", "xlm-r-large", "t5", "static")

LONG = 32_768
WIDTH = 32
HEADS: dict[str, Any] = {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8}

QWEN_PROMPTS = {
    "query": "Instruct: Given a sentence, retrieve its translation\nQuery:",
    "document": "",
}
GEMMA_PROMPTS = {
    "query": "task: search result | query: ",
    "document": "title: none | text: ",
    "STS": "task: sentence similarity | query: ",
}
E5_PROMPTS = {"query": "query: ", "passage": "passage: "}

CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def modern_start(
    name: str, folder: Path, *, dtype: torch.dtype = torch.float32, head: bool = False, **options: Any
) -> Path:
    """Build one of :data:`STARTS`, save it to ``folder`` and return the folder.

    Args:
        name: Name of the model.
        folder: Folder to save it to.
        dtype: Type in which its weights are stored.
        head: Store the transformer with the head of its masked language model (ModernBERT, XLM-R), which
            sentence-transformers ignores.
        **options: Options of its builder.
    """
    builders: dict[str, Callable[..., SentenceTransformer]] = {
        "qwen3": qwen3,
        "embedding-gemma": embedding_gemma,
        "modernbert": modernbert,
        "xlm-r-large": xlm_r_large,
        "t5": t5,
        "static": static,
    }
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = builders[name](**options)
        model.to(dtype).save_pretrained(str(folder))
        if head:
            transformer: Any = model[0].auto_model
            masked_lm: Any = AutoModelForMaskedLM.from_config(transformer.config)
            prefix = masked_lm.base_model_prefix
            encoder = {f"{prefix}.{key}": tensor for key, tensor in transformer.state_dict().items()}
            masked_lm.load_state_dict(encoder, strict=False)
            masked_lm.to(dtype).save_pretrained(folder)
    return folder


@lru_cache(maxsize=32)
def saved_start(name: str, **options: Any) -> Path:
    """The folder of :func:`modern_start`, built once in a process and removed at its end: to be read, not written."""
    folder = TemporaryDirectory(prefix="modern-start-")
    atexit.register(folder.cleanup)
    return modern_start(name, Path(folder.name) / name, **options)


def qwen3(*, padding_side: str = "left", max_length: int = LONG) -> SentenceTransformer:
    """Qwen3 Embedding: a decoder, the state of the last token, which the tokenizer puts behind every text."""
    tokenizer = _qwen_tokenizer(padding_side=padding_side, model_max_length=max_length)
    config = Qwen3Config(
        vocab_size=len(tokenizer) + 11,  # rounded up, as that of the published models
        hidden_size=WIDTH,
        intermediate_size=2 * WIDTH,
        num_hidden_layers=3,
        max_position_embeddings=max_length,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        tie_word_embeddings=True,
        **HEADS,
    )
    modules = [_transformer(Qwen3Model(config), tokenizer), Pooling(WIDTH, "lasttoken"), Normalize()]
    return SentenceTransformer(modules=modules, device="cpu", prompts=dict(QWEN_PROMPTS))


def embedding_gemma(*, max_length: int = 2048) -> SentenceTransformer:
    """EmbeddingGemma: Gemma 3 that looks both ways, near and far by turns, and two dense layers behind the mean."""
    tokenizer = _gemma_tokenizer(model_max_length=max_length)
    config = Gemma3TextConfig(
        vocab_size=len(tokenizer),
        hidden_size=WIDTH,
        intermediate_size=2 * WIDTH,
        num_hidden_layers=3,
        layer_types=["sliding_attention", "sliding_attention", "full_attention"],
        sliding_window=16,
        use_bidirectional_attention=True,
        max_position_embeddings=max_length,
        query_pre_attn_scalar=8,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        **HEADS,
    )
    modules = [
        _transformer(Gemma3TextModel(config), tokenizer),
        Pooling(WIDTH, "mean"),
        Dense(WIDTH, 4 * WIDTH, bias=False, activation_function=nn.Identity()),
        Dense(4 * WIDTH, WIDTH, bias=False, activation_function=nn.Identity()),
        Normalize(),
    ]
    return SentenceTransformer(modules=modules, device="cpu", prompts=dict(GEMMA_PROMPTS))


def modernbert(*, max_length: int = 8192) -> SentenceTransformer:
    """mmBERT under a mean: ModernBERT with the tokenizer of Gemma."""
    tokenizer = _gemma_tokenizer(model_max_length=max_length)
    config = ModernBertConfig(
        vocab_size=len(tokenizer),
        hidden_size=WIDTH,
        intermediate_size=2 * WIDTH,
        num_hidden_layers=3,
        num_attention_heads=4,
        local_attention=16,
        global_attn_every_n_layers=3,
        max_position_embeddings=max_length,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        cls_token_id=tokenizer.bos_token_id,
        sep_token_id=tokenizer.eos_token_id,
    )
    modules = [_transformer(ModernBertModel(config), tokenizer), Pooling(WIDTH, "mean")]
    return SentenceTransformer(modules=modules, device="cpu")


def xlm_r_large() -> SentenceTransformer:
    """Multilingual E5 large: 24 layers, positions from 2 to 513, and prompts."""
    tokenizer = _xlm_r_tokenizer()
    config = XLMRobertaConfig(
        vocab_size=len(tokenizer),
        hidden_size=WIDTH,
        intermediate_size=2 * WIDTH,
        num_hidden_layers=24,
        num_attention_heads=4,
        max_position_embeddings=514,
        type_vocab_size=1,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    modules = [_transformer(XLMRobertaModel(config), tokenizer), Pooling(WIDTH, "mean"), Normalize()]
    return SentenceTransformer(modules=modules, device="cpu", prompts=dict(E5_PROMPTS))


def t5() -> SentenceTransformer:
    """Sentence-T5: the encoder, whose first layer has the distances of all, a dense layer, unit length."""
    tokenizer = _t5_tokenizer()
    config = T5Config(
        vocab_size=len(tokenizer),
        d_model=WIDTH,
        d_kv=8,
        d_ff=2 * WIDTH,
        num_layers=3,
        num_heads=4,
        feed_forward_proj="gated-gelu",
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        decoder_start_token_id=tokenizer.pad_token_id,
    )
    modules = [
        _transformer(T5EncoderModel(config), tokenizer),
        Pooling(WIDTH, "mean"),
        Dense(WIDTH, WIDTH, bias=False, activation_function=nn.Identity()),
        Normalize(),
    ]
    return SentenceTransformer(modules=modules, device="cpu")


def static() -> SentenceTransformer:
    """A bag of static embeddings: one vector a token, and nothing else."""
    bag = StaticEmbedding(_gemma_tokenizer().backend_tokenizer, embedding_dim=WIDTH)
    return SentenceTransformer(modules=[bag], device="cpu")


@lru_cache(maxsize=1)
def texts() -> tuple[str, ...]:
    """Sentences of three languages."""
    sentences: list[str] = []
    for code in ("de", "zh"):
        phrases = parallel_phrases(code, "en", size=200)
        sentences += phrases["source"]
        sentences += phrases["target"]
    return tuple(sentences)


def _transformer(model: nn.Module, tokenizer: Any) -> Transformer:
    """A module of sentence-transformers that reads plain text, as those of the published models do.

    Of a bare decoder with a chat template, sentence-transformers 6 would read every text as a message of a chat.
    """
    with TemporaryDirectory() as folder:
        model.save_pretrained(folder)  # type: ignore[operator]
        tokenizer.save_pretrained(folder)
        text = {"text": {"method": "forward", "method_output_name": "last_hidden_state"}}
        return Transformer(folder, modality_config=text, module_output_name="token_embeddings")  # type: ignore[arg-type]


@lru_cache(maxsize=1)
def _qwen_core() -> str:
    core = Tokenizer(models.BPE())
    core.normalizer = normalizers.NFC()
    words = r"'s|'t|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    core.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(words), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    core.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    core.train_from_iterator(
        texts(), trainers.BpeTrainer(vocab_size=420, initial_alphabet=alphabet, show_progress=False)
    )
    # Behind the pieces, as in the published tokenizers.
    core.add_special_tokens([AddedToken(token) for token in ("<|endoftext|>", "<|im_start|>", "<|im_end|>")])
    end = "<|endoftext|>"
    core.post_processor = processors.TemplateProcessing(
        single=f"$A {end}", pair=f"$A $B {end}", special_tokens=[(end, core.token_to_id(end))]
    )
    return core.to_str()


def _qwen_tokenizer(*, padding_side: str, model_max_length: int) -> Any:
    return PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer.from_str(_qwen_core()),
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        chat_template=CHAT_TEMPLATE,
        model_input_names=["input_ids", "attention_mask"],
        padding_side=padding_side,
        model_max_length=model_max_length,
    )


@lru_cache(maxsize=1)
def _gemma_core() -> str:
    special = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>"]
    core = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    core.normalizer = normalizers.Replace(" ", "▁")
    core.pre_tokenizer = pre_tokenizers.Split(" ", behavior="merged_with_previous")
    core.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    letters = sorted(set("".join(texts())) - {" "})
    # Words as the trainer shall see them: the published pieces do not go beyond a word either.
    words = [f"▁{word}" for word in " ".join(texts()).split()]
    core.train_from_iterator(
        words,
        trainers.BpeTrainer(
            vocab_size=900,
            special_tokens=[*special, *(f"<0x{byte:02X}>" for byte in range(256))],
            initial_alphabet=letters,
            show_progress=False,
        ),
    )
    # Bytes are special only to the trainer, which must not split them; here they are ordinary pieces.
    content = json.loads(core.to_str())
    content["added_tokens"] = [token for token in content["added_tokens"] if not token["content"].startswith("<0x")]
    core = Tokenizer.from_str(json.dumps(content))
    core.post_processor = processors.TemplateProcessing(
        single="<bos> $A <eos>",
        pair="<bos> $A <eos> $B <eos>",
        special_tokens=[(token, core.token_to_id(token)) for token in ("<bos>", "<eos>")],
    )
    return core.to_str()


def _gemma_tokenizer(*, model_max_length: int | None = None) -> Any:
    return PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer.from_str(_gemma_core()),
        bos_token="<bos>",
        eos_token="<eos>",
        pad_token="<pad>",
        unk_token="<unk>",
        mask_token="<mask>",
        model_input_names=["input_ids", "attention_mask"],
        model_max_length=model_max_length,
    )


def _unigram(special: list[str], unknown: str) -> Tokenizer:
    core = Tokenizer(models.Unigram())
    core.normalizer = normalizers.NFKC()
    core.pre_tokenizer = pre_tokenizers.Metaspace()
    core.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=500, special_tokens=special, unk_token=unknown, shrinking_factor=0.5, show_progress=False
    )
    core.train_from_iterator(texts(), trainer)
    return core


@lru_cache(maxsize=1)
def _xlm_r_core() -> str:
    core = _unigram(["<s>", "<pad>", "</s>", "<unk>", "<mask>"], "<unk>")
    ends = [(token, core.token_to_id(token)) for token in ("<s>", "</s>")]
    core.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=ends
    )
    return core.to_str()


def _xlm_r_tokenizer() -> Any:
    return PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer.from_str(_xlm_r_core()),
        bos_token="<s>",
        eos_token="</s>",
        cls_token="<s>",
        sep_token="</s>",
        pad_token="<pad>",
        unk_token="<unk>",
        mask_token="<mask>",
        model_max_length=512,
        model_input_names=["input_ids", "attention_mask"],
    )


@lru_cache(maxsize=1)
def _t5_core() -> str:
    core = _unigram(["<pad>", "</s>", "<unk>", "<extra_id_0>", "<extra_id_1>"], "<unk>")
    core.post_processor = processors.TemplateProcessing(
        single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", core.token_to_id("</s>"))]
    )
    return core.to_str()


def _t5_tokenizer() -> Any:
    return PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer.from_str(_t5_core()),
        eos_token="</s>",
        pad_token="<pad>",
        unk_token="<unk>",
        additional_special_tokens=["<extra_id_0>", "<extra_id_1>"],
        model_max_length=256,
        model_input_names=["input_ids", "attention_mask"],
    )
