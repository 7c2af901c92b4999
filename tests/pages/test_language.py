"""The language of the text, not only of the label."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.core.errors import LevadaError
from levada.pages import language_model as model_module
from levada.pages.language import CODES, claimed, language_of
from levada.pages.language_model import (
    FIRST,
    LARGEST,
    MORE,
    UNKNOWN,
    WINDOWS,
    LanguageModel,
    features_of,
    language_model,
    plain_words,
    samples_of,
)
from levada.search.stemming import LANGUAGES

SAMPLES = {
    "tr": "Bu yıl yeni bir köprü için çok daha büyük bir bütçe ayrıldı ve ilk olarak iki yol onarıldı, ama "
    "her şey bitmedi.",
    "en": "The council has decided that the bridge will be repaired and it is not the only one which they "
    "have in mind.",
    "de": "Der Rat hat entschieden, dass die Brücke nicht nur repariert wird, sondern auch eine neue "
    "Straße mit dem Geld.",
    "fr": "Le conseil a décidé que les ponts de la ville sont dans un état qui ne va pas avec une telle circulation.",
    "es": "El consejo dijo que los puentes de la ciudad no son para un tráfico como este, pero se va a "
    "reparar por el lado.",
    "it": "Il consiglio ha deciso che il ponte non è più sicuro per il traffico della città e si chiude "
    "anche nel mese.",
    "pt": "O conselho decidiu que a ponte não é mais segura para o trânsito da cidade e as obras foram "
    "para um novo ano.",
    "nl": "De raad heeft besloten dat het een en ander wordt hersteld, maar niet voor het einde van het "
    "jaar op de brug.",
    "sv": "Det är en bro som inte har varit säker för trafik och den ska nu lagas av staden med pengar från ett bolag.",
    "da": "Der var mange, som kom til mødet, og de fleste var enige om, at det ikke kan lade sig gøre nu, siger en "
    "af dem.",
    "no": "Det var mange som kom til møtet, og de fleste var enige om at det ikke kan la seg gjøre nå, sier en av dem.",
    "pl": "Rada zdecydowała, że most nie jest bezpieczny i po roku prac przez miasto jest to dla ruchu jak "
    "nowy, ale od maja.",
    "ru": "Совет решил, что мост не так надёжен, как это было, и он на год закрыт для всех, но не для "
    "поездов по выходным.",
    "ar": "قال المجلس إن الجسر في المدينة غير آمن على السيارات وكان هذا من بعد سنة مع ذلك التي كما إلى أن",
    "bg": "Съветът реши, че мостът не е толкова сигурен, колкото беше, и затова ще бъде затворен за една година.",
    "ca": "El consell ha decidit que els ponts de la ciutat no són segurs per al trànsit i que es repararan.",
    "cs": "Rada rozhodla, že most už není bezpečný, a proto bude na rok uzavřen pro všechna auta kromě autobusů.",
    "el": "Το συμβούλιο αποφάσισε ότι η γέφυρα δεν είναι πια ασφαλής και θα μείνει κλειστή για έναν χρόνο.",
    "et": "Volikogu otsustas, et sild ei ole enam ohutu ja jääb kõigile autodele terveks aastaks suletuks.",
    "fa": "شورا تصمیم گرفت که پل دیگر امن نیست و به همین دلیل برای یک سال بسته خواهد شد.",
    "fi": "Neuvosto päätti, että silta ei ole enää turvallinen, ja se suljetaan kaikelta liikenteeltä vuodeksi.",
    "he": "המועצה החליטה שהגשר כבר אינו בטוח ולכן הוא ייסגר לתנועה למשך שנה שלמה.",
    "hi": "परिषद ने फैसला किया कि पुल अब सुरक्षित नहीं है और इसे एक साल के लिए बंद कर दिया जाएगा।",
    "hr": "Vijeće je odlučilo da most više nije siguran i da će zbog toga biti zatvoren godinu dana.",
    "hu": "A tanács úgy döntött, hogy a híd már nem biztonságos, ezért egy évre lezárják a forgalom elől.",
    "hy": "Խորհուրդը որոշեց, որ կամուրջն այլևս անվտանգ չէ և մեկ տարի փակ կլինի։",
    "id": "Dewan memutuskan bahwa jembatan itu tidak lagi aman dan akan ditutup selama satu tahun untuk semua mobil.",
    "ja": "市議会は、橋はもう安全ではないと判断し、一年間通行止めにすることを決めました。",
    "ka": "საბჭომ გადაწყვიტა, რომ ხიდი აღარ არის უსაფრთხო და ერთი წლით დაიკეტება.",
    "ko": "시의회는 다리가 더 이상 안전하지 않다고 보고 일 년 동안 막기로 결정했습니다.",
    "lt": "Taryba nusprendė, kad tiltas nebėra saugus, todėl jis metams bus uždarytas visiems automobiliams.",
    "lv": "Padome nolēma, ka tilts vairs nav drošs, tāpēc to uz gadu slēgs visām automašīnām.",
    "ro": "Consiliul a hotărât că podul nu mai este sigur și că va fi închis timp de un an pentru toate mașinile.",
    "sk": "Rada rozhodla, že most už nie je bezpečný, a preto bude na rok zatvorený pre všetky autá okrem autobusov.",
    "sl": "Svet je odločil, da most ni več varen in da bo zato eno leto zaprt za ves promet razen za avtobuse.",
    "ta": "பாலம் இனி பாதுகாப்பானது அல்ல என்று மன்றம் முடிவு செய்தது, எனவே அது ஒரு வருடம் மூடப்படும்.",
    "th": "สภาตัดสินใจว่าสะพานไม่ปลอดภัยอีกต่อไป และจะปิดเป็นเวลาหนึ่งปี",
    "uk": "Рада вирішила, що міст уже не такий надійний, як був, і тому його закриють на рік для всіх.",
    "vi": "Hội đồng quyết định rằng cây cầu không còn an toàn nữa và sẽ đóng cửa trong một năm.",
    "zh": "市议会决定，这座桥已经不再安全，因此将关闭一年，等待维修。",
}
SHOP = b"Lamp\n10 EUR\n12 EUR\nFine light\n12:30"  # which a few letters make Breton
CODE = b"for (i = 0; i < n; i++) { buf[i] = ptr->next[i & 0xff]; if (!buf[i]) return -EINVAL; } free(ptr); x->len++;"


@pytest.mark.parametrize(("code", "text"), SAMPLES.items())
def test_the_text_tells_the_language(code: str, text: str) -> None:
    assert language_of("", text.encode()) == code
    assert language_of(code + "-XX", text.encode()) == code


@pytest.mark.parametrize(("code", "text"), SAMPLES.items())
def test_a_template_that_claims_english_over_other_text_is_not_believed(code: str, text: str) -> None:
    assert language_of("en-US", text.encode()) == code


def test_more_than_fifty_languages_are_told_apart_and_all_that_search_stems_are_among_them() -> None:
    told = set(language_model().languages)
    assert len(told - {UNKNOWN}) >= 50
    assert told - {UNKNOWN} <= CODES
    assert set(LANGUAGES) - {"nb", "nn"} <= told


@pytest.mark.parametrize("claim", ["nb", "nn", "no"])
def test_a_page_may_say_which_norwegian_it_is_in(claim: str) -> None:
    assert language_of(claim, SAMPLES["no"].encode()) == claim
    assert language_of(claim, SAMPLES["tr"].encode()) == "tr"


def test_a_language_that_the_model_does_not_know_is_taken_at_its_word() -> None:
    assert "fo" not in language_model().languages
    assert language_of("fo", "Bygdarráðið hevur gjørt av, at brúgvin skal umvælast í ár.".encode()) == "fo"


@pytest.mark.parametrize("declared", ["", "x-default", "english", "1", "<script>", "zz"])
@pytest.mark.parametrize("text", [b"", b"Lorem 12 42", b"OK", b"12:30 14:45 16:00 17,50", CODE, "→ ✓ ©".encode(), SHOP])
def test_without_evidence_the_language_is_unknown(declared: str, text: bytes) -> None:
    assert language_of(declared, text) == ""


@given(st.integers(min_value=0))
def test_what_chance_wrote_is_in_no_language(seed: int) -> None:
    assert language_of("", Random(seed).randbytes(200).hex(" ", 8).encode()) == ""


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("EN", "en"),
        ("pt_BR", "pt"),
        ("zh-Hant-TW", "zh"),
        ("jp", "ja"),
        ("iw", "he"),
        ("cz", "cs"),
        ("ckb", "ckb"),
        ("", ""),
    ],
)
def test_a_claim_is_read_as_it_is_meant(written: str, meant: str) -> None:
    assert claimed(written) == meant


@pytest.mark.parametrize("most", ["en", "tr", "ru", "ja"])
@pytest.mark.parametrize("least", ["de", "fr", "ar", "zh"])
@pytest.mark.parametrize("is_first", [True, False])
def test_a_page_in_two_languages_is_in_that_of_most_of_its_text(most: str, least: str, is_first: bool) -> None:
    parts = [SAMPLES[most].encode()] * 14, [SAMPLES[least].encode()] * 5
    text = b"\n".join([block for blocks in (parts if is_first else parts[::-1]) for block in blocks])
    assert language_of("", text) == most
    assert language_of(least, text) == most


@given(st.binary(max_size=5000), st.text(max_size=40))
def test_any_bytes_have_a_known_language_or_none(text: bytes, declared: str) -> None:
    assert language_of(declared, text) in CODES | {""}


@given(st.integers(0, 5000))
def test_little_of_a_long_text_is_read_but_all_of_a_short_one(size: int) -> None:
    text = Random(size).randbytes(size)
    read = b"".join(first + more for first, more in samples_of(text))
    assert len(read) <= FIRST + MORE
    if size <= FIRST + MORE:
        assert len(text) - WINDOWS < len(read) <= len(text)


@given(st.text(max_size=MORE))
def test_the_sums_of_all_weights_in_a_sample_fit_into_their_lanes(text: str) -> None:
    words = plain_words(text.encode("utf-8", "replace")[: MORE + WINDOWS])
    assert LARGEST * len(list(features_of(words))) < 1 << 16


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "cannot be read .No such file or directory.: install Levada again"),
        (b"", "cannot be read .*: install Levada again"),
        (b"something else\n" + b"\0" * 128, "not a whole model of languages: install Levada again"),
        (b"levada languages 1:,en,tr\n" + b"\0" * 127, "not a whole model"),
        (b"levada languages 1:,en,tr\n", "not a whole model"),
        (b"levada languages 1:,en,tr", "not a whole model"),
    ],
)
def test_a_model_file_that_is_missing_or_damaged_is_said_in_one_sentence(
    tmp_path: Path, content: bytes | None, said: str
) -> None:
    path = tmp_path / "languages.bin"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(LevadaError, match=said) as raised:
        LanguageModel(path)
    assert str(raised.value).startswith(str(path))


@given(st.lists(st.sampled_from([*SAMPLES.values(), "a", "", "x " * 30, "42"]) | st.text(max_size=60), max_size=4))
def test_words_are_weighed_by_all_that_is_in_them_and_between_them(texts: list[str]) -> None:
    model = language_model()
    words = plain_words(" ".join(texts).encode("utf-8", "replace"))
    rows = [model._rows[feature] for feature in features_of(words)]
    assert model.weigh(words) == model.weigh(words) == sum(rows)


def test_the_model_keeps_a_bounded_number_of_rows_and_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_module, "_MOST_ROWS", 50)
    monkeypatch.setattr(model_module, "_MOST_WORDS", 20)
    model = LanguageModel()
    weighed = model.weigh(plain_words(SAMPLES["de"].encode()))
    for text in SAMPLES.values():
        model.weigh(plain_words(text.encode()))
        assert len(model._rows) <= 51
        assert len(model._words) <= 21
    assert model.weigh(plain_words(SAMPLES["de"].encode())) == weighed
