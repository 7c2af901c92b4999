"""One client of a replay: which shards does it ask, and what did it meet?

A query goes to the shards that the placement names and to no other, to all of them at once. Where a shard is away,
its part of the answer is missing: the query counts as partial, and the others are asked as before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from levada.adapters.replay.gathering import gathered
from levada.adapters.replay.questions import TABLE, Question, stored
from levada.adapters.replay.shard_line import LineFailed, ShardLine, columns_read
from levada.hashing import content_digest
from levada.sharding.placement import Placement

__all__ = ["Client", "Tally", "directory_home"]

_DIRECTORY = f"SELECT shard FROM {TABLE} WHERE id = $1"  # noqa: S608
_ALL = (1 << 64) - 1


class Tally(msgspec.Struct):
    """`touches`: answers of each shard; `answers`: a sum over what was found, alike where the same was found."""

    touches: list[int]
    queries: int = 0
    found: int = 0
    answers: int = 0
    lookups: int = 0  # in the directory
    partial: int = 0  # queries of which some shard did not answer
    troubles: dict[str, int] = msgspec.field(default_factory=dict)

    def merge(self, other: Tally) -> None:
        self.touches = [mine + its for mine, its in zip(self.touches, other.touches, strict=True)]
        self.queries += other.queries
        self.found += other.found
        self.answers = (self.answers + other.answers) & _ALL
        self.lookups += other.lookups
        self.partial += other.partial
        for words, times in other.troubles.items():
            self.troubles[words] = self.troubles.get(words, 0) + times


class Client:
    """`lines`: a session with each shard, None where it is away; `directories`: with each server's part of it."""

    def __init__(
        self,
        placement: Placement,
        lines: Sequence[ShardLine | None],
        directories: Sequence[ShardLine | None] = (),
    ) -> None:
        self._placement = placement
        self._lines = list(lines)
        self._directories = list(directories)
        self._locate: Callable[[Any], int | None] | None = self._look_up if placement.directory else None
        self.tally = Tally([0] * placement.shards)

    @property
    def sessions(self) -> list[ShardLine]:
        return [line for line in (*self._lines, *self._directories) if line is not None]

    def pid_of(self, shard: int) -> int | None:
        line = self._lines[shard]
        return None if line is None else line.pid

    def begin(self) -> None:
        """A new round: what was counted before is forgotten."""
        self.tally = Tally([0] * self._placement.shards)

    def ask(self, place: int, question: Question) -> None:
        """`place`: of the query in the log that is replayed."""
        shards = self._shards(question)
        sent = [shard for shard in shards if self._sent(shard, question)]
        answers = []
        for shard in sent:
            line = self._lines[shard]
            try:
                if line is not None:
                    answers.append(line.rows(columns_read(question)))
                    self.tally.touches[shard] += 1
            except LineFailed as failure:
                self._failed(shard, failure)
        self._count(place, gathered(question, answers), whole=len(answers) == len(shards))

    def _shards(self, question: Question) -> Sequence[int]:
        if self._placement.shards == 1:
            return (0,)
        try:
            return sorted(self._placement.shards_for(question.asked, self._locate))
        except LineFailed:  # without the directory every shard may have it
            return sorted(self._placement.shards_for(question.asked))

    def _sent(self, shard: int, question: Question) -> bool:
        line = self._lines[shard]
        if line is None:
            return False
        try:
            line.send(question.sql, question.parameters)
        except LineFailed as failure:
            self._failed(shard, failure)
            return False
        return True

    def _failed(self, shard: int, failure: LineFailed) -> None:
        line = self._lines[shard]
        words = f"shard {shard}: {failure}"
        self.tally.troubles[words] = self.tally.troubles.get(words, 0) + 1
        if failure.away and line is not None:
            line.close()
            self._lines[shard] = None

    def _count(self, place: int, found: tuple[int, ...], *, whole: bool) -> None:
        self.tally.queries += 1
        self.tally.found += len(found)
        self.tally.answers = (self.tally.answers + hash((place, found))) & _ALL
        self.tally.partial += not whole

    def _look_up(self, value: Any) -> int | None:
        wanted = stored(value)
        home = directory_home(wanted, len(self._directories))
        line = self._directories[home]
        if line is None:
            raise LineFailed("the directory is away", away=True)
        self.tally.lookups += 1
        try:
            line.send(_DIRECTORY, (wanted,))
            rows = line.rows(1)
        except LineFailed as failure:
            if failure.away:
                line.close()
                self._directories[home] = None
            raise
        return int.from_bytes(rows[0][0], "big") if rows else None


def directory_home(stored_id: bytes, servers: int) -> int:
    """On which server the directory has this id."""
    return int.from_bytes(content_digest(stored_id)[:8], "big") % servers
