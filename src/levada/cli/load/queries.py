"""`levada load status`, `resume`, `cancel`, `verify` and `get`."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from levada.cli.load.output import MAPS, print_known, print_status, print_verdict, status_facts, verdict_facts
from levada.cli.logs import tell
from levada.cli.options import JsonOption, print_result
from levada.core.errors import LevadaError, NotFound, UsageError
from levada.core.words import harmless

if TYPE_CHECKING:
    from levada.bulk.loads import LoadRequest


BookOption = Annotated[
    str, typer.Option("--book", metavar="URL", help="Of the task book; default: beside the map. Or postgresql://.")
]
MapsOption = Annotated[
    Path, typer.Option("--maps", metavar="DIR", help="Where loads are noted, and maps in files kept.")
]
ProcessesOption = Annotated[int, typer.Option(metavar="N", min=1, max=256, help="Instances to run here.")]
NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="Of the map.")]
SourceOption = Annotated[str, typer.Option("--from", metavar="URL", help="Of the source, if not noted here.")]
TargetOption = Annotated[str, typer.Option("--to", metavar="URL", help="Of the map, if not noted here.")]


def named_load(name: str, maps: Path, target: str = "", source: str = "", book: str = "") -> LoadRequest:
    """The load as it was noted here, with the options that are given now."""
    import msgspec

    from levada.bulk.loads import LoadRequest, noted_load, noted_loads
    from levada.bulk.tasks import checked_name
    from levada.core.suggestions import near_names

    noted = noted_load(maps, checked_name(name))
    if noted is None and not target and not (maps / name).exists():
        known = noted_loads(maps)
        near = near_names(name, known)
        hint = f"{near}{'' if near.endswith('?') else '.'} Or " if known else ""
        raise NotFound(f"no load {name} is noted in {maps}: {hint}name where the map is with --to")
    base = noted or LoadRequest("", "", "", "", name, str(maps))
    named = {"target": target, "source": source, "book": book}
    return msgspec.structs.replace(base, **{field: word for field, word in named.items() if word})


def status(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Of the map; without it: all that are noted.")] = "",
    target: TargetOption = "",
    book: BookOption = "",
    maps: MapsOption = MAPS,
    json: JsonOption = False,
) -> None:
    """Shows how far a load is, who works on it, and what is published; without NAME, which loads are known here.

    Examples:

    ```
    levada load status
    levada load status categories
    levada load status categories --to redis://cache:6379/0 --json
    ```
    """
    from levada.bulk.loads import known_loads, load_status

    if not name:
        if target or book:
            raise UsageError("name the map: --to and --book say where one load is")
        found = known_loads([maps])
        if not found:
            raise NotFound(f"no load is noted in {maps}: begin one with levada load, or name a map and --to")
        print_result(json, {"loads": found}, print_known, found)
        return
    load_state, manifest = load_status(named_load(name, maps, target, book=book))
    if load_state is None and manifest is None:
        raise NotFound(f"nothing is known of a load {name}")
    print_result(json, status_facts(load_state, manifest), print_status, load_state, manifest)


def resume(
    name: NameArgument,
    target: TargetOption = "",
    source: SourceOption = "",
    book: BookOption = "",
    processes: ProcessesOption = 1,
    maps: MapsOption = MAPS,
    json: JsonOption = False,
) -> None:
    """Goes on with a load that was broken off, or joins one that runs.

    Examples:

    ```
    levada load resume categories
    levada load resume categories --processes 2 --json
    ```
    """
    from levada.bulk.loads import load_status
    from levada.bulk.tasks import LoadState
    from levada.cli.load.run import run

    request = named_load(name, maps, target, source, book)
    if not request.source or not request.table:
        raise UsageError(f"load {name} is not noted in {maps}: give the whole levada load line again")
    load_state, _ = load_status(request)
    if load_state is not None and load_state.record.state is LoadState.PUBLISHED:
        raise NotFound(f"there is nothing to resume: generation {load_state.record.generation} of {name} is published")
    run(request, maps, processes, 0, json)


def cancel(
    name: NameArgument,
    target: TargetOption = "",
    book: BookOption = "",
    maps: MapsOption = MAPS,
    json: JsonOption = False,
) -> None:
    """Gives up a load that is under way, and removes what it wrote. What is published stays.

    Example:

    ```
    levada load cancel categories
    ```
    """
    from levada.bulk.loads import cancel_load

    generation = cancel_load(named_load(name, maps, target, book=book))
    facts = {"name": name, "generation": generation, "state": "cancelled"}
    print_result(json, facts, print, f"{name}: generation {generation} is cancelled, and what it wrote is removed")


def verify(
    name: NameArgument,
    target: TargetOption = "",
    source: SourceOption = "",
    stored_only: Annotated[
        bool, typer.Option("--stored-only", help="Do not read the source: only the map, against what was loaded.")
    ] = False,
    maps: MapsOption = MAPS,
    json: JsonOption = False,
) -> None:
    """Counts source and map and compares a digest of all rows, whatever their order.

    Exit status 1 if they differ: then the source has changed since, or something was lost.

    Examples:

    ```
    levada load verify categories
    levada load verify categories --stored-only --json
    ```
    """
    import msgspec

    from levada.bulk.loads import verify_load

    request = named_load(name, maps, target, source)
    if stored_only:
        request = msgspec.structs.replace(request, source="")
    elif not request.source:
        raise UsageError("name the source with --from, or --stored-only")
    verdict = verify_load(request)
    print_result(json, verdict_facts(verdict), print_verdict, verdict)
    if not verdict.whole:
        raise LevadaError(f"map {name} does not hold what was loaded: load it again")
    if not verdict.current:
        raise LevadaError(f"map {name} and its source differ: the source has changed since, load it again")


def get(
    name: NameArgument,
    keys: Annotated[list[str], typer.Argument(metavar="KEY...", help="What to ask the map.")],
    target: TargetOption = "",
    maps: MapsOption = MAPS,
    json: JsonOption = False,
) -> None:
    """Prints what a map says of one or more keys; exit status 3 if it has none of them.

    Examples:

    ```
    levada load get categories 905321234567
    levada load get prices A-1 A-2 --to redis://cache:6379/0 --json
    ```
    """
    from levada.bulk.maps import Map

    with Map.open(named_load(name, maps, target).target, name) as opened:
        answers = dict(zip(keys, opened.get_many(keys), strict=True))
    print_result(json, {"name": name, "found": answers}, _print_answers, answers)
    if all(answer is None for answer in answers.values()):
        if json:
            raise typer.Exit(NotFound.exit_code)
        raise NotFound(f"map {name} has no {' '.join(keys)[:100]}")
    missing = [key for key, answer in answers.items() if answer is None]
    if missing and not json:
        tell(f"map {name} has no {' '.join(missing)[:100]}", logging.WARNING)


def _print_answers(answers: dict[str, Any]) -> None:
    for key, answer in answers.items():
        if answer is not None:
            values = answer if isinstance(answer, list) else [answer]
            head = f"{harmless(key)}: " if len(answers) > 1 else ""
            print(head + " ".join(harmless(str(value)) for value in values))
