"""Logs in special states: each has a screen that says what it is and what to do. Issue 23, point 8."""

import json
import re

import pytest
from playwright.sync_api import expect

import events
import screen
import studio


def banners(page):
    """What the page says of the state of the log."""
    return page.locator("#banners")


def show_every_tab(page):
    """Shows every tab; none may have a fault."""
    for tab in screen.TABS:
        screen.go(page, tab)
        expect(page.locator("main")).not_to_contain_text("undefined")
        expect(page.locator("main")).not_to_contain_text("NaN")


def test_an_empty_log_says_how_events_come_into_it(page, serve, tmp_path):
    log = studio.import_events(tmp_path / "log", [])
    screen.show(page, serve(log))
    expect(banners(page)).to_contain_text("The log has no events yet")
    expect(page.locator(".empty")).to_contain_text(f"logtool import {log}")
    show_every_tab(page)
    screen.go(page, "timeline")
    studio.import_events(log, [events.city_saved("first", "lisbon", 0)])
    expect(screen.count(page)).to_have_text("1 event")
    expect(banners(page)).to_be_empty()


def test_a_folder_that_does_not_exist_is_waited_for(page, serve, tmp_path):
    log = tmp_path / "log"
    page.goto(serve(log).address)
    expect(banners(page)).to_contain_text("There is no log here")
    show_every_tab(page)
    screen.go(page, "timeline")
    studio.import_events(log, [events.city_saved("first", "lisbon", 0)])
    expect(screen.count(page)).to_have_text("1 event")
    expect(banners(page)).to_be_empty()


def test_a_folder_that_is_no_log_is_named(page, serve, tmp_path):
    (tmp_path / "letter.txt").write_text("Dear reader")
    page.goto(serve(tmp_path).address)
    expect(banners(page)).to_contain_text("The folder is no log")
    expect(banners(page)).to_contain_text(str(tmp_path))
    show_every_tab(page)


def test_a_newer_format_names_its_version_and_what_to_do(page, serve):
    page.goto(serve(studio.VECTORS / "newer-version").address)
    expect(banners(page)).to_contain_text("The log has a newer format")
    expect(banners(page)).to_contain_text("format 2")
    show_every_tab(page)


@pytest.mark.parametrize("name", ["damaged", "damaged-live", "missing-block", "missing-frame", "compacted-damaged"])
def test_a_damaged_log_shows_what_is_intact_and_how_to_repair_the_rest(page, serve, name):
    screen.show(page, serve(studio.VECTORS / name))
    expect(banners(page)).to_contain_text("The log is damaged")
    expect(banners(page)).to_contain_text("logtool repair")
    expect(screen.rows(page).first).to_be_visible()
    show_every_tab(page)


@pytest.mark.parametrize("name", ["closed", "live-killed", "torn", "torn-big", "compacted", "compacted-last",
                                  "compatible-flag", "rolled", "unfinished"])
def test_a_sound_log_of_every_form_is_read_to_its_end(serve, name):
    server = serve(studio.VECTORS / name)
    screen.wait_until_folded(server)
    log = server.api("log")
    expected = (studio.VECTORS / name / "expected.ndjson").read_text().splitlines()
    assert log["problem"] is None
    assert [json.loads(line)["id"] for line in server.request("/api/export").body.splitlines()] == [
        json.loads(line)["id"] for line in expected]
    for path in [f"views/notes?at={log['last']}", "outbox", "files", "verify", "histogram"]:
        assert server.request(f"/api/{path}").status == 200, path


@pytest.mark.parametrize("name", ["big-commit", "sealed", "compacted-last"])
def test_a_sound_log_has_no_banner(page, serve, name):
    server = serve(studio.VECTORS / name)
    screen.wait_until_folded(server)
    screen.show(page, server)
    expect(screen.rows(page).first).to_be_visible()
    expect(banners(page)).to_be_empty()
    show_every_tab(page)


def test_a_log_that_is_being_written_is_followed(page, serve, tmp_path):
    log = studio.import_events(tmp_path / "log", events.journey(10))
    screen.show(page, serve(log))
    expect(page.locator("#facts")).not_to_contain_text("a writer has it open")
    with studio.Writer(log) as writer:
        for number in range(3):
            position = writer.record(events.city_saved(f"live-{number}", f"city-{number}", 100 + number))
            expect(screen.count(page)).to_have_text(f"{position} events")
            assert screen.positions(page)[0] == position
        expect(page.locator("#facts")).to_contain_text("a writer has it open")
    expect(page.locator("#facts")).not_to_contain_text("a writer has it open")


def test_the_account_of_the_log_is_named(page, serve, tmp_path):
    log = studio.import_events(tmp_path / "log", [events.city_saved("first", "lisbon", 0)], "--account", "mei")
    screen.show(page, serve(log))
    expect(page.locator("#facts")).to_contain_text("account mei")


def test_the_log_of_another_account_is_not_shown(page, serve, tmp_path):
    log = studio.import_events(tmp_path / "log", [events.city_saved("first", "lisbon", 0)], "--account", "mei")
    server = serve(log, "--account", "ada")
    page.goto(server.address)
    expect(banners(page)).to_contain_text("The log is of another account")
    expect(banners(page)).to_contain_text("It is the log of mei")
    for tab in ["Views", "Outbox", "Files", "Timeline"]:
        page.get_by_role("link", name=tab, exact=True).click()
        expect(page.locator("#banners")).to_have_text(re.compile("^.*another account.*$", re.DOTALL))
        expect(page.locator("main")).not_to_contain_text("lisbon")
    for address in ["events", "events/1", "events/1/story", "views", "views/cities", "views/cities/marks", "outbox", "files",
                    "compaction", "verify", "histogram", "export?format=ndjson"]:
        reply = server.request(f"/api/{address}")
        assert (reply.status, reply.code) == (403, "wrong-account"), address
    without = studio.import_events(tmp_path / "without", [events.city_saved("first", "lisbon", 0)])
    page.goto(serve(without, "--account", "ada").address)
    expect(banners(page)).to_contain_text("It names no account")
    screen.show(page, serve(log, "--account", "mei"))
    expect(banners(page)).to_be_empty()
    expect(screen.count(page)).to_have_text("1 event")
    refused = studio.logtool("studio", log, "--account", "ada", "--html", tmp_path / "page.html", codes=(65,))
    assert refused == "" and not (tmp_path / "page.html").exists()


def test_a_log_that_is_compacted_meanwhile_is_read_anew(page, serve, field_log, tmp_path):
    log = studio.copy(field_log, tmp_path / "log")
    server = serve(log)
    screen.show(page, server)
    expect(screen.count(page)).to_have_text("258 events")
    page.allowed_faults += ["status of 422"]  # a request for a state that compaction removes meanwhile
    studio.logtool("compact", log)
    screen.wait_until(lambda: server.api("log")["compactedThrough"] > 0, "the compaction is seen")
    expect(screen.count(page)).to_have_text(f"{server.api('log')['events']} events")
    show_every_tab(page)


def test_a_server_that_has_stopped_is_said_to_have_stopped(page, field_log):
    page.allowed_faults += ["ERR_CONNECTION_REFUSED", "ERR_CONNECTION_RESET", "ERR_EMPTY_RESPONSE"]
    with studio.Studio(field_log) as server:
        screen.show(page, server)
    expect(banners(page)).to_contain_text("The server has stopped")
    expect(screen.count(page)).to_have_text("258 events")  # the last answer stays


def test_a_server_that_comes_back_at_its_port_asks_for_its_new_address(page, field_log):
    page.allowed_faults += ["ERR_CONNECTION_REFUSED", "ERR_CONNECTION_RESET", "ERR_EMPTY_RESPONSE", "status of 401"]
    with studio.Studio(field_log) as server:
        screen.show(page, server)
    with studio.Studio(field_log, "--port", str(server.port)):
        expect(banners(page)).to_contain_text("open the address", timeout=20_000)


def test_a_port_that_is_taken_is_refused(field, field_log):
    with pytest.raises(AssertionError, match="port"):
        studio.Studio(field_log, "--port", str(field.port))
