"""Watch a blog and get a mail with the difference: the guide's own commands, typed in a fresh folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.servers.mail import MailServer, mail_server

pytestmark = pytest.mark.timeout(240)

GUIDE = (Path(__file__).parents[2] / "docs" / "guides" / "watch-a-blog.md").read_text(encoding="utf-8")
BLOG, MAIL = "https://blog.example.org", "mail.example.org:587"
A_DAY_PER_SECOND = 86_400.0  # so fast is the clock: a day passes in a second, and every page is due again
PAGE = "<!doctype html><title>{title}</title><main><h1>{title}</h1><p>{text}</p><p>{more}</p></main>"
MORE = "Every Saturday we walk along the old channels above the valley and write down what we have seen there."


def post(blog: Path, name: str, title: str, text: str) -> None:
    (blog / name).write_text(PAGE.format(title=title, text=text, more=MORE), encoding="utf-8")


@contextmanager
def blog_server(folder: Path) -> Iterator[str]:
    command = [sys.executable, "-u", "-m", "http.server", "0", "--bind", "127.0.0.1", "--directory", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as running:
        try:
            assert running.stdout is not None
            found = re.search(r"port (\d+)", running.stdout.readline())
            assert found is not None
            yield f"127.0.0.1:{found[1]}"
        finally:
            running.kill()


def commands(language: str = "") -> list[str]:
    """The first block of the guide, a command each line."""
    found = re.search(rf"```{language}\n(.*?)```", GUIDE, re.DOTALL)
    assert found is not None
    return found[1].splitlines()


def typed(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """By a shell, in the folder, with the `levada` of this tree."""
    binaries = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["sh", "-c", command],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PATH": binaries},
    )


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "watch"
    folder.mkdir()
    return folder


def allowed(home: Path, *places: str) -> None:
    """The guide's lines for a blog and a mail server of one's own network."""
    (line,) = re.findall(r'^allow = \["[\d.]+:\d+"\]$', GUIDE, re.MULTILINE)
    names = ", ".join(f'"{each}"' for each in places)
    clock = f"[clock]\nspeed = {A_DAY_PER_SECOND}\n"
    (home / "levada.toml").write_text(f"[guard]\n{line.partition('[')[0]}[{names}]\n{clock}", encoding="utf-8")


def blog_with(tmp_path: Path) -> Path:
    blog = tmp_path / "blog"
    blog.mkdir()
    (blog / "index.html").write_text(
        "<!doctype html><title>A blog</title><main><h1>A blog</h1><p>Walks and channels.</p>"
        '<a href="walk.html">A walk</a></main>',
        encoding="utf-8",
    )
    post(blog, "walk.html", "A walk", "The path along the levada is closed until March.")
    return blog


def test_a_change_of_the_blog_comes_as_a_mail_with_the_difference(tmp_path: Path, home: Path) -> None:
    lines, blog = commands(), blog_with(tmp_path)
    assert len(lines) <= 5
    with blog_server(blog) as web, mail_server(tmp_path / "mail") as server:
        allowed(home, web, server.place)
        for number, line in enumerate(lines, 1):
            if number == len(lines):
                post(blog, "walk.html", "A walk", "The path along the levada is open again.")
            command = line.replace(BLOG, f"http://{web}").replace(MAIL, server.place)
            assert command.startswith("levada ")
            ended = typed(command, home)
            assert ended.returncode == 0, f"{command}\n{ended.stdout}{ended.stderr}"
        check_mails(server)


def check_mails(server: MailServer) -> None:
    test, news = server.mails()
    assert test["Subject"] == "Changed: This is a test"
    assert (news["Subject"], news["To"]) == ("Changed: A walk", "me@example.org")
    text, html = (news.get_body((kind,)) for kind in ("plain", "html"))
    assert text is not None
    assert html is not None
    told = text.get_content()
    assert "-The path along the levada is closed until March." in told
    assert "+The path along the levada is open again." in told
    assert "<b>open again</b>" in html.get_content()
    assert MORE not in told  # only what came and went


def test_a_mail_server_that_is_down_fails_the_line_of_the_crontab_and_the_next_one_tells(
    tmp_path: Path, home: Path
) -> None:
    *before, once = commands()
    blog = blog_with(tmp_path)
    with blog_server(blog) as web:
        with mail_server(tmp_path / "mail") as server:
            allowed(home, web, server.place)
            for line in before:
                assert typed(line.replace(BLOG, f"http://{web}").replace(MAIL, server.place), home).returncode == 0
        post(blog, "walk.html", "A walk", "The path along the levada is open again.")
        failed = typed(once, home)
        assert failed.returncode == 1
        assert f"mail: the mail server {server.place} cannot be reached" in failed.stderr
        with mail_server(tmp_path / "mail", port=server.port):
            ended = typed(once, home)
            assert ended.returncode == 0, ended.stderr
        check_mails(server)
