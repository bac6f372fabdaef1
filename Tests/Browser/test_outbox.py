"""The outbox: what waits and why, and the decisions on it. Issue 23, point 4."""

import pytest
from playwright.sync_api import expect

import events
import logs
import screen
import studio


@pytest.fixture
def changed(serve, field_log, tmp_path):
    """A server that may decide, on a copy of the field log."""
    server = serve(studio.copy(field_log, tmp_path / "log"), "--write")
    screen.wait_until_folded(server)
    return server


def entry(page, note):
    """The first row of the entries that is about a note."""
    return page.get_by_role("region", name="entries of the outbox").get_by_role("row").filter(has_text=note).first


def answer(page, label):
    """Presses a button of the open dialog."""
    page.get_by_role("dialog").get_by_role("button", name=label, exact=True).click()


def test_the_outbox_shows_what_waits_and_why(page, field, screenshot):
    screen.show(page, field, "outbox")
    tiles = page.get_by_role("group", name="entries by status")
    for text in ["14 all", "12 ○pending", "1 ■parked", "1 ◆conflict"]:
        expect(tiles.get_by_role("link").filter(has_text=text.split()[1])).to_contain_text(text.split()[0])
    rejected = entry(page, logs.REJECTED_NOTE)
    for text in ["ADD_NOTE", "parked", "rejected", "2 wait after it", logs.REJECTION]:
        expect(rejected).to_contain_text(text)
    expect(entry(page, logs.CONFLICTING_NOTE)).to_contain_text("conflict")
    screenshot(page, "studio-outbox")


def test_held_lanes_come_first(page, field):
    screen.show(page, field, "outbox")
    lanes = page.get_by_role("region", name="lanes", exact=True).get_by_role("row")
    expect(lanes.nth(1)).to_contain_text(f"note:{logs.REJECTED_NOTE}")
    expect(lanes.nth(1)).to_contain_text("held")
    lanes.nth(1).get_by_role("link").first.click()
    entries = page.get_by_role("region", name="entries of the outbox").get_by_role("row")
    expect(entries).to_have_count(4)  # with the header
    assert "lane=" in screen.fragment(page)


def test_a_status_selects_entries_by_its_link(page, field):
    screen.show(page, field, "outbox?status=CONFLICT")
    entries = page.get_by_role("region", name="entries of the outbox").get_by_role("row")
    expect(entries).to_have_count(2)
    expect(entries.nth(1)).to_contain_text(logs.CONFLICTING_NOTE)


def test_entries_that_nothing_holds_are_due_and_may_be_under_way_while_a_writer_has_the_log(page, serve, field_log, tmp_path):
    log = studio.copy(field_log, tmp_path / "log")
    server = serve(log)
    screen.wait_until_folded(server)
    outbox = server.api("outbox")
    due = [entry for entry in outbox["entries"] if entry["status"] == "PENDING" and entry["heldBy"] is None]
    assert due and outbox["due"] == len(due)
    screen.show(page, server, "outbox")
    main = page.locator("main")
    expect(main).to_contain_text(f"{len(due)} entries are due: nothing holds them. No writer has the log open")
    with studio.Writer(log) as writer:
        writer.record(events.city_saved("live", "city", 100))
        expect(main).to_contain_text(f"{len(due) + 1} entries are due: nothing holds them. The log was not closed: a writer may have it open")
    expect(main).to_contain_text(f"{len(due) + 1} entries are due: nothing holds them. No writer has the log open")


def test_batches_and_verdicts_are_shown_as_they_were_recorded(page, field):
    screen.show(page, field, "outbox")
    batch = page.get_by_role("region", name="batches and verdicts").get_by_role("row").nth(1)
    for text in ["241", f"invalid_event: {logs.REJECTION}"]:
        expect(batch).to_contain_text(text)
    expect(screen.section(page, "Lag").locator("svg").first).to_be_visible()


def test_an_entry_leads_to_its_event(page, field):
    screen.show(page, field, "outbox")
    entry(page, logs.REJECTED_NOTE).get_by_role("link").first.click()
    screen.wait_until_shown(page, "timeline")
    expect(screen.detail(page)).to_contain_text(logs.REJECTION)


def test_without_write_there_are_no_buttons_to_decide(page, field):
    screen.show(page, field, "outbox")
    expect(page.get_by_role("columnheader", name="decide")).to_have_count(0)
    for label in ["retry", "discard", "keep mine", "keep theirs"]:
        expect(page.get_by_role("button", name=label)).to_have_count(0)
    expect(page.locator("#facts")).to_contain_text("read-only")


def test_a_parked_event_is_retried_after_one_question(page, changed):
    screen.show(page, changed, "outbox")
    entry(page, logs.REJECTED_NOTE).get_by_role("button", name="retry").click()
    answer(page, "cancel")
    assert changed.api("outbox")["counts"]["FAILED"] == 1
    entry(page, logs.REJECTED_NOTE).get_by_role("button", name="retry").click()
    answer(page, "retry")
    expect(entry(page, logs.REJECTED_NOTE)).to_contain_text("pending")
    assert changed.api("outbox")["counts"] == {"PENDING": 13, "FAILED": 0, "CONFLICT": 1}


def test_discarding_shows_first_what_depends_on_the_event(page, changed):
    screen.show(page, changed, "outbox")
    entry(page, logs.REJECTED_NOTE).get_by_role("button", name="discard").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Events of its lane that depend on it are retracted with it")
    expect(dialog.get_by_role("listitem")).to_have_count(2)
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    assert changed.api("outbox")["total"] == 14
    entry(page, logs.REJECTED_NOTE).get_by_role("button", name="discard").click()
    answer(page, "discard 3 events")
    expect(entry(page, logs.REJECTED_NOTE)).to_have_count(0)
    assert changed.api("outbox")["total"] == 11
    screen.go(page, "timeline?status=retracted")
    expect(screen.count(page)).to_have_text("3 of 259 events")


def test_discarding_without_the_dependents_is_refused(changed):
    reply = changed.request("/api/outbox/discard", "POST", body={"id": events.identifier("rejected")})
    assert (reply.status, reply.code) == (409, "hasDependents")
    assert len(reply.json()["error"]["dependents"]) == 2
    assert changed.api("outbox")["total"] == 14


@pytest.mark.parametrize("side,left", [("mine", 14), ("theirs", 13)])
def test_a_conflict_is_resolved(page, changed, side, left):
    screen.show(page, changed, "outbox")
    entry(page, logs.CONFLICTING_NOTE).get_by_role("button", name=f"keep {side}").click()
    answer(page, f"keep {side}")
    expect(page.get_by_role("link").filter(has_text="conflict").first).to_contain_text("0")
    screen.wait_until(lambda: changed.api("outbox")["counts"]["CONFLICT"] == 0, "the conflict is resolved")
    assert changed.api("outbox")["total"] == left
    mine = changed.api("find", id=events.identifier("mine"))["position"]
    assert changed.api(f"events/{mine}")["row"]["status"] == "retracted"


def test_a_decision_is_the_same_as_that_of_logtool_parked(changed, tmp_path, field_log):
    identifier = events.identifier("rejected")
    assert changed.request("/api/outbox/retry", "POST", body={"id": identifier}).json() == {
        "done": [{"id": identifier, "done": "retried"}]}
    other = studio.copy(field_log, tmp_path / "other")
    studio.logtool("parked", other, "--retry", identifier, codes=(0, 1))
    texts = [studio.logtool("why", log, identifier, "--output", "ndjson") for log in (tmp_path / "log", other)]
    steps = [[line.split('"what":')[-1].split(",")[0] for line in text.splitlines()] for text in texts]
    assert steps[0] == steps[1]


def test_a_decision_is_refused_while_another_process_writes(page, changed, tmp_path):
    page.allowed_faults += ["status of 503"]
    screen.show(page, changed, "outbox")
    with studio.Writer(tmp_path / "log") as writer:
        writer.record(events.city_saved("held", "nairobi", 500))
        reply = changed.request("/api/outbox/retry", "POST", body={"id": events.identifier("rejected")})
        assert (reply.status, reply.code) == (503, "locked")
        entry(page, logs.REJECTED_NOTE).get_by_role("button", name="retry").click()
        answer(page, "retry")
        expect(page.locator("#banners")).to_contain_text("another writer")


def test_an_empty_outbox_is_said_to_be_empty(page, serve, tmp_path):
    log = studio.import_events(tmp_path / "log", [
        events.event("stays", "daybook.setting.put", {"key": "theme", "value": "dark"}, 0)])
    screen.show(page, serve(log), "outbox")
    expect(page.locator(".outbox")).to_contain_text("The outbox is empty")
