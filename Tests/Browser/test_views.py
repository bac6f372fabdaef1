"""Views through time: the slider, steps, and two positions compared. Issue 23, point 3."""

import re

from playwright.sync_api import expect

import events
import screen
import studio


def rows_of_notes(last):
    """The notes that live after the first `last` events, by id."""
    notes = {}
    for event in list(events.journey(3_000))[:last]:
        data = event["data"]
        if event["type"] == "daybook.note.deleted":
            notes.pop(data["noteId"])
        elif event["type"].startswith("daybook.note."):
            notes[data["noteId"]] = data["content"]
    return notes


def is_of_a_note(event):
    return event["type"].startswith("daybook.note.")


def test_a_view_shows_its_rows_at_the_end_of_the_log(page, long):
    screen.show(page, long, "views?view=notes")
    notes = rows_of_notes(3_000)
    expect(screen.count(page)).to_contain_text(f"{len(notes)} rows at position 3,000")
    first = screen.row_texts(page)[0]
    assert first[0] in notes and notes[first[0]] in first


def test_every_view_of_the_list_can_be_shown(page, long):
    screen.show(page, long, "views")
    for name in [view["name"] for view in long.api("views")["views"]]:
        page.get_by_role("navigation", name="views").get_by_role("link", name=re.compile(f"^{name}")).click()
        expect(page).to_have_url(re.compile(f"view={name}"))
        expect(page.locator(".views:not(.waiting) .count")).to_contain_text("at position 3,000")


def test_a_link_to_a_position_shows_the_view_as_it_was_there(page, long):
    screen.show(page, long, "views?view=notes&at=100")
    notes = rows_of_notes(100)
    expect(screen.count(page)).to_contain_text(f"{len(notes)} rows at position 100")
    expect(screen.rows(page)).to_have_count(min(len(notes), screen.rows(page).count()))
    assert {row[0] for row in screen.row_texts(page)} <= set(notes)


def test_the_slider_moves_with_the_keyboard(page, long):
    screen.show(page, long, "views?view=notes&at=100")
    slider = page.get_by_role("slider", name="position in the log")
    slider.focus()
    page.keyboard.press("ArrowLeft")
    expect(screen.count(page)).to_contain_text(f"{len(rows_of_notes(99))} rows at position 99")
    expect(page).to_have_url(re.compile(r"at=99\b"))
    page.keyboard.press("Home")
    expect(screen.count(page)).to_contain_text("0 rows at position 0")
    page.keyboard.press("End")
    expect(screen.count(page)).to_contain_text("at position 3,000")
    expect(slider).to_have_attribute("aria-valuetext", "position 3,000")


def test_a_step_goes_to_the_next_event_that_changes_the_view(page, long):
    listed = [number for number, event in enumerate(events.journey(3_000), 1) if is_of_a_note(event)]
    following = next(number for number in listed if number > 100)
    before = max(number for number in listed if number < following)
    screen.show(page, long, "views?view=notes&at=100")
    page.get_by_role("button", name="next change").click()
    expect(screen.count(page)).to_contain_text(f"at position {following},")
    page.keyboard.press("[")
    expect(screen.count(page)).to_contain_text(f"at position {before},")
    page.keyboard.press("]")
    expect(screen.count(page)).to_contain_text(f"at position {following},")
    page.get_by_role("link", name="event at this position").click()
    screen.wait_until_shown(page, "timeline")
    expect(screen.detail(page)).to_contain_text("daybook.note.")


def test_the_slider_has_marks_where_the_view_changes(page, long):
    screen.show(page, long, "views?view=notes")
    marks = page.locator(".slider-marks")
    expect(marks.locator("path")).to_have_attribute("d", re.compile(r"(M\d+ .*?z){50}"))
    buckets = long.api("views/notes/marks", buckets=300)["buckets"]
    assert sum(buckets) == sum(is_of_a_note(event) for event in events.journey(3_000))
    assert marks.get_attribute("aria-hidden") == "true"


def test_rows_are_filtered_by_text(page, long):
    screen.show(page, long, "views?view=notes&at=400")
    found = [note for note, text in rows_of_notes(400).items() if "garden behind" in text]
    page.get_by_label("filter rows").fill("Garden Behind")
    expect(screen.count(page)).to_contain_text(f"{len(found)} row")
    assert {row[0] for row in screen.row_texts(page)} == set(found)
    assert "text=Garden+Behind" in screen.fragment(page)


def test_two_positions_are_compared_with_the_event_that_caused_each_change(page, long, screenshot):
    before, after = rows_of_notes(1_000), rows_of_notes(1_020)
    added, removed = set(after) - set(before), set(before) - set(after)
    changed = {note for note in set(before) & set(after) if before[note] != after[note]}
    screen.show(page, long, "views?view=notes&at=1020&compare=1000")
    comparison = page.get_by_role("region", name="comparison", exact=True)
    expect(comparison.get_by_role("status")).to_contain_text(
        f"from 1,000 to 1,020: {len(added)} row{'' if len(added) == 1 else 's'} added, {len(removed)} removed, "
        f"{len(changed)} changed")
    listed = list(events.journey(1_020))
    for note in added | removed | changed:
        cause = max(number for number, event in enumerate(listed, 1) if event["data"].get("noteId") == note)
        row = comparison.get_by_role("row").filter(has=page.get_by_role("cell", name=note, exact=True))
        expect(row).to_contain_text(f"event {cause:,}")
        expect(row).to_contain_text(listed[cause - 1]["type"])
    screenshot(page, "studio-compare")
    page.get_by_role("button", name="end comparison").click()
    expect(comparison).to_have_count(0)


def test_a_cause_leads_to_its_event(page, long):
    screen.show(page, long, "views?view=notes&at=1020&compare=1000")
    link = page.get_by_role("region", name="comparison", exact=True).get_by_role("link").first
    position = link.inner_text()
    link.click()
    expect(screen.detail(page).get_by_role("heading", level=2)).to_have_text(position)


def test_a_view_follows_the_log_until_a_position_is_chosen(page, serve, tmp_path):


    log = studio.import_events(tmp_path / "log", events.journey(30))
    screen.show(page, serve(log), "views?view=cities")
    expect(screen.count(page)).to_contain_text("at position 30")
    studio.import_events(log, [events.city_saved("new", "nairobi", 100)])
    expect(screen.count(page)).to_contain_text("at position 31")
    expect(screen.rows(page).filter(has_text="nairobi")).to_be_visible()
    page.get_by_role("slider", name="position in the log").focus()
    page.keyboard.press("ArrowLeft")
    expect(screen.count(page)).to_contain_text("at position 30")
    studio.import_events(log, [events.city_saved("newer", "cuzco", 101)])
    expect(page.locator("#facts")).to_contain_text("32 events")
    expect(screen.count(page)).to_contain_text("at position 30")
    page.get_by_role("button", name="now").click()
    expect(screen.rows(page).filter(has_text="cuzco")).to_be_visible()
