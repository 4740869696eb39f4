"""Mining by definition: plain Python loops over float64, slow and obvious."""

import math
from typing import get_args

from st_xling.utils.options import Margin, Retrieval

MARGINS = get_args(Margin)
RETRIEVALS = get_args(Retrieval)


def cosine(first, second):
    dot = sum(float(a) * float(b) for a, b in zip(first, second))
    return dot / math.sqrt(sum(float(a) ** 2 for a in first)) / math.sqrt(sum(float(b) ** 2 for b in second))


def best_neighbors(cosines, k):
    """Per row, (cosine, column) of the k highest cosines; the lowest column first among equals."""
    neighbors = []
    for row in cosines:
        order = sorted(range(len(row)), key=lambda j: (-row[j], j))
        neighbors.append([(row[j], j) for j in order[:k]])
    return neighbors


def margin_score(value, source_cosines, target_cosines, k, margin):
    """Margin from the two lists of k neighbor cosines, summed over 2k."""
    neighborhood = sum(c / (2 * k) for c in source_cosines) + sum(c / (2 * k) for c in target_cosines)
    if margin == "absolute":
        return value
    if margin == "distance":
        return value - neighborhood
    return value / neighborhood if neighborhood >= 1e-6 else -math.inf


def cosine_matrix(source, target):
    """Cosines of all sources (rows) with all targets (columns)."""
    return [[cosine(s, t) for t in target] for s in source]


def mine(source, target, *, k, margin, retrieval):
    """List of (score, source index, target index), best first."""
    cosines = cosine_matrix(source, target)
    transposed = [list(column) for column in zip(*cosines)]
    of_source = best_neighbors(cosines, k)
    of_target = best_neighbors(transposed, k)

    def score(i, j):
        return margin_score(cosines[i][j], [c for c, _ in of_source[i]], [c for c, _ in of_target[j]], k, margin)

    forward = []
    for i, neighbors in enumerate(of_source):
        value, j = min((-score(i, j), j) for _, j in neighbors)
        if value < math.inf:
            forward.append((-value, i, j))
    backward = []
    for j, neighbors in enumerate(of_target):
        value, i = min((-score(i, j), i) for _, i in neighbors)
        if value < math.inf:
            backward.append((-value, i, j))

    if retrieval == "forward":
        pairs = forward
    elif retrieval == "backward":
        pairs = backward
    elif retrieval == "intersect":
        both_ways = {pair[1:] for pair in backward}
        pairs = [pair for pair in forward if pair[1:] in both_ways]
    else:
        unique = {pair[1:]: pair for pair in forward + backward}
        pairs = []
        sources = set()
        targets = set()
        for pair in sorted(unique.values(), key=lambda p: (-p[0], p[1], p[2])):
            if pair[1] not in sources and pair[2] not in targets:
                pairs.append(pair)
                sources.add(pair[1])
                targets.add(pair[2])
    return sorted(pairs, key=lambda p: (-p[0], p[1], p[2]))


def score_pairs(source, target, *, k, margin):
    """Margin score of each (i, i)."""
    cosines = cosine_matrix(source, target)
    scores = []
    for i in range(len(source)):
        of_source = sorted(cosines[i], reverse=True)[:k]
        of_target = sorted((row[i] for row in cosines), reverse=True)[:k]
        scores.append(margin_score(cosines[i][i], of_source, of_target, k, margin))
    return scores


def xsim_errors(source, target, *, k, margin):
    """Sources whose best-scored neighbor is not their own row."""
    best = {i: j for _, i, j in mine(source, target, k=k, margin=margin, retrieval="forward")}
    return sum(best.get(i) != i for i in range(len(source)))


def f1_at(scores, is_correct, n_gold, threshold):
    kept = [correct for score, correct in zip(scores, is_correct) if score >= threshold]
    if not kept or not sum(kept):
        return 0.0
    precision = sum(kept) / len(kept)
    recall = sum(kept) / n_gold
    return 2 * precision * recall / (precision + recall)


def best_f1(scores, is_correct, n_gold):
    """Highest F1 over every score taken as threshold."""
    return max((f1_at(scores, is_correct, n_gold, threshold) for threshold in scores), default=0.0)
