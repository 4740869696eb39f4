"""Is a column of heads a tree?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

Fault = tuple[int, str, str]


def tree_faults(heads: Sequence[tuple[int, str]]) -> Iterator[Fault]:
    """What keeps the words of one sentence from being a tree.

    Args:
        heads: For word 1, 2, …: its line in the file, and its head as written: a word's number, 0 for the root. If all
            are ``_``, there is no tree and no fault.
    Yields:
        Line, kind and detail.
    """
    if all(head == "_" for _, head in heads):
        return
    parents = []
    for line, head in heads:
        if not head.isascii() or not head.isdigit() or int(head) > len(heads):
            yield line, "broken tree", f"expected a head from 0 to {len(heads)}, got {head!r}"
        else:
            parents.append(int(head))
    if len(parents) < len(heads):
        return
    roots = [place for place, parent in enumerate(parents) if parent == 0]
    if len(roots) != 1:
        line = heads[roots[1] if roots else 0][0]
        yield line, "broken tree", f"expected one root, got {len(roots)}"
    yield from _cycles(parents, [line for line, _ in heads])


def _cycles(parents: Sequence[int], lines: Sequence[int]) -> Iterator[Fault]:
    """One fault for each cycle, at its first word."""
    done = {0}
    for word in range(1, len(parents) + 1):
        path: list[int] = []
        while word not in done:
            done.add(word)
            path.append(word)
            word = parents[word - 1]
        if word in path:
            cycle = path[path.index(word) :]
            shown = " → ".join(map(str, [*cycle, word]))
            yield lines[min(cycle) - 1], "broken tree", f"expected a way to the root, got a cycle of heads {shown}"
