"""A question from the field, from start to answer. Issue 23, "My note vanished: find out why"."""

import re

from playwright.sync_api import expect

import logs
import screen


def test_a_note_vanished_because_another_device_deleted_it(page, serve, tmp_path):
    server = serve(logs.make_vanished_log(tmp_path / "log"))
    screen.wait_until_folded(server)
    screen.show(page, server, "views?view=notes")
    page.get_by_role("searchbox", name="filter rows").fill("fish market")
    expect(page.locator(".views .count")).to_have_text(re.compile("^0 rows "))

    # First click: the timeline, where the note is searched for. Second: its newest event.
    page.get_by_role("link", name="Timeline").click()
    page.get_by_role("searchbox", name="search text").fill("fish market")
    expect(screen.count(page)).to_contain_text("2 of")
    screen.rows(page).first.click()
    expect(screen.detail(page)).to_contain_text("Fish market opens at nine on Sundays")

    # Third: the deletion, which is listed with the other events about the note.
    related = screen.detail(page).locator("h3:text-is('Same subject') + ul > li")
    expect(related).to_have_count(3)
    expect(related.first).to_contain_text("daybook.note.deleted")
    expect(related.first).to_contain_text("from another device")
    related.first.get_by_role("link").click()
    expect(screen.detail(page).get_by_role("region", name="JSON")).to_contain_text("jonas")
    expect(screen.detail(page)).to_contain_text("another device")
