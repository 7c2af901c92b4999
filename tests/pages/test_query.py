"""Queries are understood as they are meant."""

from __future__ import annotations

from math import nextafter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from levada.core.errors import BadQuery
from levada.core.search_records import Query
from levada.search.query import DEEPEST_HIT, LONGEST_QUERY, MOST_TERMS, one_word, parse_page_of_hits, parse_query
from levada.search.terms import Ask, Language, Since, SiteFilter, Term, Until, UrlWords, Words, site_names

NOW = 1_800_000_000.0
DAY = 86_400.0


def word(typed: str) -> Words:
    return Words((typed.lower(),), typed)


def asked(text: str) -> tuple[tuple[Term, ...], ...]:
    return parse_query(text, NOW).must


def test_words_must_all_be_there() -> None:
    assert asked("Ferry pier") == ((word("Ferry"),), (word("pier"),))


def test_or_binds_closer_than_the_space() -> None:
    assert asked("a OR b OR c d") == ((word("a"), word("b"), word("c")), (word("d"),))
    assert asked("a or b") == ((word("a"),), (word("or"),), (word("b"),))


def test_quotes_of_any_kind_make_a_phrase_of_exact_forms() -> None:
    phrase = Words(("sea", "bus"), "Sea Bus", quoted=True)
    assert asked('"Sea Bus"') == asked("“Sea Bus”") == asked("«Sea Bus»") == ((phrase,),)
    assert asked('"ferries"') == ((Words(("ferries",), "ferries", quoted=True),),)


def test_a_word_with_an_apostrophe_may_be_a_form_of_its_longest_part() -> None:
    whole, part = Words(("istanbul", "dan"), "İstanbul'dan"), Words(("istanbul",), "İstanbul")
    assert asked("İstanbul'dan") == ((whole, part),)
    assert parse_query("x -İstanbul'dan", NOW).must_not == (whole,)
    for alone in ("it's", "пам'ять", "e-mail", "e-mail's"):
        (group,) = asked(alone)
        assert len(group) == 1, alone


def test_a_word_that_folding_splits_is_a_phrase() -> None:
    assert asked("e-mail") == ((Words(("e", "mail"), "e-mail"),),)
    assert asked("http://x.org") == ((Words(("http", "x", "org"), "http://x.org"),),)


def test_a_minus_excludes_what_follows_it() -> None:
    ask = parse_query('ferry -bridge -"old town" -site:x.org', NOW)
    assert ask.must_not == (word("bridge"), Words(("old", "town"), "old town", quoted=True), SiteFilter("x.org"))
    assert parse_query("-bridge", NOW) == Ask((), (word("bridge"),))


def test_and_binds_the_words_on_both_sides() -> None:
    a, b = replace(word("a"), needed=True), replace(word("b"), needed=True)
    assert parse_query("a AND b c", NOW) == Ask(((a,), (b,), (word("c"),)))
    assert parse_query("a AND NOT c", NOW) == Ask(((a,),), (word("c"),)) == parse_query("a AND -c", NOW)
    assert parse_query("x AND a OR b", NOW).must[1] == (a, b)


def test_a_repeated_word_counts_as_often_as_it_was_typed() -> None:
    assert asked("su su deniz") == ((replace(word("su"), times=2),), (word("deniz"),))


@pytest.mark.parametrize(
    ("typed", "term"),
    [
        ("site:Example.ORG", SiteFilter("example.org")),
        ("SITE:example.org.", SiteFilter("example.org")),
        ("site:münchen.de:8080", SiteFilter("xn--mnchen-3ya.de:8080")),
        ("lang:tr", Language("tr")),
        ("lang:TR-tr", Language("tr")),
        ("since:7d", Since(NOW - 7 * DAY)),
        ("since:24H", Since(NOW - DAY)),
        ("since:30m", Since(NOW - 1_800)),
        ("since:2w", Since(NOW - 14 * DAY)),
        ("since:2026-01-31", Since(1_769_817_600.0)),
        ("since:2026-02", Since(1_769_904_000.0)),
        ("since:2026", Since(1_767_225_600.0)),
        ("until:7d", Until(NOW - 7 * DAY)),
        ("until:2026-01-31", Until(nextafter(1_769_904_000.0, 0))),
        ("until:2026-01", Until(nextafter(1_769_904_000.0, 0))),
        ("title:Ferry", Words(("ferry",), "Ferry", field="title")),
        ('title:"Sea Bus"', Words(("sea", "bus"), "Sea Bus", quoted=True, field="title")),
        ("title:fer*", Words(("fer",), "fer", prefix=True, field="title")),
        ("url:2026/05", UrlWords(("2026", "05"))),
        ("url:yaz%C4%B1*", UrlWords(("yazi",), prefix=True)),
        ('"sea bus"~5', Words(("sea", "bus"), "sea bus", quoted=True, between=5)),
        ('"sea sea"~5', Words(("sea",), "sea sea", quoted=True)),
    ],
)
def test_filters_are_read(typed: str, term: Term) -> None:
    assert asked(typed) == ((term,),)


def test_filters_can_be_alternatives_and_then_name_the_languages() -> None:
    ask = parse_query("su lang:tr OR lang:az", NOW)
    assert ask.must[1] == (Language("tr"), Language("az"))
    assert ask.languages() == frozenset({"tr", "az"})
    assert parse_query("su OR lang:tr", NOW).languages() is None
    assert parse_query("lang:tr lang:en", NOW).languages() == frozenset()


A, B, C = word("a"), word("b"), word("c")


@pytest.mark.parametrize(
    ("typed", "ask"),
    [
        ("(a b) c", Ask(((A,), (B,), (C,)))),
        ("((a)) () b", Ask(((A,), (B,)))),
        ("(a OR b) c", Ask(((A, B), (C,)))),
        ("a OR (b OR c)", Ask(((A, B, C),))),
        ("(a b) OR c", Ask(((Ask(((A,), (B,))), C),))),
        ("(a -b) OR c", Ask(((Ask(((A,),), (B,)), C),))),
        ("a OR -b", Ask(((A, Ask((), (B,))),))),
        ("a OR NOT b", Ask(((A, Ask((), (B,))),))),
        ("a -(b OR c)", Ask(((A,),), (B, C))),
        ("a NOT (b c)", Ask(((A,),), (Ask(((B,), (C,))),))),
        ("(a) AND b", Ask(((replace(A, needed=True),), (replace(B, needed=True),)))),
        ("a(b c)", Ask(((A,), (B,), (C,)))),
        ("f(x) b", Ask(((Words(("f", "x"), "f(x)"),), (B,)))),
    ],
)
def test_parentheses_hold_together_what_stands_in_them(typed: str, ask: Ask) -> None:
    assert parse_query(typed, NOW) == ask


EXPRESSIONS = st.recursive(
    st.sampled_from("abc"),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda two: f"({two[0]} AND {two[1]})"),
        st.tuples(inner, inner).map(lambda two: f"({two[0]} OR {two[1]})"),
        inner.map(lambda one: f"(NOT {one})"),
    ),
    max_leaves=8,
)


def holds(ask: Term, letters: str) -> bool:
    if isinstance(ask, Words):
        return ask.folded[0] in letters
    assert isinstance(ask, Ask)
    every = all(any(holds(term, letters) for term in group) for group in ask.must)
    return every and not any(holds(term, letters) for term in ask.must_not)


@given(EXPRESSIONS, st.sampled_from(["", "a", "b", "c", "ab", "ac", "bc", "abc"]))
def test_and_or_not_and_parentheses_mean_what_they_mean_in_logic(typed: str, letters: str) -> None:
    python = typed.replace("AND", "and").replace("OR", "or").replace("NOT", "not")
    expected = eval(python, {"__builtins__": {}}, {letter: letter in letters for letter in "abc"})
    assert holds(parse_query(typed, NOW), letters) is expected


def test_a_field_that_does_not_exist_is_searched_as_a_word_and_said() -> None:
    ask = parse_query("std:string sort", NOW)
    assert ask.must == ((Words(("std", "string"), "std:string"),), (word("sort"),))
    assert ask.notes == ("column 1: there is no field std:, so it is searched for as a word",)
    assert parse_query('"titel:ferry" http://x.org a::b 10:30', NOW).notes == ()


def test_a_text_that_is_no_query_is_searched_for_its_words() -> None:
    text = "He said: the (old) ferry:) sails or so " + " ".join(f"word{n}" for n in range(20)) + ' "today'
    ask = parse_query(text, NOW)
    assert (word("ferry:)") in {term for group in ask.must for term in group}) is False
    assert {each.folded[0] for each in ask.words()} >= {"old", "ferry", "word7", "today"}
    assert ask.notes[0].startswith("searched as plain text, because it is no valid query: column ")
    with pytest.raises(BadQuery):
        parse_query('ferry "today', NOW)


def test_punctuation_alone_is_passed_over() -> None:
    assert asked("salt & pepper — !") == ((word("salt"),), (word("pepper"),))


@pytest.mark.parametrize(
    ("typed", "column"),
    [
        ("", 1),
        (" - & ", 1),
        ('pier "sea bus', 6),
        ('pier -"sea', 7),
        ("OR b", 1),
        ("a OR", 3),
        ("a OR OR b", 6),
        ("AND b", 1),
        ("a AND", 3),
        ("a AND AND b", 7),
        ("a AND OR b", 7),
        ("a NOT OR b", 7),
        ("NOT NOT b", 5),
        ("a OR ()", 3),
        ("(a b", 1),
        ("x (a OR (b c)", 3),
        ("a) b", 2),
        ("a OR )", 3),
        ("(a OR) b", 4),
        ("(" * 21 + "a" + ")" * 21, 21),
        ('"a b"~', 6),
        ('"a b"~101', 6),
        ("title:", 7),
        ('url:""', 6),
        ("until:soon", 7),
        ("titel:ferry", 1),
        ("pier -sites:x.org", 7),
        ("intitle:ferry", 1),
        ("NOT", 1),
        ("a site:", 8),
        ("site:a/b", 6),
        ("site:a@b", 6),
        ("site:[", 6),
        ("lang:turkish", 6),
        ("pier since:yesterday", 12),
        ("since:2026-13-01", 7),
        ("since:9999999d", 7),
    ],
)
def test_what_cannot_be_understood_is_named_by_its_column(typed: str, column: int) -> None:
    with pytest.raises(BadQuery, match=rf"^column {column}: "):
        parse_query(typed, NOW)


def test_a_query_has_a_greatest_length_and_number_of_terms() -> None:
    with pytest.raises(BadQuery, match=f"{LONGEST_QUERY} are the limit"):
        parse_query("x" * (LONGEST_QUERY + 1), NOW)
    assert len(parse_query(" ".join(map(str, range(1_000))), NOW).must) == 1_000, "words are ranked, all need not match"
    parse_query("-x " * MOST_TERMS, NOW)
    with pytest.raises(BadQuery, match=f"column {3 * MOST_TERMS + 1}: more than {MOST_TERMS}"):
        parse_query("-x " * (MOST_TERMS + 1), NOW)
    with pytest.raises(BadQuery, match=f"more than {MOST_TERMS}"):
        parse_query("x" + " OR x" * (MOST_TERMS + 1), NOW)


PIECES = st.sampled_from(
    [
        "a",
        "İ",
        '"',
        "-",
        "OR",
        "AND",
        "NOT",
        " ",
        "(",
        ")",
        '"a b"~2',
        "~",
        "title:",
        "url:",
        "until:",
        "titel:",
        "*",
        "site:",
        "lang:",
        "ſince:",
        "since:",
        "7d",
        "tr",
        ":",
        "[",
        "東",
        "\ud800",
    ]
)


@given(st.one_of(st.text(max_size=LONGEST_QUERY + 5), st.lists(PIECES).map("".join)))
def test_any_text_is_understood_or_refused(text: str) -> None:
    try:
        ask = parse_query(text, NOW)
    except BadQuery:
        return
    assert ask.must or ask.must_not
    assert all(each.folded for each in ask.words())


@pytest.mark.parametrize(("limit", "offset"), [(-1, 0), (1, -1), (1, DEEPEST_HIT), (DEEPEST_HIT + 1, 0)])
def test_hits_that_nobody_reads_are_not_ranked(limit: int, offset: int) -> None:
    with pytest.raises(BadQuery):
        parse_page_of_hits(Query("a", limit=limit, offset=offset))


def test_time_is_the_machines_unless_given() -> None:
    (since,) = parse_page_of_hits(Query("since:1d", now=DAY)).must[0]
    assert since == Since(0.0)
    (since,) = parse_page_of_hits(Query("since:1d")).must[0]
    assert isinstance(since, Since)
    assert since.at > NOW - 10 * 365 * DAY


def test_one_word_is_one_word() -> None:
    assert one_word("İstanbul!") == "istanbul"
    for text in ("", "two words", "e-mail"):
        with pytest.raises(BadQuery):
            one_word(text)


def test_a_site_is_named_by_its_host_and_those_above_it_with_or_without_port() -> None:
    assert site_names("www.a.org") == ["www.a.org", "a.org", "org"]
    assert site_names("a.org:81") == ["a.org", "org", "a.org:81", "org:81"]
    assert site_names("[::1]:81") == ["[::1]", "[::1]:81"]
    assert site_names("[::1]") == ["[::1]"]
