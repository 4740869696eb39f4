"""Align documents by Vecalign or by Bertalign's kernels, from the vectors that ``aligners`` wrote.

    python -I aligner_peers.py vecalign FOLDER MAX_SIZE

The Python is that of an environment with these libraries, which has neither st-xling nor its dependencies: this file
imports nothing else. Prints JSON: the version, and the groups of each document.

FOLDER has a file ``NAME.npz`` for each document, with the arrays ``source`` and ``target``: vectors of the groups of
1, 2, … sentences by their last one, *shape* ``(sizes, sentences, dim)``; and ``source_bytes`` and ``target_bytes``:
their lengths in UTF-8. Both tools put the text ``PAD`` in place of groups that would begin before the document.
"""

import importlib.util
import json
import math
import random
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np

# Vecalign draws random sentences: its own seed and its defaults.
SEED = 42
VECALIGN_DEFAULTS = {
    "del_percentile_frac": 0.2,
    "max_size_full_dp": 300,
    "costs_sample_size": 20_000,
    "num_samps_for_norm": 100,
}
SEARCH_BUFFER = 5
# Bertalign's defaults.
TOP_K = 3
WINDOW = 5
SKIP = -0.1


def vecalign(document, max_size):
    """Align a document as ``vecalign --alignment_max_size`` does."""
    from vecalign import dp_utils

    random.seed(SEED)
    np.random.seed(SEED)
    stack = dp_utils.vecalign(
        vecs0=document["source"].copy(),
        vecs1=document["target"].copy(),
        final_alignment_types=dp_utils.make_alignment_types(max_size),
        width_over2=math.ceil(max_size / 2) + SEARCH_BUFFER,
        **VECALIGN_DEFAULTS,
    )
    return stack[0]["final_alignments"]


def bertalign(document, max_size):
    """Align a document as ``Bertalign.align_sents`` does."""
    kernels = bertalign_kernels()
    source, target = document["source"], document["target"]
    source_bytes, target_bytes = document["source_bytes"], document["target_bytes"]
    n, m = source.shape[1], target.shape[1]
    single = kernels.get_alignment_types(2)
    cosines, nearest = kernels.find_top_k_sents(source[0], target[0], k=TOP_K)
    width, path = kernels.find_first_search_path(n, m)
    moves = kernels.first_pass_align(n, m, width, path, single, cosines, nearest)
    anchors = kernels.first_back_track(n, m, moves, path, single)
    shapes = kernels.get_alignment_types(max_size)
    width, path = kernels.find_second_search_path(anchors, WINDOW, n, m)
    ratio = float(source_bytes[0].sum() / target_bytes[0].sum())
    moves = kernels.second_pass_align(
        source, target, source_bytes, target_bytes, width, path, shapes, ratio, SKIP, margin=True, len_penalty=True
    )
    return kernels.second_back_track(n, m, moves, path, shapes)


def bertalign_kernels():
    """Return Bertalign's module of kernels alone: the package imports an encoder, and needs Python 3.12."""
    if "corelib" not in sys.modules:
        package = importlib.util.find_spec("bertalign")
        if package is None:
            raise ModuleNotFoundError("No module named 'bertalign'")
        file = Path(package.submodule_search_locations[0], "corelib.py")
        spec = importlib.util.spec_from_file_location("corelib", file)
        module = importlib.util.module_from_spec(spec)
        sys.modules["corelib"] = module
        try:
            spec.loader.exec_module(module)
        except ImportError:
            del sys.modules["corelib"]
            raise
    return sys.modules["corelib"]


def main():
    name, folder, max_size = sys.argv[1:]
    align = {"vecalign": vecalign, "bertalign": bertalign}[name]
    groups = {}
    for file in sorted(Path(folder).glob("*.npz")):
        found = align(np.load(file), int(max_size))
        groups[file.stem] = [([int(row) for row in source], [int(row) for row in target]) for source, target in found]
    print(json.dumps({"version": version(name), "groups": groups}))


if __name__ == "__main__":
    try:
        main()
    except ImportError as error:
        print(json.dumps({"missing": str(error)}))
