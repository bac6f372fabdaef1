"""The timeline: the list of all events, filters, the histogram, the selected event. Issue 23, point 2."""

import re
import urllib.parse

from playwright.sync_api import expect

import events
import logs
import screen
import studio


def test_the_first_screen_shows_the_newest_events(page, long):
    screen.show(page, long)
    expect(screen.count(page)).to_have_text("3,000 events")
    shown = screen.positions(page)
    assert shown[0] == 3_000
    assert shown == list(range(3_000, 3_000 - len(shown), -1))
    assert 5 < len(shown) < 100  # only what is on the screen is in the document


def test_a_row_shows_what_was_recorded(page, long):
    screen.show(page, long, "timeline?order=oldest")
    first = next(events.journey(1))
    position, time, kind, subject, status, data = screen.row_texts(page)[0]
    assert (position, time) == ("1", "2026-03-01 08:00:00.000Z")
    assert (kind, subject) == (first["type"], first["data"]["noteId"])
    assert "pending" in status
    assert first["data"]["content"] in data


def test_the_list_scrolls_to_its_end(page, long):
    screen.show(page, long)
    page.locator(".list.events").evaluate("list => { list.scrollTop = list.scrollHeight; }")
    expect(screen.rows(page).filter(has_text="2026-03-01 08:00:00.000Z")).to_be_visible()
    assert screen.positions(page)[-1] == 1


def test_the_list_scrolls_through_the_middle(page, long):
    screen.show(page, long)
    page.locator(".list.events").evaluate("list => { list.scrollTop = list.scrollHeight / 2; }")
    expect(screen.rows(page).filter(has_text="1,500")).to_be_visible()
    shown = screen.positions(page)
    assert shown == list(range(shown[0], shown[0] - len(shown), -1))


def test_the_wheel_scrolls_row_by_row(page, long):
    screen.show(page, long)
    page.locator(".list.events").hover()
    page.mouse.wheel(0, 600)
    page.wait_for_function("() => document.querySelector('.list.events').scrollTop > 500")
    expect(screen.rows(page).filter(has_text="2,980").first).to_be_visible()
    shown = screen.positions(page)
    assert shown == list(range(shown[0], shown[0] - len(shown), -1))


def test_the_keyboard_moves_to_the_last_row_and_back(page, long):
    screen.show(page, long)
    page.locator(".list.events").focus()
    page.keyboard.press("End")
    expect(page.locator(".list-row.active")).to_contain_text("2026-03-01 08:00:00.000Z")
    page.keyboard.press("ArrowUp")
    expect(page.locator(".list-row.active .cell").first).to_have_text("2")
    page.keyboard.press("Home")
    expect(page.locator(".list-row.active .cell").first).to_have_text("3,000")


FILTERS = {
    "type=daybook.note.added": lambda event: event["type"] == "daybook.note.added",
    "type=daybook.note.added&type=daybook.note.deleted": lambda event: event["type"] in (
        "daybook.note.added", "daybook.note.deleted"),
    "subject=lisbon": lambda event: event["data"].get("cityId") == "lisbon" and "city." in event["type"],
    "lane=city%3Aana%3Aporto": lambda event: event["data"].get("userId") == "ana"
    and event["data"].get("cityId") == "porto",
    "account=mei": lambda event: event["data"].get("userId") == "mei",
    "status=pending": lambda event: True,
    "status=parked": lambda event: False,
    "from=100&to=199": None,
    "since=2026-03-02T00%3A00%3A00.000Z&until=2026-03-02T01%3A00%3A00.000Z":
        lambda event: event["time"].startswith("2026-03-02T00:"),
    "text=GARDEN": lambda event: "garden" in str(event["data"]),
    "account=ana&text=quito": lambda event: event["data"].get("userId") == "ana"
    and event["data"].get("cityId") == "quito",
}


def test_a_link_with_filters_shows_the_events_that_pass_them(page, long):
    listed = list(enumerate(events.journey(3_000), 1))
    screen.show(page, long)
    for query, passes in FILTERS.items():
        wanted = [number for number, event in listed if (100 <= number <= 199 if passes is None else passes(event))]
        screen.go(page, f"timeline?{query}")
        page.reload()
        screen.wait_until_shown(page, "timeline")
        if wanted:
            expect(screen.count(page)).to_have_text(f"{len(wanted):,} of 3,000 events")
            shown = screen.positions(page)
            assert shown and shown == wanted[::-1][:len(shown)], query
        else:
            expect(page.get_by_text("No event passes the filters.")).to_be_visible()
        assert screen.fragment(page) == f"#timeline?{query}"


def test_a_filter_by_source_finds_what_another_device_has_recorded(page, field):
    screen.show(page, field, "timeline?" + urllib.parse.urlencode({"source": logs.OTHER_DEVICE}))
    expect(screen.count(page)).to_have_text("1 of 258 events")
    expect(screen.rows(page)).to_contain_text("received")


def test_a_filter_by_status_finds_every_event_of_the_status(page, field):
    screen.show(page, field)
    numbers = {"settled": 241, "parked": 1, "conflict": 1, "pending": 12, "received": 1, "record": 2}
    for status, number in numbers.items():
        screen.go(page, f"timeline?status={status}")
        expect(screen.count(page)).to_have_text(f"{number} of 258 events")
        assert all(status in row[4] for row in screen.row_texts(page))


def test_a_filter_chosen_in_a_menu_is_in_the_address_and_can_be_removed(page, long):
    screen.show(page, long)
    page.locator("summary", has_text="Type").click()
    page.get_by_label("daybook.note.deleted").check()
    page.keyboard.press("Escape")
    deleted = sum(event["type"] == "daybook.note.deleted" for event in events.journey(3_000))
    expect(screen.count(page)).to_have_text(f"{deleted} of 3,000 events")
    assert screen.fragment(page) == "#timeline?type=daybook.note.deleted"
    page.get_by_role("button", name="remove the filter type: daybook.note.deleted").click()
    expect(screen.count(page)).to_have_text("3,000 events")
    page.go_back()
    expect(screen.count(page)).to_have_text(f"{deleted} of 3,000 events")


def test_text_is_searched_while_it_is_typed(page, long):
    screen.show(page, long)
    page.keyboard.press("/")
    page.keyboard.type("Garden Behind")
    found = sum("garden behind" in str(event["data"]) for event in events.journey(3_000))
    expect(screen.count(page)).to_have_text(f"{found} of 3,000 events")
    assert screen.fragment(page) == "#timeline?text=Garden+Behind"
    page.keyboard.press("Control+a")
    page.keyboard.press("Delete")
    expect(screen.count(page)).to_have_text("3,000 events")


def test_the_end_of_a_time_range_is_chosen_in_local_time(page, long):
    screen.show(page, long, "timeline?time=local")
    page.locator("summary", has_text="More filters").click()
    page.get_by_label("until").fill("2026-03-01T10:00:00.000")
    page.keyboard.press("Enter")
    expect(screen.count(page)).to_have_text("40 of 3,000 events")  # to 9:00 UTC, one each 90 s
    assert "until=2026-03-01T09%3A00%3A00.000Z" in screen.fragment(page)
    assert "2026-03-01 09:58:30.000 +01:00" in screen.row_texts(page)[0]


def test_a_filter_can_be_saved_by_name(page, long):
    screen.show(page, long, "timeline?account=mei&text=quito")
    found = sum(event["data"].get("userId") == "mei" and "quito" in str(event["data"]) for event in events.journey(3_000))
    expect(screen.count(page)).to_have_text(f"{found} of 3,000 events")
    page.locator("summary", has_text="Saved").click()
    page.get_by_label("name of the filter").fill("Mei in Quito")
    page.get_by_role("button", name="save this filter").click()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="clear all", exact=True).click()
    expect(screen.count(page)).to_have_text("3,000 events")
    page.reload()
    screen.wait_until_shown(page, "timeline")
    page.locator("summary", has_text="Saved").click()
    page.get_by_role("button", name="Mei in Quito", exact=True).click()
    expect(screen.count(page)).to_have_text(f"{found} of 3,000 events")


def test_the_histogram_is_brushed_with_the_keyboard(page, long):
    screen.show(page, long)
    start = page.get_by_role("slider", name="start of the selected time")
    start.focus()
    for step in range(1, 7):
        page.keyboard.press("PageUp")
        expect(start).to_have_attribute("aria-valuenow", str(step * 10))
        page.wait_for_function("() => location.hash.includes('since=')")
        screen.wait_until_shown(page, "timeline")
    expect(screen.count(page)).to_have_text(re.compile(r"^1,\d\d\d of 3,000 events"))
    since = urllib.parse.parse_qs(screen.fragment(page).split("?")[1])["since"][0]
    selected = [event for event in events.journey(3_000) if event["time"] >= since]
    expect(screen.count(page)).to_have_text(f"{len(selected):,} of 3,000 events")
    page.keyboard.press("Escape")
    expect(screen.count(page)).to_have_text("3,000 events")


def test_the_histogram_counts_every_key_press(page, long):
    screen.show(page, long)
    start = page.get_by_role("slider", name="start of the selected time")
    start.focus()
    for _ in range(6):
        page.keyboard.press("PageUp")
    expect(start).to_have_attribute("aria-valuenow", "60")


def test_the_histogram_is_brushed_with_the_mouse(page, long):
    screen.show(page, long)
    area = page.locator(".histogram-area")
    expect(area.locator("rect").first).to_be_attached()
    box = area.bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.25, box["y"] + 10)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 10, steps=4)
    page.mouse.up()
    expect(screen.count(page)).to_have_text(re.compile(r"^\d+ of 3,000 events"))
    assert "since=" in screen.fragment(page) and "until=" in screen.fragment(page)


# One event


def test_a_selected_event_shows_its_json_and_its_location_on_disk(page, long):
    screen.show(page, long, "timeline?order=oldest")
    screen.rows(page).nth(4).click()
    detail = screen.detail(page)
    expect(detail.get_by_role("heading", level=2)).to_have_text("event 5")
    fifth = list(events.journey(5))[4]
    expect(detail.get_by_role("region", name="JSON")).to_contain_text(f'"{fifth["id"]}"')
    for part in ["00000000000000000001.lz4", "frame", "block", "of the frame's plaintext"]:
        expect(detail).to_contain_text(part)
    assert screen.fragment(page) == "#timeline?order=oldest&event=5"
    page.keyboard.press("Escape")
    expect(detail).to_be_hidden()
    assert screen.fragment(page) == "#timeline?order=oldest"


def test_a_link_to_an_event_scrolls_to_it_and_opens_it(page, long):
    screen.show(page, long, "timeline?event=1234")
    expect(screen.detail(page).get_by_role("heading", level=2)).to_have_text("event 1,234")
    expect(screen.rows(page).filter(has_text="1,234").first).to_be_visible()
    expect(page.locator(".list-row.marked")).to_contain_text("1,234")


def test_an_event_that_the_log_does_not_have_is_said_to_be_missing(page, long):
    page.allowed_faults += ["status of 404"]
    screen.show(page, long, "timeline?event=999999")
    expect(screen.detail(page)).to_contain_text("no event")


def test_causes_and_effects_of_a_conflict_lead_from_one_event_to_the_other(page, field):
    mine = field.api("find", id=events.identifier("mine"))["position"]
    base = field.api("find", id=events.identifier("base"))["position"]
    screen.show(page, field, f"timeline?event={mine}")
    detail = screen.detail(page)
    expect(detail.get_by_role("heading", name="Causes")).to_be_visible()
    link = detail.locator("li", has_text="based on").get_by_role("link", name=f"event {base}")
    link.click()
    expect(detail.get_by_role("heading", level=2)).to_have_text(f"event {base}")
    expect(detail.locator("li", has_text="base of").filter(has_text=f"event {mine}")).to_be_visible()


def test_the_story_of_a_parked_event_says_why_it_waits(page, field):
    parked = field.api("find", id=events.identifier("rejected"))["position"]
    screen.show(page, field, f"timeline?event={parked}")
    story = screen.detail(page).locator(".story")
    expect(story).to_contain_text("recorded")
    expect(story).to_contain_text("parked")
    expect(story).to_contain_text(logs.REJECTION)
    expect(story.locator(".now")).to_contain_text("until it is retried or discarded")
    expect(screen.detail(page).locator("li", has_text="verdict")).to_be_visible()


def test_the_state_before_an_event_is_a_link(page, field):
    screen.show(page, field, "timeline?event=50")
    screen.detail(page).get_by_role("link", name="state before this event").click()
    screen.wait_until_shown(page, "views")
    assert "at=49" in screen.fragment(page)


# A log that grows


def test_events_that_are_imported_appear_at_the_top(page, serve, tmp_path):
    log = studio.import_events(tmp_path / "log", events.journey(20))
    screen.show(page, serve(log))
    expect(screen.count(page)).to_have_text("20 events")
    studio.import_events(log, [events.city_saved("new", "nairobi", 100)])
    expect(screen.count(page)).to_have_text("21 events")
    assert "nairobi" in screen.row_texts(page)[0]
    expect(page.locator("#facts")).to_contain_text("21 events")


def test_rows_that_are_being_read_do_not_move_when_events_are_imported(page, serve, tmp_path):
    log = studio.import_events(tmp_path / "log", events.journey(400))
    screen.show(page, serve(log))
    page.locator(".list.events").focus()
    page.keyboard.press("End")
    expect(screen.rows(page).filter(has_text="2026-03-01 08:00:00.000Z")).to_be_visible()
    before = screen.row_texts(page)
    studio.import_events(log, [events.city_saved(f"new-{number}", "nairobi", 700 + number) for number in range(30)])
    newer = page.get_by_role("button", name="30 new events: show")
    expect(newer).to_be_visible()
    assert screen.row_texts(page) == before
    newer.click()
    expect(screen.count(page)).to_have_text("430 events")
    assert screen.positions(page)[0] == 430
