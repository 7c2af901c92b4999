"""Short pages of our own: a little text each, in frames that are many times as large.

Each page is set in each of the layouts below, with the menu, teasers, footer and cookie notice of a site in its
language.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple


class Site(NamedTuple):
    """The frame of a site."""

    language: str
    name: str
    menu: tuple[str, ...]
    teasers: tuple[str, ...]  # headlines of other pages
    footer: tuple[str, ...]
    rights: str
    cookies: str


class ShortPage(NamedTuple):
    name: str
    site: Site
    title: str
    content: str  # HTML, under the title
    own: tuple[str, ...]  # sentences that its main text has


ENGLISH = Site(
    "en",
    "Willowbrook Town",
    ("Home", "Council", "Planning", "Housing", "Schools", "Parking", "Libraries", "Vacancies", "Sitemap"),
    (
        "Leisure centre reopens with a heated pool",
        "Volunteers wanted for the autumn cleanup of the canal",
        "Recycling calendar for next year is available",
    ),
    ("Imprint", "Privacy", "Accessibility", "Newsletter", "Webmaster"),
    "© 2024 Willowbrook Town Corporation. All rights reserved.",
    "This website stores cookies on your device to analyse traffic and to personalise advertisements. "
    "Manage your preferences at any moment or consult our partners.",
)
TURKISH = Site(
    "tr",
    "Söğütlü Belediyesi",
    ("Anasayfa", "Kurumsal", "Hizmetler", "Projeler", "Galeri", "Duyurular", "İhaleler", "Bağlantılar"),
    (
        "Başkanımız muhtarlarla kahvaltıda bir araya geldi",
        "Yaz spor okulları için kayıtlar devam ediyor",
        "Halk ekmek büfelerine yenileri ekleniyor",
    ),
    ("Künye", "Gizlilik", "Erişilebilirlik", "Çerezler", "KVKK"),
    "© 2024 Söğütlü. Tüm hakları saklıdır.",
    "Sizlere daha iyi deneyim sunabilmek amacıyla çerez kullanıyoruz. "
    "Ayrıntılı bilgi almak üzere politikamızı inceleyin.",
)
GERMAN = Site(
    "de",
    "Stadtwerke Lindenau",
    ("Startseite", "Strom", "Erdgas", "Tarifrechner", "Netz", "Karriere", "Presse", "Kundenportal"),
    (
        "Glasfaserausbau startet im kommenden Frühjahr",
        "Azubis gestalten neue Trafostation am Marktplatz",
        "Ablesung erfolgt künftig vollständig digital",
    ),
    ("Impressum", "Datenschutz", "Barrierefreiheit", "AGB", "Widerruf"),
    "© 2024 Stadtwerke Lindenau GmbH. Alle Rechte vorbehalten.",
    "Wir verwenden Cookies, um Inhalte zu personalisieren und Zugriffe zu analysieren. "
    "Einwilligungen lassen sich jederzeit widerrufen.",
)
JAPANESE = Site(
    "ja",
    "柳川市民会館",
    ("ホーム", "施設案内", "利用料金", "交通アクセス", "お問い合わせ", "採用情報", "サイトマップ"),
    ("夏休み子ども工作教室の参加者を募集しています", "駐車場の舗装工事にともなう通行規制のお知らせ"),
    ("プライバシーポリシー", "著作権について", "リンク集", "English"),
    "© 2024 柳川市民会館",
    "当サイトではアクセス解析のためにCookieを使用しています。詳細は個人情報保護方針をご覧ください。",
)
ARABIC = Site(
    "ar",
    "مكتبة الزيتون",
    ("الرئيسية", "الفهرس", "الفعاليات", "العضوية", "الأرشيف", "الوظائف", "الأسئلة"),
    ("افتتاح جناح جديد لكتب الأطفال في الطابق الثاني", "دعوة إلى أمسية شعرية مع شعراء شباب"),
    ("الخصوصية", "الشروط", "خريطة", "اشتراك"),
    "© 2024 جميع الحقوق محفوظة",
    "يستخدم هذا الموقع ملفات تعريف الارتباط لتحسين تجربتك. بمتابعة التصفح فإنك توافق على سياستنا.",
)
FRENCH = Site(
    "fr",
    "Vélos du Canal",
    ("Accueil", "Boutique", "Atelier", "Marques", "Occasions", "Livraison", "Panier", "Compte"),
    ("Nos conseils pour bien choisir son casque urbain", "Retour en images sur la randonnée annuelle du club"),
    ("Mentions légales", "Confidentialité", "CGV", "Plan du site"),
    "© 2024 Vélos du Canal, tous droits réservés",
    "Nous utilisons des cookies afin de mesurer notre audience. Vous pouvez paramétrer vos choix.",
)
RUSSIAN = Site(
    "ru",
    "Музей часов",
    ("Главная", "Коллекция", "Выставки", "Билеты", "Магазин", "Партнёры", "Вакансии"),
    ("Реставраторы показали башенный механизм восемнадцатого века", "Лекторий возобновляет свою работу осенью"),
    ("Реквизиты", "Конфиденциальность", "Карта сайта", "Телеграм"),
    "© 2024 Все права защищены",
    "Мы применяем файлы cookie для статистики. Продолжая просмотр, вы соглашаетесь с условиями.",
)

PAGES = (
    ShortPage(
        "news item of one sentence",
        ENGLISH,
        "Footbridge closed until Friday",
        "<p>The footbridge over the mill stream stays closed until Friday because two planks broke.</p>",
        ("Footbridge closed until Friday", "The footbridge over the mill stream stays closed until Friday"),
    ),
    ShortPage(
        "news item in Turkish",
        TURKISH,
        "Su kesintisi",
        "<p>Yarın sabah dokuzda Çınar Mahallesi'nde dört saat su verilemeyecek.</p>",
        ("Yarın sabah dokuzda Çınar Mahallesi'nde dört saat su verilemeyecek.",),
    ),
    ShortPage(
        "news item in Japanese",
        JAPANESE,
        "臨時休館",
        "<p>設備点検のため、六月三日は終日休みます。</p>",
        ("臨時休館", "設備点検のため、六月三日は終日休みます。"),
    ),
    ShortPage(
        "news item in Arabic",
        ARABIC,
        "إغلاق مؤقت",
        "<p>تغلق قاعة المطالعة أبوابها يوم الأحد بسبب أعمال الصيانة.</p>",
        ("تغلق قاعة المطالعة أبوابها يوم الأحد بسبب أعمال الصيانة.",),
    ),
    ShortPage(
        "contact",
        GERMAN,
        "Kontakt",
        '<p>Lindenallee 12<br>04177 Lindenau</p><p>Telefon <a href="tel:+493411234">0341 1234</a></p>'
        '<p><a href="mailto:hallo@lindenau.example">hallo@lindenau.example</a></p>',
        ("Lindenallee 12", "04177 Lindenau", "Telefon 0341 1234", "hallo@lindenau.example"),
    ),
    ShortPage(
        "contact in Turkish",
        TURKISH,
        "İletişim",
        "<p>Meydan Caddesi No 4, Söğütlü</p><p>Santral: 0264 555 01 02</p>",
        ("Meydan Caddesi No 4", "Santral: 0264 555 01 02"),
    ),
    ShortPage(
        "status",
        ENGLISH,
        "System status",
        "<p>All pumps are running.</p><p>Last incident: none in 30 days.</p>",
        ("All pumps are running.", "Last incident: none in 30 days."),
    ),
    ShortPage(
        "product of two lines",
        FRENCH,
        "Sonnette en laiton",
        "<p>Un son clair, une fixation sans outil.</p><p>Prix : 14,90 €</p>",
        ("Sonnette en laiton", "Un son clair, une fixation sans outil.", "14,90 €"),
    ),
    ShortPage(
        "product in Russian",
        RUSSIAN,
        "Песочные часы",
        "<p>Стекло и бук, ровно три минуты.</p><p>Цена 900 ₽</p>",
        ("Песочные часы", "Стекло и бук, ровно три минуты.", "Цена 900 ₽"),
    ),
    ShortPage("almost empty", ENGLISH, "Minutes of 4 May", "<p>To follow.</p>", ("To follow.",)),
    ShortPage(
        "sign in",
        ENGLISH,
        "Sign in",
        '<form action="/session"><p>Enter the number of your reading card.</p><label>Card number</label>'
        "<input name=card><button>Continue</button></form>",
        ("Enter the number of your reading card.",),
    ),
    ShortPage(
        "sign in, in Turkish",
        TURKISH,
        "Giriş yap",
        "<form action=/giris><p>Abone numaranız ve parolanız ile girin.</p><input name=no></form>",
        ("Abone numaranız ve parolanız ile girin.",),
    ),
    ShortPage(
        "not found",
        GERMAN,
        "Seite nicht gefunden",
        '<p>Diese Adresse gibt es nicht mehr. Zurück zum <a href="/hilfe">Hilfebereich</a>.</p>',
        ("Diese Adresse gibt es nicht mehr. Zurück zum Hilfebereich.",),
    ),
    ShortPage(
        "server error",
        RUSSIAN,
        "Ошибка 500",
        "<p>Мы уже чиним. Зайдите через час.</p>",
        ("Мы уже чиним. Зайдите через час.",),
    ),
    ShortPage(
        "opening hours",
        ENGLISH,
        "Opening hours",
        "<table><tr><th>Monday</th><td>9 to 12</td></tr><tr><th>Tuesday</th><td>14 to 18</td></tr>"
        "<tr><th>Wednesday</th><td>closed</td></tr></table>",
        ("Monday 9 to 12", "Tuesday 14 to 18", "Wednesday closed"),
    ),
    ShortPage(
        "opening hours in German",
        GERMAN,
        "Öffnungszeiten",
        "<dl><dt>Montag</dt><dd>8 bis 16 Uhr</dd><dt>Freitag</dt><dd>8 bis 12 Uhr</dd></dl>",
        ("Montag", "8 bis 16 Uhr", "Freitag", "8 bis 12 Uhr"),
    ),
    ShortPage(
        "opening hours in Japanese",
        JAPANESE,
        "開館時間",
        "<table><tr><td>平日</td><td>九時から十七時</td></tr><tr><td>土曜</td><td>十時から十五時</td></tr></table>",
        ("平日 九時から十七時", "土曜 十時から十五時"),
    ),
    ShortPage(
        "quotation",
        FRENCH,
        "Citation du jour",
        "<blockquote><p>Qui roule lentement voit le héron.</p></blockquote><p>Un éclusier</p>",
        ("Qui roule lentement voit le héron.", "Un éclusier"),
    ),
    ShortPage(
        "gallery with captions",
        RUSSIAN,
        "Фотографии зала",
        "<figure><img src=1.jpg><figcaption>Маятник у окна</figcaption></figure>"
        "<figure><img src=2.jpg><figcaption>Кукушка без крыла</figcaption></figure>",
        ("Маятник у окна", "Кукушка без крыла"),
    ),
    ShortPage(
        "gallery of linked pictures",
        ENGLISH,
        "Pictures of the fair",
        "".join(
            f"<figure><a href=/p{n}><img src={n}.jpg></a><figcaption>{said}</figcaption></figure>"
            for n, said in enumerate(("The tallest stilts", "Goats on parade", "Rain at noon"))
        ),
        ("The tallest stilts", "Goats on parade", "Rain at noon"),
    ),
    ShortPage(
        "changelog of one line",
        ENGLISH,
        "Changes in 2.1.4",
        "<ul><li>The clock no longer stops at midnight.</li></ul>",
        ("Changes in 2.1.4", "The clock no longer stops at midnight."),
    ),
    ShortPage(
        "event",
        ARABIC,
        "معرض الخط",
        "<p>الخميس، السابعة مساءً، القاعة الصغرى.</p>",
        ("الخميس، السابعة مساءً، القاعة الصغرى.",),
    ),
    ShortPage(
        "event in French",
        FRENCH,
        "Balade nocturne",
        "<p>Départ samedi à 21 h devant l'écluse.</p><p>Lampe obligatoire.</p>",
        ("Départ samedi à 21 h devant l'écluse.", "Lampe obligatoire."),
    ),
    ShortPage(
        "price list",
        GERMAN,
        "Ladesäulen",
        "<table><tr><td>Normal</td><td>0,39 €</td></tr><tr><td>Schnell</td><td>0,54 €</td></tr></table>",
        ("Normal 0,39 €", "Schnell 0,54 €"),
    ),
    ShortPage(
        "question and answer",
        JAPANESE,
        "忘れ物をしました",
        "<p>一階の窓口で三か月間お預かりします。</p>",
        ("忘れ物をしました", "一階の窓口で三か月間お預かりします。"),
    ),
    ShortPage(
        "download",
        TURKISH,
        "İmar planı",
        "<p>Pafta 17, ölçek 1/1000. <a href=/pafta17.pdf>PDF olarak indir</a> (2 MB)</p>",
        ("Pafta 17, ölçek 1/1000. PDF olarak indir (2 MB)",),
    ),
    ShortPage(
        "thanks",
        ENGLISH,
        "Thank you",
        "<p>Your message has reached us. We answer within two days.</p>",
        ("Your message has reached us. We answer within two days.",),
    ),
    ShortPage(
        "about cookies",
        ENGLISH,
        "Biscuit stall",
        "<p>Our cookies are baked on Tuesdays with butter from the valley.</p>",
        ("Our cookies are baked on Tuesdays with butter from the valley.",),
    ),
)


def _links(labels: tuple[str, ...], start: str = "<li>", end: str = "</li>") -> str:
    return "".join(f'{start}<a href="/{n}">{label}</a>{end}' for n, label in enumerate(labels))


def _page(page: ShortPage, body: str) -> str:
    head = f"<meta charset=utf-8><title>{page.title} - {page.site.name}</title>"
    return f"<!doctype html><html lang={page.site.language}><head>{head}</head><body>{body}</body></html>"


def _semantic(page: ShortPage) -> str:
    site = page.site
    return (
        f"<header><a href=/>{site.name}</a><nav><ul>{_links(site.menu)}</ul></nav></header>"
        f"<main><h1>{page.title}</h1>{page.content}</main>"
        f"<aside><h2>{site.menu[-1]}</h2><ul>{_links(site.teasers)}</ul></aside>"
        f"<footer><ul>{_links(site.footer)}</ul><p>{site.rights}</p></footer>"
        f'<div id="cookie-banner"><p>{site.cookies}</p><button>OK</button></div>'
    )


def _without_main(page: ShortPage) -> str:
    site = page.site
    return (
        f"<header><a href=/>{site.name}</a><ul>{_links(site.menu)}</ul></header>"
        f'<ol class="breadcrumb"><li><a href=/>{site.menu[0]}</a></li><li><a href=/2>{site.menu[2]}</a></li></ol>'
        f'<div class="content"><h1>{page.title}</h1>{page.content}</div>'
        f"<footer>{_links(site.footer, '<p>', '</p>')}<p>{site.rights}</p></footer>"
        f'<div class="gdpr-notice"><p>{site.cookies}</p><a href=/ok>OK</a></div>'
    )


def _named_divs(page: ShortPage) -> str:
    site = page.site
    return (
        f'<div id="wrapper"><div class="top"><div class="logo"><a href=/>{site.name}</a></div>'
        f"{_links(site.menu, '<div class=menu-item>', '</div>')}</div>"
        f'<div class="columns with-sidebar"><div class="sidebar"><h3>{site.menu[3]}</h3>'
        f"{_links(site.teasers, '<div class=teaser>', '</div>')}</div>"
        f'<div class="center"><h1>{page.title}</h1>{page.content}</div></div>'
        f'<div id="footer-links">{_links(site.footer, "<span>", "</span>")}<div>{site.rights}</div></div></div>'
        f'<div id="cookieNotice"><span>{site.cookies}</span><a href=/c>OK</a></div>'
    )


def _nameless_divs(page: ShortPage) -> str:
    site = page.site
    columns = "".join(
        f"<div class=q7><div class=q8>{label}</div>{_links(part, '<div class=q9>', '</div>')}</div>"
        for label, part in ((site.menu[1], site.footer[:2]), (site.menu[2], site.footer[2:]))
    )
    teasers = _links(site.teasers, "<div class=u2>", f" <span>{site.menu[-1]}</span></div>")
    return (
        f"<div class=a1><div class=b2><div class=b3><a href=/>{site.name}</a></div>"
        f"<div class=b4>{_links(site.menu, '<div><span>', '</span></div>')}</div></div>"
        f"<div class=c5><div class=c6><h1>{page.title}</h1><div class=c7>{page.content}</div></div>"
        f"<div class=u1>{teasers}</div></div>"
        f"<div class=q6>{columns}<div class=q5>{site.rights}</div></div></div>"
        f'<div class=z1 style="position:fixed;bottom:0"><div>{site.cookies}</div><div><a href=/x>OK</a></div></div>'
    )


def _layout_tables(page: ShortPage) -> str:
    site = page.site
    return (
        f"<table width=100%><tr><td colspan=3><font size=6>{site.name}</font></td></tr>"
        f"<tr><td width=150>{_links(site.menu, '', '<br>')}</td>"
        f"<td><font size=4><b>{page.title}</b></font>{page.content}</td>"
        f"<td width=150><b>{site.menu[-1]}</b><br>{_links(site.teasers, '', '<br><br>')}</td></tr>"
        f"<tr><td colspan=3 align=center>{_links(site.footer, '', ' | ')}<br>{site.rights}</td></tr></table>"
    )


def _blog(page: ShortPage) -> str:
    site = page.site
    return (
        f'<a class="skip-link" href="#c">{site.menu[1]}</a><div class="site-header"><p class="site-title">'
        f'<a href=/>{site.name}</a></p></div><div class="main-navigation"><ul>{_links(site.menu)}</ul></div>'
        f'<article><h1 class="entry-title">{page.title}</h1><div class="entry-content">{page.content}</div></article>'
        f'<div class="widget-area"><section class="widget"><h2>{site.menu[-2]}</h2><ul>{_links(site.teasers)}</ul>'
        f"</section></div><footer>{site.rights} {_links(site.footer, '', ' ')}</footer>"
        f'<div role="dialog"><p>{site.cookies}</p></div>'
    )


def _shop(page: ShortPage) -> str:
    site = page.site
    mega = "".join(
        f"<div class=col><h3>{site.menu[n]}</h3><ul>{_links(site.menu[n + 1 : n + 3])}</ul></div>" for n in (0, 3, 5)
    )
    also = _links(site.teasers, "<div class=card>", "<p>1</p></div>")
    return (
        f"<div class=mega-menu>{mega}</div><div class=page><div class=breadcrumbs><a href=/>{site.menu[0]}</a> / "
        f"<a href=/s>{site.menu[1]}</a> / {page.title}</div><div class=detail><div><h1>{page.title}</h1></div>"
        f"<div>{page.content}</div></div></div><div class=related-items><h2>{site.menu[4]}</h2>{also}</div>"
        f"<form class=newsletter><label>{site.footer[-1]}</label><input></form>"
        f"<div class=footer-bottom>{_links(site.footer[:2], '', ' ')} {site.rights}</div>"
        f"<div class=cc-window>{site.cookies}</div>"
    )


def _flat(page: ShortPage) -> str:
    site = page.site
    return (
        f"<p>{_links(site.menu, '', ' | ')}</p><h1>{page.title}</h1>{page.content}"
        f"<hr><p>{_links(site.footer[:2], '', ' ')}</p><p>{site.rights}</p>"
    )


def _framework(page: ShortPage) -> str:
    site = page.site
    return (
        f'<div class="navbar"><div class="container"><a class="navbar-brand" href="/">{site.name}</a>'
        f"<button>Menu</button><div class=collapse>{_links(site.menu, '<span>', '</span>')}</div></div></div>"
        f"<div class=jumbotron><div class=container><h1>{page.title}</h1></div></div><div class=container>"
        f"<div class=row><div class=col-8>{page.content}</div><div class=col-4>{_links(site.teasers, '', '')}</div>"
        f"</div></div><div class=bg-dark><div class=col><h5>{site.menu[2]}</h5>{_links(site.footer, '<p>', '</p>')}"
        f"</div><div class=col><p>{site.rights}</p></div></div>"
    )


def _page_builder(page: ShortPage) -> str:
    site = page.site
    return (
        f'<div class="builder-header"><div class="builder-widget"><ul>{_links(site.menu)}</ul></div></div>'
        f'<div class="builder-12"><section class="builder-section"><div class="builder-widget"><h2>{page.title}</h2>'
        f'</div><div class="builder-widget builder-widget-text">{page.content}</div></section></div>'
        f'<div class="builder-end"><div class="builder-widget"><ul>{_links(site.footer)}</ul></div>'
        f'<div class="builder-widget"><p>{site.rights}</p></div></div><div id="cmp-box">{site.cookies}</div>'
    )


def _main_with_frame(page: ShortPage) -> str:
    site = page.site
    return (
        f"<div class=cookie-bar>{site.cookies}</div><header role=banner><a href=/>{site.name}</a><form><input></form>"
        f"<ul>{_links(site.menu)}</ul></header><main><div class=breadcrumb><a href=/>{site.menu[0]}</a> &gt; "
        f"<a href=/x>{site.menu[1]}</a></div><h1>{page.title}</h1>{page.content}<div class=share-buttons>"
        f"<a href=/f>{site.footer[2]}</a> <a href=/t>{site.footer[3]}</a></div></main><footer>{site.rights}</footer>"
    )


def _sections(page: ShortPage) -> str:
    site = page.site
    return (
        f"<div class=hd><div>{site.name}</div><div>{_links(site.menu, '', '')}</div></div>"
        f"<section><h1>{page.title}</h1></section><section>{page.content}</section><section class=dark>"
        f"<h3>{site.footer[0]}</h3>{_links(site.footer, '<div>', '</div>')}<small>{site.rights}</small></section>"
        f"<div class=overlay>{site.cookies} <button>OK</button></div>"
    )


LAYOUTS: dict[str, Callable[[ShortPage], str]] = {
    "a main element": _semantic,
    "no main element": _without_main,
    "divs with names": _named_divs,
    "divs without names": _nameless_divs,
    "layout tables": _layout_tables,
    "blog": _blog,
    "shop": _shop,
    "no containers": _flat,
    "framework": _framework,
    "page builder": _page_builder,
    "frame in the main element": _main_with_frame,
    "sections": _sections,
}


def short_pages() -> Iterator[tuple[str, ShortPage, str]]:
    """Each page in each layout: the layout's name, the page, and its HTML."""
    for name, layout in LAYOUTS.items():
        for page in PAGES:
            yield name, page, _page(page, layout(page))


def frame_words(page: ShortPage) -> set[str]:
    """The words of its site's frame that are none of its own."""
    site = page.site
    frame = " ".join((site.name, *site.menu, *site.teasers, *site.footer, site.rights, site.cookies))
    own = page.title + " " + " ".join(page.own)
    return {word.strip(".,:|") for word in frame.split() if word.strip(".,:|") not in own} - {"", "©"}
