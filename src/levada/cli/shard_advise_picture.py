"""What do the candidates look like, in a picture that needs no package to be drawn?

Each key is a row of two bars: capacity (longer is better), and shards per query with the busiest shard's load
marked.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from levada.cli.printing import line, shortened

if TYPE_CHECKING:
    from levada.sharding.advice import Advice
    from levada.sharding.scoring import Tried

__all__ = ["draw", "picture_of"]

_WIDTH, _LEFT, _ROW, _TOP = 1020, 430, 34, 56
_MOST_ROWS = 12
_OURS, _OTHER, _REFUSED = "#1f6f8b", "#8aa9b5", "#c9a0a0"


def draw(advice: Advice, path: Path) -> None:
    from levada.adapters.exports.whole_file import whole_file

    with whole_file(path, force=True) as out:
        out.write(picture_of(advice).encode())


def picture_of(advice: Advice) -> str:
    """The picture as SVG."""
    shown = [*advice.tried[:_MOST_ROWS]]
    shown += [each for each in advice.tried[_MOST_ROWS:] if each.kind in ("paper", "hashed-id")]
    height = _TOP + _ROW * len(shown) + 16
    most = max(each.figures.capacity for each in shown) or 1.0
    rows = "".join(_row(number, each, most, number == 0) for number, each in enumerate(shown))
    title = f"Capacity of {advice.shards} shards by key (one node = 1)"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" '
        f'viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif" font-size="13">'
        f'<rect width="100%" height="100%" fill="white"/>{_text(16, 28, title, 16)}{rows}</svg>\n'
    )


def _row(number: int, each: Tried, most: float, advised: bool) -> str:
    return "".join(_pieces(number, each, most, advised))


def _pieces(number: int, each: Tried, most: float, advised: bool) -> Iterator[str]:
    top = _TOP + _ROW * number
    figures = each.figures
    colour = _OURS if advised else _REFUSED if each.refused else _OTHER
    width = (_WIDTH - _LEFT - 320) * figures.capacity / most
    yield _text(16, top + 17, shortened(line(each.name), 72), 11)
    yield f'<rect x="{_LEFT}" y="{top + 3}" width="{width:.1f}" height="20" fill="{colour}"/>'
    told = (
        f"{figures.capacity:.2f}: {figures.shards_per_query:.2f} shards/query, busiest {figures.load_max_mean:.2f}x"
    )
    yield _text(round(_LEFT + width + 8), top + 17, told, 12)


def _text(left: int, top: int, words: str, size: int) -> str:
    return f'<text x="{left}" y="{top}" font-size="{size}">{escape(words)}</text>'
