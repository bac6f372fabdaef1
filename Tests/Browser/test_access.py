"""Usable by all: keyboard alone, axe, light and dark, narrow and wide windows, large text. Issue 23, point 8."""

import pytest
from playwright.sync_api import expect

import events
import screen
import studio

PHONE = {"width": 390, "height": 844}
SCREENS = {
    "timeline": "timeline",
    "filtered timeline": "timeline?type=daybook.note.added&text=garden&since=2026-03-01T09%3A00%3A00.000Z",
    "selected event": "timeline?event={parked}",
    "no hits": "timeline?text=nothing-has-this",
    "views": "views?view=notes",
    "comparison": "views?view=notes&at=120&compare=100",
    "outbox": "outbox",
    "files": "files?segment=00000000000000000001.lz4",
}


@pytest.fixture(scope="module")
def fragments(field):
    """The fragments of SCREENS."""
    parked = field.api("find", id=events.identifier("rejected"))["position"]
    return {name: text.format(parked=parked) for name, text in SCREENS.items()}


def show(page, server, fragments, name):
    """Shows a screen with all that it loads later."""
    if page.url.startswith(server.origin):
        screen.go(page, fragments[name])
    else:
        screen.show(page, server, fragments[name])
    later = {"timeline": ".histogram-area rect", "filtered timeline": ".chips .chip", "no hits": ".empty",
             "comparison": ".comparison", "selected event": ".story .now", "files": ".segment-detail tr"}
    expect(page.locator(later.get(name, ".tab")).first).to_be_visible()


# axe


def assert_axe_finds_nothing(axe, page, name):
    """Runs axe-core in light and in dark."""
    for scheme in ["light", "dark"]:
        page.emulate_media(color_scheme=scheme)
        assert axe(page) == [], f"{name}, {scheme}"


@pytest.mark.parametrize("name", SCREENS)
def test_axe_finds_nothing(page, field, fragments, axe, name):
    show(page, field, fragments, name)
    assert_axe_finds_nothing(axe, page, name)


def test_axe_finds_nothing_in_what_opens(page, serve, field_log, axe):
    server = serve(field_log, "--write")
    screen.wait_until_folded(server)
    screen.show(page, server)
    for name in ["Type", "More filters", "Saved"]:
        page.locator("summary", has_text=name).first.click()
        expect(page.locator(".menu[open] .menu-panel > *").first).to_be_visible()
        assert_axe_finds_nothing(axe, page, name)
        page.keyboard.press("Escape")
    for name in ["data out", "keyboard help"]:
        page.get_by_role("button", name=name).click()
        assert_axe_finds_nothing(axe, page, name)
        page.keyboard.press("Escape")
    screen.go(page, "outbox")
    assert_axe_finds_nothing(axe, page, "outbox with decisions")
    page.get_by_role("button", name="discard").first.click()
    expect(page.get_by_role("dialog")).to_be_visible()
    assert_axe_finds_nothing(axe, page, "discard")


def test_axe_finds_nothing_on_a_phone(new_page, field, fragments, axe):
    page = new_page(viewport=PHONE)
    for name in ["selected event", "views", "outbox", "files"]:
        show(page, field, fragments, name)
        assert axe(page) == [], name


def test_axe_finds_nothing_in_a_damaged_log(page, serve, axe):
    screen.show(page, serve(studio.VECTORS / "damaged"), "files")
    page.get_by_role("button", name="verify the whole log").click()
    expect(page.get_by_role("region", name="findings")).to_be_visible()
    assert_axe_finds_nothing(axe, page, "damage")


# The keyboard


def focused(page):
    """The accessible name of the element that has the focus."""
    return page.evaluate("""() => {
      const element = document.activeElement;
      return element.getAttribute('aria-label') ?? element.textContent.trim();
    }""")


def test_the_keyboard_alone_leads_from_a_status_to_the_reason(page, field):
    screen.show(page, field)
    page.keyboard.press("/")
    page.keyboard.type("note-rejected")
    expect(screen.count(page)).to_have_text("3 of 258 events")
    page.keyboard.press("Tab")
    while focused(page) != "events":
        page.keyboard.press("Tab")
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    expect(screen.detail(page).locator(".story")).to_contain_text("the city of the note is unknown")
    page.keyboard.press("k")
    expect(screen.detail(page).locator(".detail-type")).to_contain_text("daybook.note.updated")
    page.keyboard.press("Escape")
    expect(screen.detail(page)).to_be_hidden()
    assert focused(page) == "events"


def test_every_tab_has_a_key(page, field):
    screen.show(page, field)
    for tab in ["views", "outbox", "files", "timeline"]:
        page.keyboard.press("g")
        page.keyboard.press(tab[0])
        screen.wait_until_shown(page, tab)
        assert screen.fragment(page).startswith(f"#{tab}")


def test_the_help_lists_every_key_and_gives_the_focus_back(page, field):
    screen.show(page, field)
    page.get_by_role("button", name="keyboard help").focus()
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog", name="Keyboard")
    for meaning in ["go to Timeline", "search", "next row", "next change of the view", "close what is open",
                    "open the active row"]:
        expect(dialog).to_contain_text(meaning)
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    assert focused(page) == "keyboard help"


def test_letters_that_are_typed_are_no_commands(page, field):
    screen.show(page, field)
    page.keyboard.press("/")
    page.keyboard.type("g v j k ? [")
    expect(page.get_by_label("search text")).to_have_value("g v j k ? [")
    assert screen.fragment(page).startswith("#timeline")


def test_menus_and_dialogs_work_without_a_mouse(page, field):
    screen.show(page, field)
    page.locator("summary", has_text="Status").focus()
    page.keyboard.press("Enter")
    expect(page.locator(".menu[open] .choice").first).to_be_visible()
    while page.evaluate("() => document.activeElement.type") != "checkbox":
        page.keyboard.press("Tab")
    page.keyboard.press("Space")
    expect(page.locator(".chips")).to_contain_text("status: ")
    page.keyboard.press("Escape")
    assert focused(page) == "Status"
    page.get_by_role("button", name="data out").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    assert focused(page) == "data out"


# Distinguishes the elements of a page. The page may make an element anew, so it is no property of the element.
NAME = """(element) => {
  const like = [...document.querySelectorAll(element.tagName)];
  return `${element.tagName} ${like.indexOf(element)} ${element.getAttribute('aria-label') ?? element.textContent}`.slice(0, 80);
}"""


@pytest.mark.parametrize("name", ["timeline", "views", "outbox", "files"])
def test_the_focus_goes_everywhere_is_visible_and_is_never_caught(page, field, fragments, name):
    show(page, field, fragments, name)
    visited = {}
    for _ in range(400):
        page.keyboard.press("Tab")
        step = page.evaluate(f"""() => {{
          const element = document.activeElement;
          if (element === document.body) return null;
          const style = getComputedStyle(element);
          const box = element.getBoundingClientRect();
          const isMarked = (style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2) || style.boxShadow !== 'none';
          return {{ name: ({NAME})(element), isMarked, isShown: box.width > 0 && box.height > 0 }};
        }}""")
        if step is None or step["name"] in visited:
            break
        visited[step["name"]] = step
    else:
        raise AssertionError("the focus does not come back to where it began")
    assert [name for name, step in visited.items() if not step["isMarked"]] == []
    assert [name for name, step in visited.items() if not step["isShown"]] == []
    controls = page.evaluate(f"""() => [...document.querySelectorAll('a[href], button, input, select, summary, [tabindex="0"]')]
      .filter((element) => element.checkVisibility() && !element.disabled
        && !(element.closest('details:not([open])') && element.tagName !== 'SUMMARY'))
      .map({NAME})""")
    assert set(controls) - set(visited) == set()


# Sizes


def overflow(page):
    """The elements that make the page scroll sideways."""
    return page.evaluate("""() => {
      const root = document.documentElement;
      if (root.scrollWidth <= root.clientWidth) return [];
      return [`${root.scrollWidth} > ${root.clientWidth}`, ...[...document.querySelectorAll('body *')]
        .filter((element) => element.getBoundingClientRect().right > root.clientWidth + 1)
        .slice(0, 5).map((element) => element.outerHTML.slice(0, 100))];
    }""")


@pytest.mark.parametrize("width,height", [(390, 844), (2_560, 1_440), (320, 640)])
def test_no_screen_scrolls_sideways(new_page, field, fragments, width, height):
    page = new_page(viewport={"width": width, "height": height})
    for name in SCREENS:
        show(page, field, fragments, name)
        assert overflow(page) == [], name


def test_no_screen_scrolls_sideways_with_text_of_200_per_cent(page, field, fragments):
    for name in SCREENS:
        show(page, field, fragments, name)
        page.evaluate("() => { document.documentElement.style.fontSize = '200%'; }")
        assert overflow(page) == [], name
        assert page.locator("main").is_visible()
        if name == "timeline":
            expect(screen.rows(page).first).to_be_visible()
            clipped = page.evaluate("""() => [...document.querySelectorAll('button, summary, .tile, h2')]
              .filter((element) => element.checkVisibility() && element.scrollHeight > element.clientHeight + 2
                && getComputedStyle(element).overflow === 'hidden').map((element) => element.outerHTML.slice(0, 100))""")
            assert clipped == []


def test_a_phone_shows_the_list_and_then_the_event(new_page, field, screenshot):
    page = new_page(viewport=PHONE, has_touch=True, is_mobile=True, device_scale_factor=2)
    screen.show(page, field, "timeline?to=245")
    expect(screen.rows(page).first).to_be_in_viewport()
    expect(page.locator(".histogram-area rect").first).to_be_attached()
    screenshot(page, "studio-phone")
    screen.rows(page).nth(2).tap()
    expect(screen.detail(page)).to_be_in_viewport()
    page.get_by_role("button", name="close the event").tap()
    expect(screen.detail(page)).to_be_hidden()


# Light and dark


def background(page):
    return page.evaluate("() => getComputedStyle(document.body).backgroundColor")


def test_the_page_follows_the_systems_light_or_dark(new_page, field, screenshot):
    shades = []
    for scheme in ["light", "dark"]:
        page = new_page(color_scheme=scheme)
        screen.show(page, field, "timeline?to=245&event=241")
        expect(screen.detail(page).locator(".story .now")).to_be_visible()
        expect(page.locator(".histogram-area rect").first).to_be_attached()
        shades.append(background(page))
        screenshot(page, f"studio-timeline-{scheme}")
    assert shades[0] != shades[1]


def test_the_reader_can_choose_another_theme_that_is_kept(page, field):
    screen.show(page, field)
    before = background(page)
    button = page.locator("#theme")
    while button.inner_text() != "theme: dark":
        button.click()
    assert background(page) != before
    page.reload()
    screen.wait_until_shown(page, "timeline")
    assert background(page) != before


def test_times_are_in_the_readers_zone_if_chosen(page, field):
    screen.show(page, field, "timeline?event=241")
    expect(screen.detail(page)).to_contain_text("2026-03-01 14:20:00.000Z")
    page.locator("#zone").click()
    expect(screen.detail(page)).to_contain_text("2026-03-01 15:20:00.000 +01:00")
    assert "time=local" in screen.fragment(page)
