"""A data folder with a site that is to be forgotten, and `levada forget` killed at every point of it.

`python -m tests.collection.forgotten_folder FOLDER POINT...` forks one child per point, in which the forget dies there,
and prints how each ended. Without a point it dies before each step on a file of the index, while that is built anew: in
copies of `data` that are named `1`, `2` and so on. Run as a program of its own: it forks, which a test process with
threads must not.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path

from msgspec.structs import replace

from levada.accounts.accounts import Accounts, Actor
from levada.bulk.tasks import LoadStatus
from levada.collection.commands import open_commands
from levada.collection.forgetting.run import forget, wanted
from levada.collection.search import open_search
from levada.collection.trends import find_trends
from levada.collection.warm_map import warm, warm_request
from levada.core.commands import AddSeeds, CheckNow, DropSite, Pause
from levada.core.folder import DataFolder
from levada.core.records import ChangeEvent, ChangeFacts, ChangeKind, FoundUrl, PageState
from levada.core.settings import Settings
from levada.core.subscriptions import DescribedChange, Message, Subscription, TakenChanges
from levada.fetch.cookies import KeptSession, SiteCookies, session_file, write_session
from levada.pages.compression import pack_content
from levada.store.base import Store, StoreLimits
from levada.store.opening import open_store
from levada.store.subscriptions import SqliteSubscriptions
from levada.testing.store.visits import changed, first, new_version
from tests.faults import KillAt

__all__ = ["CANARY", "FORGOTTEN", "KEPT", "build", "killed_at"]

FORGOTTEN, KEPT = "blog.example", "other.example"
CANARY = "xylocarpus"
"""A word that stands in the text, the body, the titles and the addresses of the forgotten site, and nowhere else."""

NOW = 1_700_000_000.0


def build(path: Path, settings: Settings | None = None) -> Path:
    """Two sites with changed pages; index, counts, map, messages, recorded queries and commands."""
    settings, folder = settings or Settings(), DataFolder(path)
    folder.make()
    with folder.locked(), closing(open_store(folder, settings.store, StoreLimits())) as store:
        folder.save_settings(settings)
        _fill(store)
    with open_search(folder):
        pass
    find_trends(path, window="24h")
    warm(folder, warm_request(folder), _quiet)
    _tell(folder)
    for site in (FORGOTTEN, KEPT):
        cookies = SiteCookies()
        cookies.take(f"https://{site}/", [("set-cookie", f"session={site}")])
        write_session(session_file(path, site, "mark"), KeptSession(cookies.kept(), [f"https://{site}/in"]))
    lines = [{"filter": {"url": f"http://{FORGOTTEN}/{CANARY}"}}, {"filter": {"site": FORGOTTEN}}, {"filter": KEPT}]
    with closing(open_commands(folder)) as commands:
        commands.submit(CheckNow((f"http://{FORGOTTEN}/{CANARY}", f"http://{KEPT}/")))
        commands.submit(CheckNow((f"http://{FORGOTTEN}/{CANARY}",)))
        commands.submit(CheckNow(site=FORGOTTEN))
        commands.submit(CheckNow(site=KEPT))
        commands.submit(DropSite(FORGOTTEN))
        commands.submit(AddSeeds((f"http://{FORGOTTEN}/{CANARY}",)))
        commands.submit(Pause())
    folder.rendering.write_text(json.dumps({FORGOTTEN: [1, 1, 0]}))
    accounts = Accounts(folder.access)
    ada = Actor("ada", "user", "::1")
    accounts.add_user("ada", "admin", ada, openid="ada@id.example")
    for asked in (f"http://{FORGOTTEN}/{CANARY}, http://{KEPT}/", f"news {FORGOTTEN}", KEPT):
        accounts.record(ada, "POST /check", asked)
    accounts.close()
    folder.queries.write_text("".join(json.dumps(each) + "\n" for each in lines))
    return path


def _quiet(status: LoadStatus) -> None:
    pass


def _fill(store: Store) -> None:
    names = [f"http://{FORGOTTEN}/", f"http://{FORGOTTEN}/{CANARY}", f"http://{KEPT}/", f"http://{KEPT}/moved"]
    store.add([FoundUrl(url, url.split("/")[2], admit=True) for url in names], [], NOW)
    for step, result in enumerate((first, changed, changed)):
        now = NOW + step * 4000.0
        for lease in store.lease(now, 10, 60.0):
            url = lease.page.url
            if url.endswith("/moved") and step == 2:
                moved = replace(changed(lease, now, "went"), state=PageState.ELSEWHERE, version=None)
                store.commit([replace(moved, leads_to=f"http://{FORGOTTEN}/{CANARY}")])
                continue
            words = f"{CANARY} secret {step}" if FORGOTTEN in url else f"harmless {step}"
            body = f"<p>{words}</p>" * 50
            content = pack_content(words.encode(), body.encode(), 1)
            store.commit(
                [replace(result(lease, now, words), version=replace(new_version(words), content_zstd=content))]
            )


def _tell(folder: DataFolder) -> None:
    with closing(SqliteSubscriptions(folder.hooks)) as hooks:
        hooks.add(Subscription("mail", "mailto://nowhere"))
        changes = [_change(number) for number in range(3)]
        hooks.take("mail", TakenChanges((), (3,), changes, NOW))
        hooks.compose("mail", 1, lambda some: Message("m", "mail", NOW, CANARY, CANARY, CANARY, tuple(some)))


def _change(seq: int) -> DescribedChange:
    url = f"http://{FORGOTTEN}/{CANARY}"
    event = ChangeEvent(seq, NOW, ChangeKind.CHANGED, 1, url, FORGOTTEN, 2, 0.5, CANARY)
    return DescribedChange(event, ChangeFacts(str(seq), "now", "changed", url, FORGOTTEN, CANARY, 2, 0.5))


class KillAtIndexFile:
    """Dies before the nth step on a file of the index, once that is to be built anew."""

    def __init__(self, nth: int) -> None:
        self._left = nth

    def reach(self, point: str) -> None:
        if point == "forgetting.index":
            sys.addaudithook(self._hear)

    def _hear(self, event: str, given: tuple[object, ...]) -> None:
        if event in ("open", "os.remove", "os.rename", "shutil.rmtree") and "/index" in str(given[0]):
            self._left -= 1
            if not self._left:
                os.kill(os.getpid(), signal.SIGKILL)


def killed_at(point: str, path: Path) -> int:
    child = os.fork()
    if child == 0:
        try:
            forget(
                path, wanted((), FORGOTTEN), faults=KillAtIndexFile(int(point)) if point.isdigit() else KillAt(point)
            )
            os._exit(0)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def _ends(root: Path, points: list[str]) -> Iterator[tuple[str, int]]:
    for point in points or map(str, count(1)):
        copy = root / point
        shutil.copytree(root / "data", copy)
        end = killed_at(point, copy)
        yield point, end
        if not points and end == 0:
            return


if __name__ == "__main__":
    print(json.dumps(dict(_ends(Path(sys.argv[1]), sys.argv[2:]))))
