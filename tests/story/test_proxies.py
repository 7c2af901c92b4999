"""Crawls through real proxies, and what is left when none works."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from levada.core.settings import parse_settings
from tests.fetch.certificates import Authority
from tests.fetch.servers import WebServer, answer, web
from tests.servers.forward_proxies import ForwardProxy, socks_proxy, tinyproxy
from tests.servers.nginx import nginx
from tests.servers.private import free_ports
from tests.story.commands import contents
from tests.story.guides import guide_commands, guide_settings, typed
from tests.story.secrets_planted import leaks, run

PASSWORD = "hush-91d0-only-for-the-proxy"
KEY_PASSWORD = "hush-03be-only-for-the-key"
HTML = "Content-Type: text/html"


def page(title: str, *links: str) -> bytes:
    text = "".join(f'<a href="{link}">{link}</a> ' for link in links)
    return answer(f"<title>{title}</title><main><h1>{title}</h1><p>By the levada. {text}</p></main>".encode(), HTML)


@pytest.fixture
def blog() -> Iterator[WebServer]:
    with web({"/": page("A blog", "/one", "/two"), "/one": page("One"), "/two": page("Two")}) as server:
        yield server


@pytest.fixture
def tiny(tmp_path: Path) -> Iterator[ForwardProxy]:
    with tinyproxy(tmp_path / "tiny") as proxy:
        yield proxy


@pytest.fixture
def socks(tmp_path: Path) -> Iterator[ForwardProxy]:
    with socks_proxy(tmp_path / "socks") as proxy:
        yield proxy


def home_of(tmp_path: Path, blog: WebServer, more: str) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    polite = "[politeness]\ndelay = 0\nrobots_retry = 0.1\nbackoff = 0.1\n"
    (folder / "levada.toml").write_text(f'[guard]\nallow = ["{blog.address}"]\n{polite}{more}\n')
    return folder


def test_the_guide_does_what_it_says(tmp_path: Path, blog: WebServer, tiny: ForwardProxy, socks: ForwardProxy) -> None:
    names = {
        "127.0.0.1:3128": f"127.0.0.1:{tiny.port}",
        "127.0.0.1:1080": f"127.0.0.1:{socks.port}",
        "https://blog.example.org": blog.url,
        "intranet.example.org": blog.address,
    }
    settings = guide_settings("proxies")[0]
    for theirs, ours in names.items():
        settings = settings.replace(theirs, ours)
    home = home_of(tmp_path, blog, settings)
    crawl, show, change, directly = guide_commands("proxies")
    crawled = typed(crawl, home, names)
    assert crawled.returncode == 0, crawled.stderr
    assert {f"{blog.url}/", f"{blog.url}/one", f"{blog.url}/two"} <= set(contents(home / "levada-data"))
    assert tiny.asked()
    assert socks.asked()
    assert f"127.0.0.1:{tiny.port}" in typed(show, home, names).stdout
    asked = len(tiny.asked()), len(socks.asked())
    assert typed(change, home, names).returncode == 0
    (home / "levada.toml").unlink()
    assert run(home, "check", f"{blog.url}/one").returncode == 0
    assert (len(tiny.asked()), len(socks.asked()) > asked[1]) == (asked[0], True)
    asked = len(tiny.asked()), len(socks.asked())
    done = typed(directly, home, names)
    assert f"{blog.address}: proxy = []" in done.stdout, done.stderr
    assert run(home, "check", f"{blog.url}/two").returncode == 0
    assert (len(tiny.asked()), len(socks.asked())) == asked


@pytest.mark.parametrize("place", range(len(guide_settings("proxies"))))
def test_every_rule_of_the_guide_can_be_written(place: int) -> None:
    given = parse_settings(guide_settings("proxies")[place], "the guide")
    assert given.site or given.fetch.proxy


def test_without_a_proxy_that_works_the_site_rests_and_goes_on_when_one_does(tmp_path: Path, blog: WebServer) -> None:
    (port,) = free_ports(1)
    home = home_of(tmp_path, blog, f'[fetch]\nproxy = ["http://127.0.0.1:{port}"]')
    done = run(home, "crawl", f"{blog.url}/", "--once")
    assert done.returncode == 1
    assert f"the proxy http://127.0.0.1:{port} does not work: it cannot be reached" in done.stderr
    assert contents(home / "levada-data") == {}
    assert blog.exchanges == []
    assert "proxy" in run(home, "why", f"{blog.url}/").stdout
    with tinyproxy(tmp_path / "late", port=port):
        assert run(home, "check", f"{blog.url}/").returncode == 0
        done = run(home, "crawl", "--once")
        assert done.returncode == 0, done.stderr
    assert len(contents(home / "levada-data")) == 3


@pytest.mark.timeout(300)
def test_what_opens_a_proxy_and_a_key_is_found_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority = Authority(tmp_path, "authority")
    own = authority.files("127.0.0.1")
    certificate, key = authority.client("me", KEY_PASSWORD)
    root = tmp_path / "root"
    root.mkdir()
    (root / "index.html").write_text("<title>In</title><main><h1>In</h1><p>Beside the levada.</p></main>")
    block = (
        f"ssl_certificate {own};\nssl_certificate_key {own};\nroot {root};\n"
        f"ssl_client_certificate {authority.ca_file};\nssl_verify_client on;\n"
    )
    with (
        nginx(tmp_path / "nginx", block, tls=True) as site,
        tinyproxy(tmp_path / "tiny", login=f"me {PASSWORD}") as tiny,
        socks_proxy(tmp_path / "socks", login=f"me {PASSWORD}") as socks,
    ):
        monkeypatch.setenv("KEY_PASSWORD", KEY_PASSWORD)
        monkeypatch.setenv("ONE", f"http://me:{PASSWORD}@127.0.0.1:{tiny.port}")
        (tmp_path / "two").write_text(f"socks5://me:{PASSWORD}@127.0.0.1:{socks.port}\n")
        monkeypatch.setenv("THREE", f"socks5://me:wrong{PASSWORD}@127.0.0.1:{socks.port}")
        home = tmp_path / "home"
        home.mkdir()
        (home / "levada.toml").write_text(
            f'[guard]\nallow = ["127.0.0.1:{site}"]\n[politeness]\ndelay = 0\n'
            f'[fetch]\nca_file = "{authority.ca_file}"\nproxy = ["env:ONE", "file:{tmp_path}/two", "env:THREE"]\n'
            f'[[site]]\nmatch = "127.0.0.1:{site}"\nclient_certificate = "{certificate}"\nclient_key = "{key}"\n'
            'client_key_password = "env:KEY_PASSWORD"\n'
        )
        done = run(home, "--log", "json", "crawl", f"https://127.0.0.1:{site}/", "--once")
        assert done.returncode == 0, done.stderr
        assert "env:THREE does not work: it does not let us in" in done.stderr
        assert tiny.asked()
        assert socks.asked()
        assert f"https://127.0.0.1:{site}/" in contents(home / "levada-data")
        inside = key.read_text().splitlines()[2]
        secrets = {"the proxies' password": PASSWORD, "the key's password": KEY_PASSWORD, "the key": inside}
        assert leaks(home, secrets, done.stdout + done.stderr) == []
