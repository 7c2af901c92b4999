"""`levada users`, `levada keys` and `levada embed` as they are typed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PASSWORD = "correct horse battery\n"


def levada(folder: Path, *words: str, typed: str = PASSWORD) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "levada", *words, "--access", str(folder / "access.db")]
    return subprocess.run(command, input=typed, capture_output=True, text=True, timeout=60, cwd=folder)


def told(folder: Path, *words: str, typed: str = PASSWORD) -> Any:
    done = levada(folder, *words, "--json", typed=typed)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_users_are_added_listed_changed_and_removed(tmp_path: Path) -> None:
    first = levada(tmp_path, "users", "add", "bob", "--role", "editor", "--collection", "shop")
    assert first.stdout.splitlines()[0] == f"bob is an editor now, in {tmp_path / 'access.db'}"
    assert "nobody is an admin yet" in first.stdout
    assert told(tmp_path, "users", "add", "ada", "--role", "admin")["user"]["role"] == "admin"
    told(tmp_path, "users", "add", "eve", "--openid", "eve@example.org", typed="")
    shown = levada(tmp_path, "users", "list").stdout.splitlines()
    assert shown == [
        "ada  admin   password",
        "bob  editor  password, only for shop",
        "eve  reader  OpenID eve@example.org",
    ]
    changed = told(tmp_path, "users", "role", "bob", "reader", "--all-collections")["user"]
    assert (changed["role"], changed["collections"]) == ("reader", [])
    assert "must log in again" in levada(tmp_path, "users", "password", "bob").stdout
    assert told(tmp_path, "users", "remove", "bob") == {"removed": "bob"}
    entries = told(tmp_path, "users", "log")["entries"]
    assert [each["action"] for each in entries][:2] == ["user removed", "password changed"]
    assert {each["origin"] for each in entries} == {"this machine"}
    assert "user added ada (admin)" in levada(tmp_path, "users", "log").stdout


def test_a_key_is_printed_once(tmp_path: Path) -> None:
    made = levada(tmp_path, "keys", "add", "reports", "--scope", "search,read", "--expires", "90d")
    secret, about = made.stdout.splitlines()
    assert secret.startswith("lv_")
    assert about.startswith("This is the key 'reports', shown only now: search, read; until ")
    listed = levada(tmp_path, "keys", "list").stdout
    assert listed.startswith("reports  search, read; until ")
    assert secret not in listed
    assert told(tmp_path, "keys", "revoke", "reports") == {"revoked": "reports"}
    assert levada(tmp_path, "keys", "list").returncode == 3


def test_embed_prints_the_line_to_paste(tmp_path: Path) -> None:
    words = ("embed", "--origin", "https://Blog.example.org/", "--server", "https://search.example.org/c/blog/")
    shown = levada(tmp_path, *words).stdout
    assert '<script src="https://search.example.org/c/blog/embed/search.js" data-key="lv_' in shown
    assert "only searches, for pages of https://blog.example.org." in shown
    assert "levada keys revoke blog.example.org" in shown
    assert "as long as there is no user" in shown
    made = told(tmp_path, *words, "--name", "second", "--placeholder", 'Find "it"')
    assert made["key"]["scopes"] == ["search"]
    assert (made["key"]["rate"], made["key"]["results"]) == (120, 50)
    assert 'data-placeholder="Find &quot;it&quot;"' in made["html"]
    assert f"opensearch.xml?key={made['secret']}" in made["opensearch"]


@pytest.mark.parametrize(
    ("words", "status", "sentence"),
    [
        (("users", "add", "ada", "--role", "king"), 2, 'there is no role "king": choose reader, editor, admin'),
        (("users", "role", "ada", "admin"), 3, "there is no user ada: nobody was added yet"),
        (("users", "list"), 3, "there is no user in "),
        (("users", "log"), 3, "nothing is in the log"),
        (("keys", "add", "k", "--scope", "all"), 2, 'there is no scope "all"'),
        (("keys", "add", "k", "--expires", "soon"), 2, "--expires takes a duration such as 12h, 90d or 1y, not 'soon'"),
        (("keys", "revoke", "k"), 3, "there is no key k: none was added yet"),
        (("embed", "--origin", "blog"), 2, "'blog' is no origin: write it like https://blog.example.org"),
        (("embed", "--origin", "https://a.example", "--server", "b"), 2, "--server takes an address such as"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(
    tmp_path: Path, words: tuple[str, ...], status: int, sentence: str
) -> None:
    done = levada(tmp_path, *words)
    assert done.returncode == status
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_user_that_exists_and_a_short_password_are_refused(tmp_path: Path) -> None:
    assert levada(tmp_path, "users", "add", "ada", typed="short\n").returncode == 2
    assert levada(tmp_path, "users", "add", "ada").returncode == 0
    twice = levada(tmp_path, "users", "add", "Ada")
    assert (twice.returncode, "there is a user Ada already" in twice.stderr) == (2, True)


def test_a_damaged_access_file_is_said_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "access.db").write_bytes(b"nothing of ours" * 500)
    for words in (("users", "list"), ("keys", "list"), ("serve", "--port", "0")):
        done = levada(tmp_path, *words)
        assert (done.returncode, done.stderr.count("\n")) == (1, 1)
        assert "is damaged, and nobody can log in: restore a copy" in done.stderr
