"""Data out: downloads, commands and addresses that give what the screen shows. Issue 23, point 6."""

import csv
import io
import json
import shlex
import subprocess

import pytest
from playwright.sync_api import expect

import events
import screen
import studio

FRAGMENT = "timeline?type=daybook.note.added&from=100&to=400"


def wanted():
    """The events that FRAGMENT selects, by position."""
    return [(number, event) for number, event in enumerate(events.journey(400), 1)
            if number >= 100 and event["type"] == "daybook.note.added"]


def dialog(page, server):
    """Opens the dialog of data out."""
    screen.show(page, server, FRAGMENT)
    page.get_by_role("button", name="data out").click()
    return page.get_by_role("dialog")


def downloaded(page, button):
    """Presses a button that downloads; returns the file's name and its bytes."""
    with page.expect_download() as download:
        button.click()
    return download.value.suggested_filename, download.value.path().read_bytes()


def test_the_filtered_events_are_downloaded_as_ndjson(page, long):
    name, content = downloaded(page, dialog(page, long).get_by_role("button", name="events as ndjson"))
    lines = [json.loads(line) for line in content.splitlines()]
    assert name == "events.ndjson"
    assert [line["id"] for line in lines] == [event["id"] for _, event in wanted()]
    assert [line["data"] for line in lines] == [event["data"] for _, event in wanted()]


def test_the_download_can_be_imported_into_another_log(page, long, tmp_path):
    _, content = downloaded(page, dialog(page, long).get_by_role("button", name="events as ndjson"))
    printed = studio.logtool("import", tmp_path / "other", "-", stdin=content)
    assert json.loads(printed)["appended"] == len(wanted())


def test_the_filtered_events_are_downloaded_as_csv(page, long):
    name, content = downloaded(page, dialog(page, long).get_by_role("button", name="events as csv"))
    rows = list(csv.DictReader(io.StringIO(content.decode(), newline="")))
    assert name == "events.csv"
    assert [int(row["position"]) for row in rows] == [position for position, _ in wanted()]
    assert [json.loads(row["data"]) for row in rows] == [event["data"] for _, event in wanted()]


def test_all_events_are_downloaded_without_a_filter(long):
    exported = long.request("/api/export?format=ndjson")
    assert "attachment" in exported.headers["content-disposition"]
    assert [json.loads(line)["id"] for line in exported.body.splitlines()] == [
        event["id"] for event in events.journey(3_000)]


def test_the_command_of_logtool_gives_the_same_events(page, long):
    command = dialog(page, long).get_by_role("region", name="with logtool").inner_text()
    name, *arguments = shlex.split(command)
    assert name == "logtool"
    lines = [json.loads(line) for line in studio.logtool(*arguments, "--output", "ndjson").splitlines()]
    assert [line["id"] for line in lines] == [event["id"] for _, event in wanted()]


def test_the_command_of_curl_gives_the_same_events(page, long):
    command = dialog(page, long).get_by_role("region", name="with curl").inner_text()
    arguments = shlex.split(command.replace("…", long.token))
    assert arguments[0] == "curl"
    done = subprocess.run([*arguments, "--silent", "--fail"], capture_output=True, timeout=60)
    assert done.returncode == 0, command
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [event["id"] for _, event in wanted()]


@pytest.mark.parametrize("fragment,member", [
    ("timeline?account=mei", "rows"), ("views?view=notes&at=100", "rows"), ("outbox", "entries"), ("files", "segments")])
def test_every_screen_has_an_address_of_its_json(page, long, fragment, member):
    screen.show(page, long, fragment)
    page.get_by_role("button", name="data out").click()
    address = page.get_by_role("region", name="this screen as JSON").inner_text()
    assert address.startswith(long.origin + "/api/")
    assert member in long.request(address.removeprefix(long.origin)).json()


def test_a_cell_that_a_spreadsheet_would_run_is_disarmed(serve, tmp_path):
    log = studio.import_events(tmp_path / "log", [
        events.event(f"formula-{number}", "app.formula", {"x": 1}, number, subject=subject)
        for number, subject in enumerate(["=1+1", "+1", "-1", "@SUM(A1)", 'a,"b"', "two\nlines"])])
    server = serve(log)
    screen.wait_until_folded(server)
    rows = list(csv.DictReader(io.StringIO(server.request("/api/export?format=csv").body.decode(), newline="")))
    assert [row["subject"] for row in rows] == ["'=1+1", "'+1", "'-1", "'@SUM(A1)", 'a,"b"', "two\nlines"]


def test_the_text_of_an_event_is_copied(new_page, long):
    page = new_page(permissions=["clipboard-read", "clipboard-write"])
    screen.show(page, long, "timeline?event=5")
    screen.detail(page).get_by_role("button", name="copy the line").click()
    expect(page.locator("#announcer")).to_have_text("copied")
    line = page.evaluate("() => navigator.clipboard.readText()")
    assert json.loads(line)["id"] == list(events.journey(5))[4]["id"]
