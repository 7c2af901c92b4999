"""Bytes become the text that was meant."""

from __future__ import annotations

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st
from webencodings.labels import LABELS

from levada.pages.charset import codec_of, decode

TURKISH = "İstanbul'da ışıklı bir akşam, çağdaş şiir"


def page(text: str, head: str = "") -> str:
    return f"<html><head>{head}</head><body>{text}</body></html>"


def test_utf8_is_passed_on_untouched() -> None:
    body = page(TURKISH).encode()
    decoded = decode(body, "text/html; charset=utf-8")
    assert decoded.utf8 is body
    assert decoded.charset == "utf-8"


@pytest.mark.parametrize(
    ("codec", "label"),
    [
        ("cp1254", "windows-1254"),
        ("iso8859-9", "iso-8859-9"),
        ("cp932", "Shift_JIS"),
        ("euc_jp", "euc-jp"),
        ("gb18030", "gb2312"),
        ("cp1251", "windows-1251"),
        ("koi8-r", "koi8-r"),
        ("big5", "big5"),
    ],
)
def test_header_and_meta_name_the_alphabet(codec: str, label: str) -> None:
    samples = {"cp932": "日本語の文章", "euc_jp": "日本語", "gb18030": "中文文章", "big5": "中文文章"}
    cyrillic = codec in ("cp1251", "koi8-r")
    text = samples.get(codec, "Привет, мир" if cyrillic else TURKISH)
    by_header = decode(page(text).encode(codec), f"text/html; charset={label}")
    by_meta = decode(page(text, f'<meta charset="{label}">').encode(codec), "text/html")
    by_equiv = decode(
        page(text, f"<meta http-equiv=Content-Type content='text/html; charset={label}'>").encode(codec), ""
    )
    for decoded in (by_header, by_meta, by_equiv):
        assert text in decoded.utf8.decode()
        assert not decoded.damaged


@pytest.mark.parametrize(
    ("mark", "codec"),
    [(codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"), (codecs.BOM_UTF8, "utf-8")],
)
def test_a_byte_order_mark_wins_over_the_header(mark: bytes, codec: str) -> None:
    decoded = decode(mark + page(TURKISH).encode(codec), "text/html; charset=windows-1252")
    assert decoded.utf8.decode() == page(TURKISH)


def test_a_header_that_says_latin1_over_utf8_bytes_is_not_believed() -> None:
    decoded = decode(page(TURKISH).encode(), "text/html; charset=ISO-8859-1")
    assert decoded.charset == "utf-8"
    assert TURKISH in decoded.utf8.decode()


def test_a_header_that_says_utf8_over_turkish_bytes_is_not_believed() -> None:
    body = page(TURKISH, "<meta charset=windows-1254>").encode("cp1254")
    decoded = decode(body, "text/html; charset=utf-8")
    assert TURKISH in decoded.utf8.decode()
    assert decoded.charset == "windows-1254"


def test_one_broken_byte_does_not_change_the_alphabet() -> None:
    body = page(TURKISH * 5).encode() + b"\xff"
    decoded = decode(body, "text/html; charset=utf-8")
    assert decoded.charset == "utf-8"
    assert decoded.damaged
    assert TURKISH in decoded.utf8.decode()


def test_where_nothing_is_declared_the_language_of_the_page_helps() -> None:
    turkish = decode(f'<html lang="tr">{TURKISH}</html>'.encode("cp1254"), "")
    assert (turkish.charset, TURKISH in turkish.utf8.decode()) == ("windows-1254", True)
    western = decode("<html>Füße</html>".encode("cp1252"), "")
    assert (western.charset, "Füße" in western.utf8.decode()) == ("windows-1252", True)


@pytest.mark.parametrize(
    "label", ["utf-7", "base64", "zlib", "rot13", "idna", "unicode_escape", "hex", "punycode", "mbcs"]
)
def test_no_label_reaches_a_codec_that_is_no_alphabet(label: str) -> None:
    assert codec_of(label) is None
    assert decode(b"+ADw-script+AD4-", f"text/html; charset={label}").utf8 == b"+ADw-script+AD4-"


@given(st.binary(max_size=300), st.sampled_from(["", "utf-8", "utf-16", "shift_jis", "gbk", "iso-2022-jp", "nonsense"]))
def test_any_bytes_become_valid_utf8(body: bytes, label: str) -> None:
    decode(body, f"text/html; charset={label}").utf8.decode()


def test_every_label_of_the_standard_names_a_codec_or_nothing() -> None:
    for label, name in LABELS.items():
        codec = codec_of(label)
        if name in ("replacement", "x-user-defined"):
            assert codec is None
        else:
            assert codec is not None
            assert "a" in b"a".decode(codec, "ignore") or codec.startswith("utf-16")
            assert codec_of(f" {label.upper()} ") == codec
