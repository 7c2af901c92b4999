"""How do the answers of several shards become one?"""

from __future__ import annotations

from collections.abc import Sequence

from levada.adapters.replay.questions import Question

__all__ = ["gathered"]

Rows = list[tuple[bytes, ...]]


def gathered(question: Question, answers: Sequence[Rows]) -> tuple[int, ...]:
    """The numbers of the documents in their order, no more than were wanted; or how many there are."""
    if question.counts:
        return (sum(_number(rows[0][0]) for rows in answers if rows),)
    if len(answers) == 1:
        return tuple([_number(row[0]) for row in answers[0]])
    rows = [row for each in answers for row in each]
    rows.sort(reverse=True)  # by the number: the newest first, where all else is equal
    for place in range(len(question.descending), 0, -1):
        rows.sort(key=lambda row, at=place: row[at], reverse=question.descending[place - 1])  # type: ignore[misc]
    return tuple([_number(row[0]) for row in rows[: question.limit]])


def _number(data: bytes) -> int:
    return int.from_bytes(data, "big")
