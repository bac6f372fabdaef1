"""The file that is mailed: every screen from `file://`, without a network. Issue 23, points 1 and 9."""

import json

import pytest
from playwright.sync_api import expect

import events
import logs
import screen
import studio


@pytest.fixture(scope="module")
def mailed(field_log, tmp_path_factory):
    """The address of the file of the field log."""
    file = tmp_path_factory.mktemp("mailed") / "log.html"
    studio.logtool("studio", field_log, "--html", file)
    return file.as_uri()


@pytest.fixture
def offline(new_page):
    """A page without a network. When the test ends, it may have requested nothing but the file."""
    page = new_page()
    page.context.set_offline(True)
    yield page
    assert [url for url in page.sent_requests if not url.startswith(("file:", "blob:"))] == []
    assert sum(url.startswith("file:") for url in page.sent_requests) >= 1


def show(page, mailed, fragment):
    page.goto(f"{mailed}#{fragment}")
    screen.wait_until_shown(page, fragment.split("?")[0])


def test_the_timeline_is_shown(offline, mailed):
    show(offline, mailed, "timeline")
    expect(screen.count(offline)).to_have_text("258 events")
    expect(offline.locator("#facts")).to_contain_text("a copy of the log")
    assert screen.positions(offline)[0] == 258


def test_filters_and_the_text_search_find_the_same_as_the_server(offline, mailed, field):
    show(offline, mailed, "timeline")
    for query in ["status=parked", "account=mei", "text=GARDEN", "type=daybook.note.added&from=100",
                  "since=2026-03-01T10%3A00%3A00.000Z", "lane=note%3Anote-rejected"]:
        screen.go(offline, f"timeline?{query}")
        total = field.request(f"/api/events?{query}").json()["total"]
        expect(screen.count(offline)).to_have_text(f"{total} of 258 events")
        assert total > 0


def test_an_event_shows_its_json_and_its_story(offline, mailed, field):
    parked = field.api("find", id=events.identifier("rejected"))["position"]
    show(offline, mailed, f"timeline?event={parked}")
    expect(screen.detail(offline).locator(".story")).to_contain_text(logs.REJECTION)
    expect(screen.detail(offline).get_by_role("region", name="JSON")).to_contain_text(events.identifier("rejected"))


def test_the_location_on_disk_is_the_one_that_the_server_shows(offline, page, mailed, field):
    def on_disk(shown):
        place = screen.detail(shown).locator("h3:text-is('On disk') + *")
        expect(place).to_contain_text("of the frame's plaintext")
        return place.inner_text()

    for position in [1, 100, 258]:
        show(offline, mailed, f"timeline?event={position}")
        screen.show(page, field, f"timeline?event={position}")
        for shown in [offline, page]:
            expect(screen.detail(shown).locator("h2")).to_contain_text(f"{position}")
        assert on_disk(offline) == on_disk(page)


def test_views_can_be_shown_at_any_position(offline, mailed, field):
    show(offline, mailed, "views?view=notes&at=100")
    total = field.api("views/notes", at=100)["total"]
    expect(screen.count(offline)).to_contain_text(f"{total} rows at position 100")
    offline.get_by_role("slider", name="position in the log").focus()
    offline.keyboard.press("End")
    expect(screen.count(offline)).to_contain_text("at position 258")


def test_two_positions_are_compared(offline, mailed, field):
    show(offline, mailed, "views?view=notes&at=120&compare=100")
    changes = field.api("views/notes/changes", **{"from": 100, "to": 120})
    expect(offline.get_by_role("region", name="comparison", exact=True).get_by_role("status")).to_contain_text(
        f"{changes['added']} row")
    expect(offline.get_by_role("region", name="changes").get_by_role("link").first).to_be_visible()


def test_the_outbox_is_shown_without_decisions(offline, mailed):
    show(offline, mailed, "outbox")
    entries = offline.get_by_role("region", name="entries of the outbox")
    expect(entries).to_contain_text(logs.REJECTION)
    expect(offline.get_by_role("button", name="retry")).to_have_count(0)


def test_the_files_are_shown_with_their_frames(offline, mailed):
    show(offline, mailed, "files")
    offline.get_by_role("button", name="00000000000000000001.lz4").click()
    expect(offline.get_by_role("region", name="frames", exact=True).get_by_role("row").nth(1)).to_be_visible()
    offline.get_by_role("button", name="verify the whole log").click()
    expect(screen.section(offline, "Verification")).to_contain_text("none")


def test_events_are_downloaded_from_the_file(offline, mailed, field):
    show(offline, mailed, "timeline?status=parked")
    offline.get_by_role("button", name="data out").click()
    with offline.expect_download() as download:
        offline.get_by_role("button", name="events as ndjson").click()
    [line] = download.value.path().read_bytes().splitlines()
    assert json.loads(line) == json.loads(field.request("/api/export?status=parked&format=ndjson").body)


def test_a_file_that_exists_is_not_overwritten(field_log, tmp_path):
    file = tmp_path / "log.html"
    file.write_text("mine")
    studio.logtool("studio", field_log, "--html", file, codes=(74, 64))
    assert file.read_text() == "mine"


def test_only_the_owner_can_read_the_file(field_log, tmp_path):
    studio.logtool("studio", field_log, "--html", tmp_path / "log.html")
    assert (tmp_path / "log.html").stat().st_mode & 0o777 == 0o600
