"""Changes users and keys, and is killed at each point of each change in turn; prints what the file held after it.

Run as a program of its own: it forks, which a test process with threads must not.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import levada.accounts.accounts
from levada.accounts.accounts import Accounts, Actor, KeyOptions
from levada.store.access_file import AccessFile

BY = Actor("tester", "command line", "here")
POINTS = ("begin", "begun", "before-commit", "after-commit")
CHANGES: dict[str, Callable[[Accounts], object]] = {
    "add-user": lambda accounts: accounts.add_user("bob", "reader", BY, openid="bob"),
    "set-role": lambda accounts: accounts.set_role("ada", "reader", BY),
    "remove-user": lambda accounts: accounts.remove_user("ada", BY),
    "log-in": lambda accounts: accounts.log_in_identity(["ada"], "here"),
    "add-key": lambda accounts: accounts.add_key("new", KeyOptions(scopes=["read"]), BY),
    "revoke-key": lambda accounts: accounts.revoke_key("old", BY),
    "record": lambda accounts: accounts.record(BY, "POST /pause", ""),
}


def killing(point: str) -> type[AccessFile]:
    class Killing(AccessFile):
        def _reach(self, step: str) -> None:
            if step == point:
                os.kill(os.getpid(), signal.SIGKILL)

    return Killing


def changed(path: Path, change: str, point: str = "") -> int:
    """Make the change in a process of its own, killed at the point if one is named; how that ended."""
    child = os.fork()
    if child == 0:
        levada.accounts.accounts.AccessFile = killing(point)  # type: ignore[attr-defined]
        try:
            CHANGES[change](Accounts(path))
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def held(path: Path) -> list[object]:
    """What the file holds, but for secrets and times."""
    with closing(sqlite3.connect(path)) as file:
        asked = (
            "PRAGMA integrity_check",
            "SELECT name, role FROM users ORDER BY name",
            "SELECT user FROM sessions ORDER BY user",
            "SELECT name FROM keys ORDER BY name",
            "SELECT who, action, object, outcome FROM log ORDER BY id",
        )
        return [file.execute(each).fetchall() for each in asked]


def fresh(folder: Path, name: str) -> Path:
    path = folder / name / "access.db"
    with closing(Accounts(path)) as accounts:
        accounts.add_user("ada", "admin", BY, openid="ada")
        accounts.log_in_identity(["ada"], "here")
        accounts.add_key("old", KeyOptions(scopes=["read"]), BY)
    return path


def outcomes(folder: Path, change: str) -> dict[str, str]:
    """After a kill at each point: whether the file is as before the change, or as after it, and takes it then."""
    before = held(fresh(folder, f"{change}-before"))
    whole = fresh(folder, f"{change}-after")
    assert changed(whole, change) == 0
    after = held(whole)
    assert before != after
    found = {}
    for point in POINTS:
        path = fresh(folder, f"{change}-{point}")
        assert changed(path, change, point) == -signal.SIGKILL
        state = held(path)
        found[point] = "before" if state == before else "after" if state == after else repr(state)
        if state == before:
            assert changed(path, change) == 0
            assert held(path) == after
        shutil.rmtree(path.parent)
    return found


if __name__ == "__main__":
    print(json.dumps({change: outcomes(Path(sys.argv[1]), change) for change in CHANGES}))
