"""Users and keys in backups, moves and exports."""

from __future__ import annotations

import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import levada
from levada.accounts.accounts import Accounts, Actor, KeyOptions
from levada.accounts.records import Right
from levada.collection.storage.backup import back_up
from levada.collection.storage.restore import restore
from tests.collection.storage.told import told_collection

BY = Actor("tester", "command line", "here")
PASSWORD = "correct horse battery"


def test_a_restored_collection_has_its_users_and_keys_and_nobody_else_can_read_them(tmp_path: Path) -> None:
    news = told_collection(tmp_path / "news")
    with closing(Accounts(news.path / "access.db")) as accounts:
        accounts.add_user("ada", "editor", BY, password=PASSWORD)
        _, secret = accounts.add_key("reports", KeyOptions(scopes=["read"], collections=["news"]), BY)
        log = accounts.log()
        back_up(
            news, tmp_path / "news.backup"
        )  # while the file is open, and its newest lines are in the write-ahead log
    restore(tmp_path / "news.backup", tmp_path / "copy")
    file = tmp_path / "copy" / "access.db"
    with closing(Accounts(file)) as restored:
        assert restored.log_in("ada", PASSWORD, "here") is not None
        assert restored.log_in("ada", "another horse", "here") is None
        known = restored.key(secret)
        assert (known.name, known.collections, Right.READ in known.rights) == ("reports", ("news",), True)
        assert list(restored.log())[-len(log) :] == list(log)
        assert {stat.S_IMODE(path.stat().st_mode) for path in file.parent.glob("access.db*")} == {0o600}
    assert stat.S_IMODE((tmp_path / "news.backup").stat().st_mode) == 0o600


def test_a_backup_holds_no_password_and_no_key(tmp_path: Path) -> None:
    news = told_collection(tmp_path / "news")
    with closing(Accounts(news.path / "access.db")) as accounts:
        accounts.add_user("ada", "admin", BY, password=PASSWORD)
        _, secret = accounts.add_key("reports", KeyOptions(scopes=["read"]), BY)
    back_up(news, tmp_path / "news.backup")
    restore(tmp_path / "news.backup", tmp_path / "copy")
    with closing(sqlite3.connect(tmp_path / "copy" / "access.db")) as file:
        held = "\n".join(file.iterdump())
    assert "argon2id" in held
    assert PASSWORD not in held
    assert secret not in held
    assert secret[-20:] not in held


def test_an_export_holds_nothing_of_users_and_keys(tmp_path: Path) -> None:
    news = told_collection(tmp_path / "news")
    with closing(Accounts(news.path / "access.db")) as accounts:
        accounts.add_user("ada-lovelace", "admin", BY, password=PASSWORD)
        accounts.add_key("quarterly-reports", KeyOptions(scopes=["read"]), BY)
    with levada.open(news.path, create=False) as collection:
        collection.export(tmp_path / "pages.jsonl")
    written = b"".join(path.read_bytes() for path in tmp_path.glob("pages*"))
    assert written
    assert all(word not in written for word in (b"ada-lovelace", b"quarterly-reports", b"argon2id"))
