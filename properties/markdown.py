"""Tables in Markdown, for pages whose figures are printed."""

from collections.abc import Iterable, Sequence


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Lines of a table."""
    lines = [f"| {' | '.join(line)} |" for line in (header, *rows)]
    return [lines[0], "|---" * len(header) + "|", *lines[1:]]
