"""Numbers as people read them."""

from joinery.model.words import counted

__all__ = ["counted", "duration", "number", "size"]


def number(value: int) -> str:
    """With commas: 2,198,132."""
    return f"{value:,}"


def duration(seconds: float) -> str:
    """0.4 ms, 52 ms, 8.3 s, 2 min 5 s, 1 h 3 min."""
    if seconds < 0.01:
        return f"{seconds * 1e3:.1f} ms"
    if seconds < 0.9995:
        return f"{seconds * 1e3:.0f} ms"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def size(nbytes: int) -> str:
    """812 B, 1.4 MiB."""
    value, unit = float(nbytes), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if value < 1024:
            break
        value, unit = value / 1024, larger
    return f"{nbytes} B" if unit == "B" else f"{value:.1f} {unit}"
