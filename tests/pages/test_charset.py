"""Bytes become the text that was meant."""

from __future__ import annotations

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st
from webencodings.labels import LABELS

from levada.core.records import RawPage
from levada.pages.charset import LOOK, MAX_HEAD, PRESCAN, codec_of, declared, decode, says_utf8, unmarked_utf16
from levada.pages.compression import unpack_text
from levada.pages.parse import parse_page

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


META = '<meta charset="windows-1254">'


@pytest.mark.parametrize(
    "head",
    [
        f"<script>{'x' * 5000}</script>{META}",
        f"<style>a > b {{}} {'x' * 50_000}</style><title>a <b> c</title>{META}",
        f"<!-- <meta charset=koi8-r> -->{META}",
        f"<!--> {META} -->",
        f"<a title='<meta charset=koi8-r>'></a>{META}",
        f"<meta name=description content='charset=koi8-r'>{META}",
        f"<meta charset=nonsense>{META}",
        "<META HTTP-EQUIV=Content-Type CONTENT='text/html; CHARSET = WINDOWS-1254'>",
        "<meta content='text/html; charset=windows-1254' http-equiv=content-type>",
        f"<script>{'x' * PRESCAN}</script><script>'<meta charset=koi8-r>'</script>{META}",
        f"<meta =><meta a='b' charset>{META}",
    ],
)
def test_a_declaration_counts_anywhere_in_the_head_but_in_no_comment(head: str) -> None:
    decoded = decode(page(TURKISH, head).encode("cp1254"), "text/html")
    assert (decoded.charset, TURKISH in decoded.utf8.decode()) == ("windows-1254", True)


@pytest.mark.parametrize(
    "body",
    [
        f"<!-- {META}",
        f"<title>{'x' * PRESCAN}</title><title>{META}</title>",
        f"<body>{'x' * PRESCAN}</body>{META}",
        f"<head>{'x' * PRESCAN}</head><p>{META}",
        f"<script>{'x' * MAX_HEAD}</script>{META}",
        f"<p title='{META}",
    ],
)
def test_no_declaration_is_read_in_comments_titles_or_far_below_the_head(body: str) -> None:
    assert declared(body.encode(), "text/html") is None


@pytest.mark.parametrize(
    "piece",
    [b"<", b"<a", b'<a "', b"<a =\"<a ='", b"<!--", b"<!-- <meta charset=koi8-r> ", b"<meta ", b"<meta a=", b"<p x='>",
     b"<script>", b"<title></titl", b"<meta charset=x>", b"<meta " + b"a=b " * 500, b"=\"='", b"</"],
)  # fmt: skip
def test_a_hostile_head_is_read_once(piece: bytes) -> None:
    # Were any of these read again from each of its places, this test would take hours.
    assert declared(piece * (2 * MAX_HEAD // len(piece)), "") in (None, "koi8-r")
    decode(piece * (2 * MAX_HEAD // len(piece)) + "Füße".encode("cp1252"), "")


RUSSIAN = "Совет решил, что мост не так надёжен, как это было, и он на год закрыт для всех."
UKRAINIAN = "Рада вирішила, що міст уже не такий надійний, як був, і його закриють на рік."
POLISH = "Rada zdecydowała, że most nie jest bezpieczny i będzie zamknięty dla ruchu przez cały rok."
GREEK = "Το συμβούλιο αποφάσισε ότι η γέφυρα δεν είναι πια ασφαλής και θα μείνει κλειστή."
HEBREW = "המועצה החליטה שהגשר כבר אינו בטוח ולכן הוא ייסגר לתנועה למשך שנה."
ARABIC = "قال المجلس إن الجسر في المدينة غير آمن على السيارات وسوف يغلق لمدة سنة"
JAPANESE = "市議会は、橋はもう安全ではないと判断し、一年間通行止めにすることを決めました。"
CHINESE = "市議會決定，這座橋已經不再安全，因此將關閉一年，等待維修。"


@pytest.mark.parametrize(
    ("codec", "text"),
    [
        ("cp1251", RUSSIAN), ("koi8-r", RUSSIAN), ("iso8859-5", RUSSIAN), ("cp866", RUSSIAN), ("cp1251", UKRAINIAN),
        ("koi8-u", UKRAINIAN), ("cp1250", POLISH), ("iso8859-2", POLISH), ("cp1253", GREEK), ("iso8859-7", GREEK),
        ("cp1255", HEBREW), ("iso8859-8", HEBREW), ("cp1256", ARABIC), ("iso8859-6", ARABIC), ("cp932", JAPANESE),
        ("euc_jp", JAPANESE), ("iso2022_jp", JAPANESE), ("gb18030", CHINESE), ("big5", CHINESE),
        ("euc_kr", "시의회는 다리가 더 이상 안전하지 않다고 보고 일 년 동안 막기로 결정했습니다."),
        ("cp874", "สภาตัดสินใจว่าสะพานไม่ปลอดภัยอีกต่อไป และจะปิดเป็นเวลาหนึ่งปี"),
        ("cp1254", "Kurul, köprünün artık güvenli olmadığına ve bir yıl boyunca kapatılacağına karar verdi."),
        ("cp1257", "Taryba nusprendė, kad tiltas nebėra saugus, todėl jis metams bus uždarytas visiems."),
        ("cp1252", "Der Rat hat entschieden, dass die Brücke für ein Jahr gesperrt wird – für alle."),
        ("cp1252", "Le conseil a décidé que le pont n’est plus sûr et qu’il sera fermé à la circulation."),
        ("utf-8", RUSSIAN), ("utf-8", JAPANESE),
    ],
)  # fmt: skip
def test_text_of_every_script_is_read_where_nothing_declares_its_encoding(codec: str, text: str) -> None:
    decoded = decode(page(f"{'<p class=a>' * 500}{text}").encode(codec), "text/html")
    assert text in decoded.utf8.decode()
    assert not decoded.damaged


def test_the_language_of_a_page_and_the_country_of_its_address_help_to_guess() -> None:
    body = page("Şık").encode("cp1254")
    assert "Þýk" in decode(body).utf8.decode()
    assert "Şık" in decode(body, "", "https://www.example.com.tr/a?b").utf8.decode()
    assert "Şık" in decode(b"<html lang=tr-TR>" + body, "", "https://example.de/").utf8.decode()


@given(st.text(max_size=60))
def test_any_address_is_good_for_a_hint(url: str) -> None:
    decode("<p>Füße".encode("cp1252"), "", "http://" + url).utf8.decode()


def test_an_encoding_of_many_bytes_that_the_bytes_contradict_is_not_believed() -> None:
    body = page(RUSSIAN).encode("cp1251")
    for label in ("utf-8", "shift_jis", "euc-kr"):
        assert RUSSIAN in decode(body, f"text/html; charset={label}").utf8.decode()


def test_a_page_in_four_encodings_is_read_as_most_of_it_is_written() -> None:
    parts = [RUSSIAN.encode("cp1251") * 6, JAPANESE.encode("cp932"), "Füße".encode("cp1252"), GREEK.encode()]
    decoded = decode(b"<meta charset=koi8-u><p>" + b"<p>".join(parts), "text/html; charset=utf-8")
    assert decoded.utf8.decode().count("<p>") == 4
    assert decoded.charset == "koi8-u"  # what the page says itself comes before a guess
    undeclared = decode(b"<p>" + b"<p>".join(parts), "text/html; charset=utf-8")
    assert RUSSIAN in undeclared.utf8.decode()


WIDE = {
    "Turkish": TURKISH,
    "Russian": "Мост отремонтируют весной, решил совет города после долгих споров.",
    "Japanese": "市議会は火曜日に会合を開き、長い議論の末に、古い橋を修理することを決定した。",
    "beyond sixteen bits": "𝔅𝔯𝔦𝔡𝔤𝔢 😀 " * 20,
}


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("said", WIDE.values(), ids=WIDE)
@pytest.mark.parametrize("declaration", ["text/html", "text/html; charset=utf-8", "text/html; charset=utf-16"])
def test_utf16_without_a_mark_is_read_whatever_is_declared(codec: str, said: str, declaration: str) -> None:
    written = page(said * 50, '<meta charset="utf-8"><title>Bridge</title>')
    decoded = decode(written.encode(codec), declaration)
    assert (decoded.utf8.decode(), decoded.charset.lower()) == (written, codec.replace("16-", "16"))
    assert not says_utf8(written.encode(codec), declaration)
    parsed = parse_page(RawPage("http://example.org/", written.encode(codec), declaration))
    assert (parsed.title, parsed.reason) == ("Bridge", None)
    assert said.split()[0] in unpack_text(parsed.content_zstd).decode()


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be"])
def test_plain_text_in_utf16_without_a_mark_is_read(codec: str) -> None:
    said = "Мост отремонтируют весной.\nСовет города решил так после долгих споров."
    parsed = parse_page(RawPage("http://example.org/a.txt", said.encode(codec), "text/plain"))
    assert unpack_text(parsed.content_zstd).decode() == said


@given(st.binary(max_size=3000).filter(lambda body: b"\0" not in body[:LOOK]))
def test_bytes_without_a_zero_where_it_is_looked_for_are_no_utf16(body: bytes) -> None:
    assert unmarked_utf16(body) is None


@pytest.mark.parametrize(
    "body",
    [
        b"<\0p\0",  # too short to tell
        page("a" * 400).encode("utf-32-le"),
        bytes(2000),
        b"".join(number.to_bytes(2, "little") for number in range(2000)),
        page("zeros\0 in\0 text").encode(),
        b"x" * LOOK + page("late").encode("utf-16-le"),
        page("half \ud800 a pair").encode("utf-16-le", "surrogatepass"),
    ],
)
def test_other_bytes_with_zeros_are_no_utf16(body: bytes) -> None:
    assert unmarked_utf16(body) is None


@given(
    st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=600), st.sampled_from(["utf-16-le", "utf-16-be"])
)
def test_markup_is_enough_to_tell_the_order_of_bytes(said: str, codec: str) -> None:
    assert unmarked_utf16((" <p class='lead'>" * 70 + said).encode(codec)) == codec
