"""A static encoder built from nothing but text: one vector a piece of text, averaged, and no transformer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TypedDict

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers

from st_xling.models.load import mark_loaded
from st_xling.utils.built_sizes import check_static_sizes

UNKNOWN_TOKEN = "[UNK]"
WORD_START = "▁"

SPREAD = 0.1
"""Standard deviation of the random vectors. Rare pieces, which training hardly moves, then weigh little in a mean."""

# Scripts that put no spaces between words.
_UNSEGMENTED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}ー"
_IS_WORD_START = rf"(?<![\p{{L}}\p{{M}}\p{{N}}])(?=\p{{L}})(?![{_UNSEGMENTED}])"
_IS_OWN_WORD = rf"(?!{WORD_START})[\p{{P}}\p{{S}}]|\p{{N}}+|[{_UNSEGMENTED}][{_UNSEGMENTED}\p{{M}}]*"


class StaticOptions(TypedDict, total=False):
    """Sizes of a static model, see :func:`static_encoder`."""

    vocabulary: int
    dimensions: int


def static_encoder(
    texts: Iterable[str], *, vocabulary: int = 24_000, dimensions: int = 256, seed: int = 0
) -> SentenceTransformer:
    r"""A tokenizer trained on ``texts`` over a table of random vectors, one for each of its tokens.

    .. math:: e(x) = \frac{1}{|x|} \sum_{t \in x} E_t

    It reads thousands of sentences a second on a processor and knows no order of words: for the first stage of mining,
    for search where milliseconds count, and as a start where there is no pretrained model. Texts are never cut, and a
    prompt is averaged in like any text. A text without a token has the zero vector.

    Args:
        texts: Sentences of all languages the model shall read.
        vocabulary: Size of the vocabulary in pieces; small text gives fewer.
        dimensions: Dimensions of the sentence embedding.
        seed: Seed of the vectors; the tokenizer has no randomness.

    Returns:
        A ``SentenceTransformer`` of one module, sentence-transformers' ``StaticEmbedding``, with float32 weights.

    Raises:
        ValueError: No text, or sizes out of range.

    Example:
        >>> model = static_encoder(["Der Hund schläft.", "The dog sleeps."], vocabulary=100, dimensions=16)
        >>> model.encode(["Der Hund."]).shape
        (1, 16)
    """
    check_static_sizes(vocabulary=vocabulary, dimensions=dimensions, seed=seed)
    tokenizer = train_static_tokenizer(texts, vocabulary=vocabulary)
    generator = torch.Generator().manual_seed(seed)
    weights = SPREAD * torch.randn(tokenizer.get_vocab_size(), dimensions, generator=generator)
    bag = StaticEmbedding(tokenizer, embedding_weights=weights)
    return mark_loaded(SentenceTransformer(modules=[bag], device="cpu"))


def train_static_tokenizer(texts: Iterable[str], *, vocabulary: int = 24_000) -> Tokenizer:
    """A tokenizer whose vocabulary has frequent words as a whole, for vectors that are averaged.

    Byte-pair encoding over words in lower case; accents are kept. A word begins with ``▁`` wherever it stands, also
    after a quotation mark, so that it has one vector. Text of scripts without spaces (Chinese, Japanese, Thai, Lao,
    Khmer, Burmese) has no such marks, and its pieces are as long as the text makes them frequent: characters alone
    would say little without their order. (Unigram training numbers its pieces anew each time; this gives the same ones
    for the same text.)

    Args:
        texts: Sentences to count pieces in.
        vocabulary: Pieces at most, the unknown token included.

    Raises:
        ValueError: No text at all.

    Example:
        >>> tokenizer = train_static_tokenizer(["Der Hund schläft.", "Der Hund bellt."], vocabulary=100)
        >>> tokenizer.encode("Der Hund").tokens
        ['▁der', '▁hund']
    """
    check_static_sizes(vocabulary=vocabulary)
    tokenizer = Tokenizer(models.BPE(unk_token=UNKNOWN_TOKEN, fuse_unk=True))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.NFKC(), normalizers.Lowercase(), normalizers.Replace(Regex(_IS_WORD_START), WORD_START)]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Split(Regex(_IS_OWN_WORD), behavior="isolated")]
    )
    texts = list(texts)
    # The most frequent characters. (The trainer's limit breaks ties by hash order.)
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(tokenizer.normalizer.normalize_str(text))
    for space in [character for character in counts if character.isspace()]:
        del counts[space]
    alphabet = sorted(counts, key=lambda character: (-counts[character], character))[: vocabulary // 2]
    if not alphabet:
        raise ValueError("a tokenizer needs text: got no sentence with a letter in it; give the training pairs.")
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=[UNKNOWN_TOKEN],
        initial_alphabet=alphabet,
        limit_alphabet=len(alphabet),
        min_frequency=2,
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer
