"""The SQL store with bodies elsewhere: which objects its rows name, and deleting those that they no longer name.

A transaction that drops or replaces a version notes its reference, so that no crash between the commit and the
deletion of the object leaves anything behind that is not noted. What a crawl drops is deleted a day later: a backup
that is under way may still read it. What is forgotten is deleted at once.
"""

from __future__ import annotations

from collections.abc import Sequence

from levada.core.errors import LevadaError
from levada.store.base import StoreLimits
from levada.store.bodies import MARK, Bodies, unpacked_reference
from levada.store.bodies.references import Reference, references_in
from levada.store.sql.base import Database, WriteT
from levada.store.sql.forgetting import SqlForgetting

_AT_ONCE = 1_000
_COMMITS = 50  # after so many, what a crawl dropped a day ago is deleted


class SqlBodies(SqlForgetting[WriteT]):
    """`levada.store.base.WithBodies` on either database."""

    def __init__(self, database: Database[WriteT], limits: StoreLimits, bodies: Bodies | None = None) -> None:
        super().__init__(database, limits, bodies)
        self._commits = 0

    @property
    def bodies(self) -> Bodies | None:
        """Where texts and bodies lie that are not in rows."""
        return self._bodies

    def _after_commit(self, at: float, orphans: int) -> None:
        self._commits += 1
        if self._bodies is not None and (orphans or self._commits % _COMMITS == 0):
            try:
                self._delete_unused(at - self._bodies.grace, _AT_ONCE)
            except LevadaError as error:  # they are noted, and go later
                import logging  # here: a follower needs none

                logging.getLogger(__name__).debug("bodies that no version names could not be deleted: %s", error)

    def references(self, page_ids: Sequence[int]) -> list[bytes]:
        asked = (MARK, self.sql.dialect.id_list(page_ids))
        return [bytes(content) for (content,) in self._rows(self.sql.references_of, asked)]

    def pages_there(self, page_ids: Sequence[int]) -> set[int]:
        return {id for (id,) in self._rows(self.sql.there_by_id, (self.sql.dialect.id_list(page_ids),))}

    def contents(self, after: int, limit: int) -> tuple[int | None, list[tuple[int, int, bytes]]]:
        ids = [id for (id,) in self._rows(self.sql.next_with_versions, (after, limit))]
        if not ids:
            return None, []
        rows = self._rows(self.sql.contents_of, (self.sql.dialect.id_list(ids),))
        return ids[-1], [(page_id, version, bytes(content)) for page_id, version, content in rows]

    def replace_contents(self, contents: Sequence[tuple[int, int, bytes]], now: float) -> None:
        with self._database.write("replace-contents") as write:
            write.reach("versions")
            self._note_unused(write, self.sql.unused_of_version, [each[:2] for each in contents], now)
            write.executemany(self.sql.replace_content, [(content, *which) for *which, content in contents])

    def delete_unused_bodies(self, before: float) -> int:
        deleted = 0
        while self._bodies is not None and (some := self._delete_unused(before, _AT_ONCE)):
            deleted += some
        return deleted

    def _delete_unused(self, before: float, limit: int) -> int:
        assert self._bodies is not None
        noted = [bytes(each) for (each,) in self._rows(self.sql.unused_bodies, (before, limit))]
        if not noted:
            return 0
        going = references_in(noted)
        self._bodies.delete(self._not_named(going))
        with self._database.write("bodies-deleted") as write:
            write.reach("noted")
            write.executemany(self.sql.body_deleted, [(each,) for each in noted])
        return len(noted)

    def _not_named(self, references: Sequence[Reference]) -> list[Reference]:
        """Nothing should name them any more; what is deleted by mistake is lost, and looking costs little."""
        pages = sorted({each.page_id for each in references})
        named = {unpacked_reference(each) for each in self.references(pages)}
        return [each for each in references if each not in named]
