"""Options with a few choices, as the library and the command line both declare them."""

from __future__ import annotations

from typing import Literal

#: Type to compute in.
Dtype = Literal["float32", "float16", "bfloat16"]
#: Type of matrix products, the rest as loaded.
Autocast = Literal["bfloat16", "float16"]
#: Library that runs a transformer.
Backend = Literal["torch", "openvino"]
#: How token states become the embedding of a sentence.
Pooling = Literal["mean", "cls", "max"]

#: How a cosine is compared with those of the neighbors.
Margin = Literal["ratio", "distance", "absolute"]
#: Which candidates become pairs.
Retrieval = Literal["max", "intersect", "forward", "backward"]
#: Where work runs: in this process, or on the workers of a Ray cluster.
Engine = Literal["local", "ray"]
#: Type in which embeddings are stored.
StoreDtype = Literal["float32", "float16", "int8"]

#: Lines of a text: sentences, ``id TAB sentence``, or JSON objects with ``id`` and ``text``.
TextFormat = Literal["lines", "bucc", "jsonl"]
#: Bytes that are not UTF-8: an error, or replaced.
Errors = Literal["strict", "replace"]
#: Lines without a sentence: an error, or kept.
BlankLines = Literal["error", "keep"]
#: Format of pairs.
PairFormat = Literal["tsv", "jsonl", "tmx"]
#: Format of aligned documents.
AlignmentFormat = Literal["tsv", "jsonl", "tmx", "vecalign"]
