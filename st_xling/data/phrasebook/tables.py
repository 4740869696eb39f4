"""Lexicons written as plain text: one entry a line, ``key: form | form``, full forms rather than rules."""


def table(text: str) -> dict[str, tuple[str, ...]]:
    """Read a lexicon table.

    Args:
        text: Lines ``key: first form | second form``; blank lines are skipped.
    Returns:
        The forms of every key, in the order written.
    Example:
        >>> table("cat: cat | cats")
        {'cat': ('cat', 'cats')}
    """
    entries: dict[str, tuple[str, ...]] = {}
    for line in text.strip().splitlines():
        if not line.strip():
            continue
        key, _, forms = line.partition(":")
        assert key.strip() not in entries, f"{key.strip()} is listed twice"
        entries[key.strip()] = tuple(form.strip() for form in forms.split("|"))
    return entries


def words(text: str) -> dict[str, str]:
    """Read a table with one form a key, as a plain mapping."""
    return {key: forms[0] for key, forms in table(text).items()}


def listed(text: str) -> tuple[str, ...]:
    """The words of a line, for inventories that are read more often than written."""
    return tuple(text.split())
