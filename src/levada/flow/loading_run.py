"""How does a load go on when a server is away for a while, or the ground is lost?"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from levada.bulk.ports import TaskBook
from levada.bulk.tasks import LoadState, Standing
from levada.bulk.trouble import Away, LoadEnded, LostGround
from levada.errors import LevadaError
from levada.flow.loading import Instance
from levada.flow.loading_start import Starter

__all__ = ["Loaded", "Patience", "run_load"]


class Patience(NamedTuple):
    restarts: int = 3  # of the whole load, under a new generation
    tries: int = 6  # in a row, while a server is away
    seconds: float = 1.0  # between them


class Loaded(NamedTuple):
    standing: Standing
    began: bool  # by this instance, at least once
    restarts: int


def run_load(
    opened: Callable[[], tuple[Starter, Instance, TaskBook]],
    watch: Callable[[Standing], None],
    wait: Callable[[float], object],
    patience: Patience,
) -> Loaded:
    """Until it is published. `opened` gives new connections: those that were cut are of no use."""
    restarts, away, lost, began = 0, 0, 0, False
    instances: list[Instance] = []
    while True:
        try:
            starter, instance, book = opened()
            instances.append(instance)
            entered = starter.enter(lost)
            began = began or entered.began
            try:
                standing = instance.work(entered.record, entered.offer, watch)
            except (Away, LostGround, LoadEnded):
                raise
            except LevadaError as error:
                book.finish(entered.record.plan.name, entered.record.generation, LoadState.FAILED, str(error))
                raise
            return Loaded(standing, began, restarts)
        except LostGround:
            lost, restarts = entered.record.generation, restarts + 1
            if restarts > patience.restarts:
                raise
        except Away:
            away = 1 if instances and instances[-1].rows else away + 1
            if away > patience.tries:
                raise
            wait(patience.seconds)
