"""How do several shards get their indexes and counts? One follower each, told and staffed as one."""

from __future__ import annotations

from collections.abc import Callable

from levada.assemble.folder import DataFolder
from levada.assemble.following import Follower
from levada.flow.balance import MethodLoad
from levada.records import Crew

__all__ = ["FollowerTeam", "followers"]


def followers(folder: DataFolder, follow: Callable[[DataFolder], Follower]) -> Follower | FollowerTeam:
    """Of each shard, or of the one store."""
    return FollowerTeam(folder, follow) if folder.placement.exists() else follow(folder)


class FollowerTeam:
    """Shards that a move adds while the crawl runs are followed from the next change on."""

    def __init__(self, folder: DataFolder, follow: Callable[[DataFolder], Follower]) -> None:
        from levada.adapters.sharded.plan_file import PlanFile  # here: most collections have one shard and no plan

        self._folder = folder
        self._follow = follow
        self._members: list[Follower] = []
        self._plan = PlanFile(folder.placement)
        self._grow()

    @property
    def balance(self) -> MethodLoad | None:
        """Of the shard that counted most."""
        loads = [member.balance for member in self._members]
        return max((load for load in loads if load), key=lambda load: sum(load.loads), default=None)

    def wake(self, changes: int = 1) -> None:
        """Each is told: which shards were meant it sees for itself, and looking costs little."""
        self._grow()
        for member in self._members:
            member.wake(changes)

    def look(self) -> Crew:
        each = [member.look() for member in self._members]
        return Crew(
            queue=max(one.queue for one in each),
            on=max(one.on for one in each),  # the team is one worker: each of its members has a shard to itself
            busy=max(one.busy for one in each),
            starting=max(one.starting for one in each),
            arrived=max(one.arrived for one in each),
            done=min(one.done for one in each),
            work=sum(one.work for one in each),
        )

    def resize(self, wanted: int) -> None:
        for member in self._members:
            member.resize(min(1, wanted))

    def finish(self) -> str | None:
        self._plan.close()
        said = [trouble for member in self._members if (trouble := member.finish())]
        return said[0] if said else None

    def _grow(self) -> None:
        for place in self._plan.read().shards[len(self._members) :]:
            shard = DataFolder(self._folder.path / place.folder)
            shard.make()
            self._members.append(self._follow(shard))
