"""Which addresses the rules of a site take in, and what is said of patterns that are wrong."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.core.errors import SettingsError
from levada.core.settings import parse_settings
from levada.core.site_rules.extent import extent_of, folder_of
from levada.core.site_rules.paths import fits
from levada.core.site_rules.rules import SiteRules
from levada.core.site_rules.section import SiteSettings
from levada.testing.common import properties

SITE = "https://a.test"


@pytest.mark.parametrize(
    ("pattern", "path", "is_met"),
    [
        ("/docs/*", "/docs/a", True),
        ("/docs/*", "/docs/a/b?c=d", True),
        ("/docs/*", "/docs/", True),
        ("/docs/*", "/docs", False),
        ("/docs/*", "/de/docs/a", False),
        ("/docs/", "/docs/a/b", True),
        ("/docs", "/docs", True),
        ("/docs", "/docs/a", True),
        ("/docs", "/docs?page=2", True),
        ("/docs", "/docs-old", False),
        ("*.pdf", "/a.pdf", True),
        ("*.pdf", "/x/y/a.pdf?download=1", True),
        ("*.pdf", "/x/a.pdfs", False),
        ("archive/*", "/de/archive/2019", True),
        ("/*/comments", "/a/comments/2", True),
        ("/*/comments", "/a/b/comments", False),
        ("/**/comments", "/a/b/comments", True),
        ("/café menü/*", "/caf%C3%A9%20men%C3%BC/1", True),
        ("re:[?&]sort=", "/list?sort=price", True),
        ("re:^/v[0-9]+/", "/v12/x", True),
        ("re:^/v[0-9]+/", "/x/v12/", False),
        ("re:/(çay|kahve)/", "/%C3%A7ay/1", True),
    ],
)
def test_a_pattern_means_what_it_says(pattern: str, path: str, is_met: bool) -> None:
    assert fits(pattern)(path) is is_met


PATHS = st.from_regex(r"/([a-c]{1,2}/){0,3}[a-c]{0,2}(\?[a-c]=[a-c])?", fullmatch=True)


@properties(100)
@given(st.from_regex(r"/([a-c*?]{1,2}/){0,2}[a-c*]{0,2}", fullmatch=True), PATHS, PATHS)
def test_what_a_glob_matches_takes_along_what_is_below(glob: str, path: str, more: str) -> None:
    is_met = fits(glob)
    if is_met(path) and "?" not in path:
        assert is_met(path.removesuffix("/") + more)


@properties(100)
@given(PATHS, st.lists(PATHS, max_size=2), st.lists(PATHS, max_size=2))
def test_exclude_is_stronger_than_include(path: str, include: list[str], exclude: list[str]) -> None:
    extent = extent_of(SiteSettings(match="a.test", include=tuple(include), exclude=tuple(exclude)))
    out = extent.keeps_out(path) if extent is not None else ""
    left_out, taken = (any(fits(each)(path) for each in patterns) for patterns in (exclude, include))
    assert out == ("exclude" if left_out else "" if taken or not include else "include")


def test_a_start_needs_no_match_but_is_excluded_like_any_other() -> None:
    rules = SiteRules(
        [SiteSettings(match="a.test", folders=("/docs/",), include=("*.html",), exclude=("/docs/old/*",))]
    )
    assert rules.kept_out(f"{SITE}/", 0, named=True) == ""
    assert rules.kept_out(f"{SITE}/", 0) == "folders"
    assert rules.kept_out(f"{SITE}/docs/x", 1) == "include"
    assert rules.kept_out(f"{SITE}/docs/old/x.html", 0, named=True) == "exclude"
    assert rules.kept_out("https://b.test/", 5) == ""


def test_depth_counts_links_from_the_starts() -> None:
    rules = SiteRules([SiteSettings(match="a.test", depth=0)])
    assert rules.kept_out(f"{SITE}/", 0) == ""
    assert rules.kept_out(f"{SITE}/a", 1) == "depth"
    assert rules.kept_out(f"{SITE}/a", 1, named=True) == ""


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('include = ["re:a(?=b)"]', "look-around"),
        ('exclude = ["re:("]', "missing"),
        ('exclude = ["re:(a{1,1000}){1,1000}"]', "is no regular expression"),
        (f'include = ["/{"a" * 600}"]', "a glob has at most 500 characters, not 601"),
        (f'include = ["re:{"a" * 1001}"]', "at most 1000 characters"),
        ('include = ["https://a.test/docs/*"]', 'write the path alone, such as "/docs/*"'),
        ('folders = ["docs"]', "folders takes paths such as \"/docs/\", not 'docs'"),
        ("depth = -1", "depth: expected a whole number >= 0"),
        ("include = [" + '"/a",' * 201 + "]", "length <= 200"),
    ],
)
def test_a_wrong_pattern_is_refused_at_once_with_its_key(line: str, said: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(said)):
        parse_settings(f'[[site]]\nmatch = "a.test"\n{line}\n', "levada.toml")


@pytest.mark.parametrize(
    ("url", "folder"),
    [(f"{SITE}/", "/"), (f"{SITE}/a", "/"), (f"{SITE}/a/b?c=/d/", "/a/"), (f"{SITE}/a/b/", "/a/b/")],
)
def test_the_folder_of_an_address(url: str, folder: str) -> None:
    assert folder_of(url) == folder
