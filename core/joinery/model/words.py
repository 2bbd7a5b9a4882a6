"""Numbers with their nouns, in texts for people."""


def counted(value: int, noun: str, plural: str = "") -> str:
    """1 row, 2,000 rows; with a verb: counted(n, "group moves", "groups move")."""
    return f"{value:,} {noun if value == 1 else plural or noun + 's'}"
