"""Lines that are new at every visit whatever the text says: counters, ages, clocks, tokens, adverts, widgets.

They are part of a page's text and stored with it, but do not count when two versions are compared. A line is noise only
if every word of it is a word of noise ("1,204 people are reading this now") and it has a figure or a time; the pieces
between dots and bars are judged one by one. A sentence, a price, a score, a date and a clock time without seconds are
content. What is content elsewhere (temperatures of places, quotes of stocks, notices about
cookies) is noise in a few lines beside a text: a page with many of them, or with little else, is about them.

The words are a closed list in about twelve languages.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache

_LONGEST = 200  # characters: a line with more is a paragraph
_LONGEST_NOTICE = 500  # characters of a notice about cookies
LEAST_BESIDE = 1_000  # characters of other text, beside which a widget is one
MOST_WIDGETS = 3  # lines of a kind: a page with more is about them
LONGEST_LABEL = 24  # characters
_LEAST_TOKEN = 8  # characters
_MOST_NAMES = 3  # words that name a place


def _words(*texts: str) -> frozenset[str]:
    return frozenset(word for text in texts for word in text.split())


_UNITS = _words(
    "ms s sec secs second seconds m min mins minute minutes h hr hrs hour hours d day days w week weeks month",
    "months mo y yr year years sekunde sekunden minuten std stunde stunden tag tage tagen woche wochen monat",
    "monate monaten jahr jahre jahren seconde secondes heure heures jour jours semaine semaines mois an ans",
    "segundo segundos minuto minutos hora horas día días dia dias semana semanas mes meses mês año años ano anos",
    "secondi minuti ora ore giorno giorni settimana settimane mese mesi anno anni seconden uur dag dagen weken",
    "maand maanden jaar saniye dakika dk saat sa gün hafta ay yıl сек секунд секунду секунды мин минут минуту",
    "минуты час часа часов день дня дней неделю недели недель месяц месяца месяцев год года лет sekund sekundy",
    "minut minuty minutę godz godzin godziny godzinę dni dzień tydzień tygodnie tygodni miesiąc miesiące",
    "miesięcy lat rok 秒 分 分钟 小时 小時 時間 天 周 週間 か月 个月 年 日 초 분 시간 일 주 개월 년",
)
_AGO = _words(
    "ends starts begins left remaining endet beginnt noch ago önce geleden назад temu fa atrás vor hace há il 前",
    "分前 時間前 日前 秒前 週間前 か月前 年前 分钟前 小时前 天前 周前 个月前 전 분전 시간전 일전",
)
_ONE = _words("a an one einer eine einem une un una uma um een bir")
_NONE = _words("no keine aucun sin nessun geen sem нет brak yok")
_NONE_YET = _words("yet be the first to noch be")
_TODAY = _words(
    "today yesterday heute gestern hier ayer hoy ieri oggi gisteren vandaag dün bugün вчера сегодня wczoraj dziś",
)
_JUST_NOW = ("just now", "right now", "gerade eben", "à l'instant", "ahora mismo", "az önce", "только что", "刚刚")
_DONE = _words(
    "updated update modified edited published posted written created refreshed asked answered commented replied",
    "as of aktualisiert veröffentlicht geändert erstellt stand publié modifié mis jour publicado actualizado",
    "atualizado aggiornato pubblicato bijgewerkt geplaatst güncellendi güncelleme yayınlandı обновлено",
    "опубликовано zaktualizowano opublikowano aktualizacja 更新 公開 发布",
)
_COUNTED = _words(
    "looking browsing",
    "view views pageviews hits clicks visits visitor visitors comment comments replies likes shares retweets",
    "reactions followers subscribers upvotes online reading viewing viewed watching aufruf aufrufe seitenaufrufe",
    "zugriffe besucher reads visit counter read count lu vu helpful klicks kommentar kommentare gelesen",
    "angesehen aufgerufen leser vue vues lectures visites visiteur visiteurs commentaire commentaires partages",
    "lisent regardent consultent visto vista vistas lecturas visita visitas visitante visitantes comentario",
    "comentarios compartidos leyendo viendo visualizações visualizaciones comentário comentários curtidas",
    "leituras acessos lendo vendo visualizzazioni letture commento commenti visitatori condivisioni leggendo",
    "guardando weergaven bekeken bezoekers reacties görüntülenme görüntüleme okunma okundu görüntülendi",
    "ziyaretçi ziyaret yorum beğeni paylaşım okuyor bakıyor просмотр просмотра просмотров просмотры посетитель",
    "посетителей комментарий комментария комментариев комментарии лайков читают смотрят просматривают wyświetleń",
    "wyświetlenia odsłon odwiedzin komentarz komentarze komentarzy polubień udostępnień czyta ogląda 次浏览",
    "次阅读 浏览 阅读 评论 条评论 回視聴 回閲覧 閲覧数 コメント 件のコメント 人正在阅读 인 조회수 조회 댓글",
)
_NOW = _words(
    "now time clock uhrzeit ortszeit serverzeit jetzt heure hora ahora agora ora tijd saat время czas godzina",
    "現在時刻 当前时间 时间 시각",
)
_ASKED_FOR = _words(
    "local current server system now is es il lokal lokale aktuelle locale actuelle actual atual esatta yerel şu",
    "местное текущее lokalny 現在時刻 当前时间",
)
_CLOCK_NAMES = _words("uhrzeit ortszeit serverzeit")
_MADE = _words("generated rendered loaded served executed generiert erstellt générée generada oluşturuldu")
_DAYS = _words(
    "today yesterday gestern hier ayer ieri gisteren dün вчера wczoraj monday tuesday wednesday thursday friday",
    "saturday sunday mon tue tues wed thu thur thurs fri sat sun january february march april may june july",
    "august september october november december jan feb mar apr jun jul aug sep sept oct nov dec heute montag",
    "dienstag mittwoch donnerstag freitag samstag sonntag januar februar märz mai juni juli oktober dezember",
    "aujourd lundi mardi mercredi jeudi vendredi samedi dimanche janvier février mars avril juin juillet août",
    "septembre octobre novembre décembre hoy lunes martes miércoles jueves viernes sábado domingo enero febrero",
    "marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre oggi lunedì martedì mercoledì",
    "giovedì venerdì sabato domenica gennaio febbraio aprile maggio giugno luglio settembre ottobre dicembre",
    "janeiro fevereiro março maio junho julho setembro outubro novembro dezembro maandag dinsdag woensdag",
    "donderdag vrijdag zaterdag zondag maart mei augustus bugün pazartesi salı çarşamba perşembe cuma cumartesi",
    "pazar ocak şubat mart nisan mayıs haziran temmuz ağustos eylül ekim kasım aralık сегодня понедельник",
    "вторник среда четверг пятница суббота воскресенье января февраля марта апреля мая июня июля августа",
    "сентября октября ноября декабря st nd rd th am pm a p t utc gmt cet cest est edt pst pdt bst uhr h z",
)
_FILL = _words(
    "the this that our your you re are is it was were has have had been be by at on in of to and or for with",
    "from about last page article post story product item video topic site people person user users reader",
    "readers others other customers guests members unique total so far currently also times time number no nr",
    "today yesterday week month k mio mil queries offer sale deal auction event angebot hit hits shared visited",
    "like now right live found st nd rd th einer eine einem een bir der die das diese dieses diesen sie sind",
    "wurde bereits schon seit am um und mal personen leute nutzer gerade insgesamt heute gestern seite artikel",
    "beitrag zuletzt gefällt mir le la les l ce cet cette de du des à en est été fois et y a personnes lecteurs",
    "utilisateurs ligne aujourd hui au j aime il heure el los las este esta esto es eres ha han sido veces vez",
    "un una personas lectores usuarios línea hoy están número me gusta o os as foi vezes pessoas leitores",
    "usuários estão hoje questo questa stanno persone lettori utenti oggi volte mi piace dit deze keer mensen",
    "lezen bekijken vandaag bu sayfa sayfayı yazı yazıyı haberi kez kişi okur bugün şu anda an toplam tarafından",
    "эту это статью страницу раз человек человека читателей пользователей сегодня сейчас онлайн всего ten tę",
    "artykuł stronę osób osoby użytkowników dzisiaj dziś teraz razy około circa ca etwa ungefähr environ unos",
    "cerca aproximadamente temps tiempo",
)
_TOKENS = _words(
    "session sessionid sid request ray trace correlation visitor token csrf nonce sitzung sesión oturum сессия",
)
_TOKEN_FILL = _words("id sid your cloudflare the key no nr der die")
_ADVERTS = _words(
    "ad ads advertisement advertising advertorial sponsored promoted anzeige werbung gesponsert publicité",
    "sponsorisé publicidad patrocinado publicidade pubblicità sponsorizzato advertentie gesponsord reklam",
    "sponsorlu реклама reklama sponsorowane annons annonce 広告 广告 광고",
)
_SKY = _words(
    "sunny mostly partly cloudy overcast clear sky skies fair rain light heavy rainy showers snow snowy fog",
    "foggy mist windy thunderstorm thunderstorms drizzle haze sonnig heiter bewölkt leicht wolkig klar regen",
    "leichter schnee nebel bedeckt ensoleillé nuageux pluie neige soleado nublado despejado lluvia nieve",
    "soleggiato nuvoloso sereno pioggia zonnig bewolkt güneşli bulutlu yağmurlu ясно облачно дождь снег пасмурно",
    "słonecznie pochmurno deszcz",
)
_FORECAST = _words("weather wetter météo clima meteo weer hava погода pogoda 天気 天气 날씨")
_FORECAST_FILL = _words("in today current s c f durumu feels like wind humidity now high low and")
_RELATED = re.compile(
    r"related|more (?:on|from|about|stories|news|articles)|read (?:also|more|next|this)|also read|"
    r"(?:you )?(?:may|might) also|see also|don.t miss|recommended|trending|most (?:read|popular|viewed)|"
    r"popular|up next|what to read next|latest (?:news|stories)|lesen sie (?:auch|mehr)|mehr (?:zum thema|"
    r"dazu|aus)|auch interessant|das könnte sie|weitere (?:artikel|themen)|meistgelesen|(?:à )?lire (?:aussi|"
    r"également)|voir aussi|sur le même (?:sujet|thème)|à ne pas manquer|les plus lus|articles liés|"
    r"lea? también|leer más|te puede interesar|ver también|más (?:noticias|sobre|leído)|relacionad|"
    r"leia (?:também|mais)|veja também|leggi anche|potrebbe interessarti|i più letti|lees (?:ook|meer)|"
    r"meest gelezen|ilgili|bunlar da|ayrıca oku|читайте также|по теме|популярное|czytaj (?:też|także|również|"
    r"więcej)|zobacz (?:też|także|również)|przeczytaj|polecamy|najczęściej czytane|関連|あわせて読みたい|相关|"
    r"관련",
    re.IGNORECASE,
)
_SLOGAN = re.compile(
    r"only today|today only|special offer|(?:summer |winter |spring |flash )?sale\b|save (?:up to )?[\d$€£]|"
    r"\d+ ?% off|up to \d+ ?%|(?:buy|shop|order|book|subscribe|join|sign up|try)\b.*\b(?:now|today|free)\b|"
    r"limited (?:time|offer)|deal of|black friday|free (?:shipping|trial)|nur (?:heute|noch)|jetzt (?:kaufen|"
    r"sichern|bestellen|sparen|testen|zugreifen)|(?:sonder)?angebot|rabatt|bis zu \d+ ?%|offre spéciale|promo|"
    r"jusqu.à \d+ ?%|achetez|seulement aujourd|oferta|hasta \d+ ?%|compra|solo hoy|só hoje|offerta|solo oggi|"
    r"sconto|aanbieding|korting|alleen vandaag|indirim|kampanya|fırsat|sadece bugün|только сегодня|скидк|"
    r"распродажа|promocja|zniżk|tylko dziś",
    re.IGNORECASE,
)
_MONEY = "EUR|USD|GBP|CHF|TRY|TL|PLN|zł|SEK|NOK|DKK|kr|JPY|Kč"
_PRICE = re.compile(rf"\d[\d.,'’ ]*(?:[€$£¥₺₽₹]|(?:{_MONEY})\b)|(?:[€$£¥₺₹]|\b(?:{_MONEY}|Rs\.?)) ?\d")
# Classes and ids, without what is no letter, of elements that hold noise: `ad-slot`, `relatedPosts`.
NOISE_NAMES = _words(
    "ad ads advert adverts advertisement advertisements advertising adcontainer adwrapper adwrap adslot adunit",
    "adbox adbanner adblock adlabel adplaceholder banner bannerad inlinead articlead textad nativead inarticlead",
    "adsbygoogle googlead dfp sponsored sponsoredcontent sponsoredlinks sponsor promo promobox outbrain taboola",
    "obwidget teads revcontent mgid related relatedposts relatedarticles relatedlinks relatedcontent",
    "relatedstories relatednews relateditems alsoread readalso readmore recommended recommendations",
    "recommendedposts recommendedarticles mostread mostpopular popularposts trending newsletter newslettersignup",
    "newsletterbox weather weatherwidget ticker stockticker tickertape marketdata cookie cookies cookienotice",
    "cookiebanner cookieconsent cookiebar cookiemessage gdpr timeago relativetime viewcount viewscount",
    "viewcounter visitorcounter visitcounter hitcounter pagecounter commentcount commentscount livereaders",
)
_COOKIE = _words("cookie cookies çerez çerezler çerezleri cookieleri куки クッキー 쿠키 ciasteczka ciasteczek")
_CONSENT = _words(
    "use uses accept agree consent preferences settings policy verwenden verwendet nutzen setzen zustimmen",
    "akzeptieren utilisons utilise accepter utilizamos usamos utiliza aceptar aceitar utilizziamo utilizza",
    "accettare accetta gebruiken gebruikt accepteren kullanıyoruz kullanır kullanmaktadır kabul используем",
    "использует принять согласие używamy używa akceptuję zgoda 使用 同意 동의",
)
_NAME = re.compile(r"[^\W\d_]+")
_PIECE_END = re.compile(r"\s*[·•|]\s*|\s+[–—]\s+")
_COUNTED_BY_SIGN = re.compile("[👁💬🗨❤♥👍👎🔥]\ufe0f?[ ]?\\d[\\d.,]*[kKmM]?")
_FIGURE = re.compile(r"\d")
_COOKIE_STEMS = ("cookie", "çerez", "куки", "クッキー", "쿠키", "ciastecz")
_HAS_CLOCK = re.compile(r"(?:\b|t)\d{1,2}:\d{2}(?!\d)")
_HAS_SECONDS = re.compile(r"(?:\b|t)\d{1,2}:\d{2}:\d{2}(?!\d)")
_TOKEN_START = re.compile("[ :=#]+")
_TOKEN = re.compile(r"[A-Za-z0-9_+/-]+\Z")
_ADVERT_LABEL = re.compile(r"(\w+)(?: (?:content|post))?(?:\s?[:：·•|–—-]| by |$)")
_INDEX = "Dow|Jones|Nasdaq|Nikkei|Stoxx|Euro|Gold|Silver|Brent|Oil|Öl|Bitcoin|Ethereum|Hang|Seng|Topix|Sensex|Nifty"
_NAME_OF_QUOTE = rf"(?:(?:[A-Z][A-Z\d&./-]+|{_INDEX})[ ]?){{1,3}}(?:\d{{2,4}})?:?[ ]?"
_CHANGE = r"\(?[▲▼△▽↑↓+−-][ ]?\d+[.,]\d+(?:[ ]?%)?\)?(?:[ ]\(?[+−-]?\d+[.,]\d+[ ]?%\)?)?"
_QUOTES = re.compile(rf"(?:{_NAME_OF_QUOTE}[$€£¥₺]?\d[\d.,'’]*[.,]\d+[ ]?[$€£¥₺]?[ ]?{_CHANGE}[ ·•|,;]*){{1,8}}")


def is_noise(line: str, title: str = "") -> bool:
    """Whether a line is noise wherever it stands, on a page with this title in lower case."""
    if len(line) > _LONGEST:
        return False
    label = _ADVERT_LABEL.match(line)
    if label is not None and (word := label[1].lower()) in _ADVERTS and word not in title:
        return True
    pieces = _PIECE_END.split(line) if _has_pieces(line) else [line]
    return all(map(_is_noisy_piece, pieces))


def without_noise(line: str) -> str:
    """A short line without those of its pieces between dots and bars that are noise: `By Ada · 5 minutes ago`."""
    if len(line) > _LONGEST or not _has_pieces(line):
        return line
    pieces = _PIECE_END.split(line)
    kept = [piece for piece in pieces if not _is_noisy_piece(piece)]
    return line if len(kept) == len(pieces) else " · ".join(kept)


def _has_pieces(line: str) -> bool:
    return "·" in line or "|" in line or "•" in line or "–" in line or "—" in line


def _is_noisy_piece(piece: str) -> bool:
    lower = piece.lower()
    known = _known_words()
    first = _NAME.search(lower)
    if first is not None and first[0] not in known:  # as most
        return False
    names: set[str] = set()
    for found in _NAME.finditer(lower):
        name = found[0]
        if name not in known:
            return bool(names) and _is_token(piece)
        names.add(name)
    if not _FIGURE.search(piece):
        return not names or _is_without_figure(lower, names)
    if names <= _known_of_counters() and not names.isdisjoint(_COUNTED):
        return True
    return _is_time(lower, names) or _is_token(piece) or _COUNTED_BY_SIGN.fullmatch(piece.strip()) is not None


@cache
def _known_words() -> frozenset[str]:
    return _known_around_time() | _known_of_counters() | _TOKENS | _TOKEN_FILL | _NONE | _NONE_YET


def _is_without_figure(lower: str, names: set[str]) -> bool:
    """`An hour ago`, `just now`, `no comments yet`."""
    if names <= _known_around_time():
        is_age = not (names.isdisjoint(_AGO) or names.isdisjoint(_UNITS) or names.isdisjoint(_ONE))
        return is_age or any(phrase in lower for phrase in _JUST_NOW)
    return not (names.isdisjoint(_NONE) or names.isdisjoint(_COUNTED)) and names <= _COUNTED | _NONE | _NONE_YET


def _names_in(text: str) -> set[str]:
    return set(_NAME.findall(text))


@cache
def _known_around_time() -> frozenset[str]:
    return _UNITS | _AGO | _DONE | _FILL | _DAYS | _NOW | _ASKED_FOR | _MADE | _words(*_JUST_NOW, "l instant")


@cache
def _known_of_counters() -> frozenset[str]:
    return _COUNTED | _FILL


def _is_time(lower: str, names: set[str]) -> bool:
    """An age, the time of the last update, or a clock."""
    if not names <= _known_around_time():
        return False
    if not names.isdisjoint(_AGO) and not (names.isdisjoint(_UNITS) and all(map(str.isascii, names))):
        return True
    if not names.isdisjoint(_MADE):
        return True
    if not _HAS_CLOCK.search(lower):
        return False
    if _HAS_SECONDS.search(lower) or not names.isdisjoint(_DONE | _CLOCK_NAMES | _TODAY):
        return True
    return not names.isdisjoint(_NOW) and not names.isdisjoint(_ASKED_FOR)


def _is_token(piece: str) -> bool:
    *label, token = _TOKEN_START.split(piece.rstrip())
    if len(token) < _LEAST_TOKEN or not _TOKEN.match(token) or not any(map(str.isdigit, token)):
        return False
    names = _names_in(" ".join(label).lower())
    return not names.isdisjoint(_TOKENS) and names <= _TOKENS | _TOKEN_FILL


def is_advert_label(line: str) -> bool:
    """Whether the line only says that an advertisement follows."""
    return line.strip(" .:-").lower() in _ADVERTS


def is_related_label(line: str) -> bool:
    """Whether the line begins as those do that lead to other pages: `Read also`."""
    return len(line) <= _LONGEST and _RELATED.match(line) is not None


def is_slogan(line: str) -> bool:
    """Whether a link begins as an offer does."""
    return len(line) <= _LONGEST and _SLOGAN.match(line) is not None


def has_price(line: str) -> bool:
    return _PRICE.search(line) is not None


def _is_temperature(line: str) -> bool:
    if "°" not in line or len(line) > _LONGEST:
        return False
    names = _names_in(line)
    lower = {name.lower() for name in names}
    if lower.isdisjoint(_SKY) and lower.isdisjoint(_FORECAST):
        return False
    others = [name for name in names if name.lower() not in _SKY | _FORECAST | _FORECAST_FILL]
    return len(others) <= _MOST_NAMES and all(name[0].isupper() for name in others)


def _is_quote(line: str) -> bool:
    return len(line) <= _LONGEST and _QUOTES.fullmatch(line) is not None


def _is_cookie_notice(line: str) -> bool:
    if len(line) > _LONGEST_NOTICE:
        return False
    words = _names_in(line.lower())
    return not words.isdisjoint(_COOKIE) and not words.isdisjoint(_CONSENT)


# By what a text must have for one of its lines to be such a widget.
_WIDGETS: Sequence[tuple[Callable[[str], object], Callable[[str], bool]]] = (
    (lambda text: "°" in text, _is_temperature),
    (re.compile(r"[▲▼△▽↑↓+−-] ?\d+[.,]\d").search, _is_quote),
    (lambda text: any(stem in text for stem in _COOKIE_STEMS), _is_cookie_notice),
)


def compared_lines(lines: Sequence[str], title: str = "") -> list[str]:
    """The lines, and the pieces of lines, that count when two versions of a text are compared."""
    about = title.lower()
    kept = [
        line if len(line) > _LONGEST else without_noise(line)
        for line in lines
        if len(line) > _LONGEST or not is_noise(line, about)
    ]
    text = "\n".join(kept).lower()
    left_out: set[str] = set()
    for may_have, is_widget in _WIDGETS:
        if may_have(text):
            found = {line for line in kept if is_widget(line)}
            left_out |= {line for line in found if not _is_in(line, title)} if len(found) <= MOST_WIDGETS else set()
    if not left_out:
        return kept
    beside = [line for line in kept if line not in left_out]
    return beside if sum(map(len, beside)) >= LEAST_BESIDE else kept


def _is_in(line: str, title: str) -> bool:
    """Whether the title of the page speaks of what the line does."""
    return not (_names_in(line.lower()) - _FILL).isdisjoint(_names_in(title.lower()))
