"""Events that attack the page: they are shown as text. Issue 23, point 7."""

import pytest
from playwright.sync_api import expect

import events
import screen
import studio
from answering_server import AnsweringServer

TAGS = "<script>ran()</script><img src=x onerror=ran()><svg onload=ran()><iframe srcdoc='<script>parent.ran()</script>'>"
ENDS = "</script><script>ran()</script><!--<script>--></style></textarea></title>\u2028\u2029"
MARKS = "\u202eevil\u202c \u2066isolated\u2069 \u200f\u200b\ufeff\u061c"
CONTROLS = "\x00\x01\x07\x08\x1b[31mred\x7f\x85\r\n\t"
LONG = "long " * 209_500  # an imported line has at most 1 MiB
URLS = "javascript:ran() data:text/html,<script>ran()</script> http://rebound.example/x.png //rebound.example"
TEMPLATES = "{{constructor.constructor('ran()')()}} ${ran()} __proto__ constructor toString"


def nested(levels):
    """An object that has `levels` objects and arrays inside one another."""
    value = "the innermost value"
    for level in range(levels):
        value = {"a": value} if level % 2 else [value]
    return value


def hostile_events():
    texts = [TAGS, ENDS, MARKS, CONTROLS, URLS, TEMPLATES]
    for number, text in enumerate(texts):
        name = text.replace("\x00", "")
        yield events.note_added(f"note-{number}", name, number, text, name)
        yield events.city_saved(f"city-{number}", name, 10 + number, name)
        yield events.event(f"key-{number}", "app.keys", {text: {text: [text]}}, 20 + number, subject=name)
        yield events.event(f"type-{number}", f"app.{name}", {"x": text}, 30 + number, partitionkey=name or "lane")
        yield events.event(f"setting-{number}", "daybook.setting.put", {"key": name, "value": {text: text}}, 40 + number)
    yield events.event("long", "app.long", {"text": LONG}, 50)
    yield events.event("tags", "app.long", {"tags": TAGS * 4_000}, 50)
    yield events.event("deep", "app.deep", {"deep": nested(58)}, 51)
    yield events.event("prototype", "app.prototype", {"__proto__": {"polluted": "yes"}, "constructor": 1}, 52)
    yield events.event("number", "app.number", {"big": 12345678901234567890123, "small": 1e-7, "flag": False}, 53)


@pytest.fixture(scope="module")
def hostile_log(tmp_path_factory):
    log = tmp_path_factory.mktemp("hostile") / "log"
    return studio.import_events(log, hostile_events())


@pytest.fixture(scope="module")
def hostile(hostile_log):
    """A server of a log whose events attack the page."""
    with studio.Studio(hostile_log) as server:
        screen.wait_until_folded(server)
        yield server


def assert_unharmed(page, server=None):
    """Nothing of the log has become an element, a script or a request."""
    assert page.locator("main :is(script, img, iframe, object, embed, style, link, base, meta)").count() == 0
    assert page.evaluate("() => ({}).polluted") is None
    handlers = "element => [...element.attributes].some((attribute) => attribute.name.startsWith('on'))"
    assert page.evaluate(f"() => [...document.querySelectorAll('*')].filter({handlers}).length") == 0
    if server is not None:
        assert [url for url in page.sent_requests if not url.startswith(server.origin + "/")] == []


def test_hostile_events_are_rows_of_text(page, hostile):
    screen.show(page, hostile, "timeline?order=oldest")
    expect(screen.count(page)).to_have_text("35 events")
    expect(screen.rows(page).nth(0)).to_contain_text("<script>ran()</script>")
    assert_unharmed(page, hostile)


def test_every_hostile_event_can_be_opened(page, hostile):
    screen.show(page, hostile, "timeline?order=oldest")
    for position in range(1, 36):
        screen.go(page, f"timeline?order=oldest&event={position}")
        detail = screen.detail(page)
        expect(detail.get_by_role("heading", level=2)).to_have_text(f"event {position}")
        expect(detail.locator(".story .now")).to_be_attached()
        expect(detail.get_by_role("region", name="JSON")).to_be_visible()
    assert_unharmed(page, hostile)


def test_tags_are_shown_letter_by_letter(page, hostile):
    screen.show(page, hostile, "timeline?event=1")
    expect(screen.detail(page).get_by_role("region", name="JSON")).to_contain_text(TAGS)
    assert_unharmed(page, hostile)


def test_marks_of_direction_and_controls_are_visible(page, hostile):
    position = hostile.api("find", id=events.identifier("note-2"))["position"]
    screen.show(page, hostile, f"timeline?event={position}")
    json = screen.detail(page).get_by_role("region", name="JSON")
    for escape in ["\\u202e", "\\u200f", "\\ufeff"]:
        expect(json).to_contain_text(escape)
    assert not set("\u202e\u2066\u200f\u200b\ufeff\u061c") & set(page.locator("body").inner_text())


def test_a_row_is_not_reordered_by_its_text(page, hostile):
    screen.show(page, hostile, "timeline?order=oldest")
    directions = page.evaluate("() => [...document.querySelectorAll('.list-row bdi')].map((text) => text.textContent)")
    assert directions and not set("\u202e\u2066") & set("".join(directions))


@pytest.mark.parametrize("name,length", [("long", 1_000_000), ("tags", 400_000)])
def test_a_string_of_a_mebibyte_is_shown_in_parts(page, hostile, name, length):
    position = hostile.api("find", id=events.identifier(name))["position"]
    screen.show(page, hostile, f"timeline?event={position}")
    detail = screen.detail(page)
    more = detail.get_by_role("button", name="show all").first
    expect(more).to_be_visible()
    assert len(detail.inner_text()) < 100_000
    more.click()
    page.wait_for_function(f"() => document.querySelector('.detail .json').textContent.length > {length}")
    assert_unharmed(page, hostile)


def test_sixty_levels_are_shown_to_the_innermost_value(page, hostile):
    position = hostile.api("find", id=events.identifier("deep"))["position"]
    screen.show(page, hostile, f"timeline?event={position}")
    expect(screen.detail(page).get_by_role("region", name="JSON")).to_contain_text("the innermost value")


def test_numbers_keep_their_digits(page, hostile):
    position = hostile.api("find", id=events.identifier("number"))["position"]
    screen.show(page, hostile, f"timeline?event={position}")
    expect(screen.detail(page).get_by_role("region", name="JSON")).to_contain_text("12345678901234567890123")


def test_hostile_filters_can_be_chosen_and_shared(page, hostile):
    screen.show(page, hostile)
    for menu in ["Type", "Account"]:
        page.locator("summary", has_text=menu).first.click()
        page.locator(".menu[open] .choice", has_text="<script>").first.locator("input").check()
        page.keyboard.press("Escape")
    page.reload()
    screen.wait_until_shown(page, "timeline")
    expect(page.locator(".chips")).to_contain_text("<script>")
    assert_unharmed(page, hostile)


@pytest.mark.parametrize("fragment", [
    "timeline?text=%3Cimg%20src%3Dx%20onerror%3Dran()%3E", "timeline?event=%3Cscript%3Eran()%3C/script%3E",
    "views?view=%3Cscript%3Eran()%3C/script%3E", "outbox?lane=%3Cimg%20src%3Dx%20onerror%3Dran()%3E",
    "files?segment=%3Cscript%3Eran()%3C/script%3E", "%3Cscript%3Eran()%3C/script%3E?x=javascript:ran()",
    "timeline?order=__proto__&time=constructor", "views?at=-1&compare=x"])
def test_a_hostile_link_runs_nothing(page, hostile, fragment):
    page.allowed_faults += ["status of 404", "status of 400"]
    page.goto(f"{hostile.address}#{fragment}")
    expect(page.locator(".tab")).to_be_visible()
    page.wait_for_load_state("networkidle")
    assert_unharmed(page, hostile)


def test_every_other_screen_shows_hostile_events_as_text(page, hostile):
    screen.show(page, hostile, "views?view=notes")
    expect(screen.rows(page).filter(has_text="<script>ran()</script>").first).to_be_visible()
    for name in ["cities", "settings"]:
        screen.go(page, f"views?view={name}")
        expect(page.locator(".views:not(.waiting) .list-row").first).to_be_visible()
        assert_unharmed(page, hostile)
    screen.go(page, "views?view=notes&at=35&compare=0")
    expect(page.get_by_role("region", name="comparison", exact=True)).to_contain_text("<script>ran()</script>")
    assert_unharmed(page, hostile)
    for tab in ["outbox", "files"]:
        screen.go(page, tab)
        assert_unharmed(page, hostile)
    page.get_by_role("button", name="data out").click()
    assert_unharmed(page, hostile)


def test_the_mailed_file_holds_hostile_events_as_text(page, hostile_log, tmp_path):
    file = tmp_path / "hostile.html"
    studio.logtool("studio", hostile_log, "--html", file)
    assert file.read_bytes().lower().count(b"<script") == 2  # the data, and the module
    page.goto(file.as_uri() + "#timeline?order=oldest")
    screen.wait_until_shown(page, "timeline")
    expect(screen.count(page)).to_have_text("35 events")
    for fragment in ["timeline?order=oldest&event=1", "timeline?event=6", "views?view=notes", "outbox", "files"]:
        screen.go(page, fragment)
        assert_unharmed(page)
    assert [url for url in page.sent_requests if not url.startswith("file:")] == []


def test_a_server_that_answers_with_tags_is_shown_as_text(page, serve, tmp_path):
    log = studio.import_events(tmp_path / "log", [events.note_added("note", "note", 0)])
    with AnsweringServer(lambda event: {"status": "rejected", "code": TAGS[:50], "detail": TAGS + MARKS}) as server:
        studio.logtool("replay", log, "--to", server.address, "--once", codes=(1,))
    studio_server = serve(log)
    screen.show(page, studio_server, "outbox")
    expect(page.get_by_role("region", name="entries of the outbox")).to_contain_text("<script>ran()</script>")
    assert_unharmed(page, studio_server)
