"""The language of the words, not only of the label."""

from __future__ import annotations

import pytest

from levada.pages.language import LANGUAGES, language_of, profile_of

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
}


@pytest.mark.parametrize(("code", "text"), SAMPLES.items())
def test_the_words_tell_the_language(code: str, text: str) -> None:
    words = profile_of(text.encode()).vocabulary
    assert language_of("", words) == code
    assert language_of(code + "-XX", words) == code


@pytest.mark.parametrize("code", LANGUAGES)
def test_all_the_frequent_words_of_a_language_tell_it(code: str) -> None:
    assert language_of("", LANGUAGES[code]) == code


def test_words_that_languages_share_tell_none_of_them() -> None:
    assert language_of("", LANGUAGES["da"] & LANGUAGES["no"]) == ""


def test_a_template_that_claims_english_over_turkish_text_is_not_believed() -> None:
    text = SAMPLES["tr"] + " gibi sonra kadar değil ise en ile"
    assert language_of("en-US", profile_of(text.encode()).vocabulary) == "tr"


def test_a_language_without_a_profile_is_taken_at_its_word() -> None:
    assert language_of("eu", profile_of(b"Udalak zubia konpontzea erabaki du").vocabulary) == "eu"


@pytest.mark.parametrize("declared", ["", "x-default", "english", "1", "<script>"])
def test_without_evidence_the_language_is_unknown(declared: str) -> None:
    assert language_of(declared, profile_of(b"Lorem 12 42").vocabulary) == ""
