"""The laboratory: what each source printed beside what ours gives, run on request in a process of its own."""

from __future__ import annotations

from typing import Literal

import msgspec

from levada.dashboard.lab_runs import PartFacts
from levada.dashboard.operations import Nothing, Operation
from levada.dashboard.view import View
from levada.errors import NotFound

__all__ = ["LABORATORY"]

Part = Literal["freshness", "grouping", "stages", "sharding"]


class PartAsk(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    part: Part


class LabAnswer(msgspec.Struct, frozen=True):
    parts: list[PartFacts]


def _lab(view: View, _ask: Nothing) -> LabAnswer:
    return LabAnswer(view.laboratory.parts())


def _run(view: View, ask: PartAsk) -> LabAnswer:
    if not view.folder.path.is_dir():
        raise NotFound(f"there is no folder {view.folder.path} to keep the figures in: start a crawl first")
    view.laboratory.start(ask.part)
    return LabAnswer(view.laboratory.parts())


LABORATORY = [
    Operation(
        method="GET",
        path="/lab",
        summary="What the sources printed, beside ours",
        handle=_lab,
        answer=LabAnswer,
        slow=True,
    ),
    Operation(
        method="POST",
        path="/lab",
        summary="Run a part of the laboratory, in the background",
        handle=_run,
        asks=PartAsk,
        in_body=True,
        answer=LabAnswer,
        status=202,
        errors=(404, 409),
        slow=True,
    ),
]
