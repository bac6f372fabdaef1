"""The files: the log's folder as it is on disk, its damage, and what verification says. Issue 23, point 5."""

import json

import pytest
from playwright.sync_api import expect

import events
import screen
import studio


DAMAGED_BYTE = 150_000


@pytest.fixture(scope="module")
def damaged_log(long_log, tmp_path_factory):
    """The long log with one bit of its second block of 1,000 events changed."""
    log = studio.copy(long_log, tmp_path_factory.mktemp("damaged") / "log")
    [segment] = log.glob("*.lz4")
    content = bytearray(segment.read_bytes())
    content[DAMAGED_BYTE] ^= 0x01
    segment.write_bytes(content)
    return log


@pytest.fixture(scope="module")
def damaged(damaged_log):
    """A server that only reads the damaged log."""
    with studio.Studio(damaged_log) as server:
        screen.wait_until(lambda: server.api("log")["problem"], "the damage is found")
        yield server


def test_the_ranges_of_a_segment_cover_its_file(field, field_log):
    for segment in field.api("files")["segments"]:
        end = 0
        for part in segment["ranges"]:
            assert part["offset"] == end
            end += part["bytes"]
        assert end == segment["bytes"] == (field_log / segment["name"]).stat().st_size


def test_the_frames_of_a_segment_hold_its_events_in_order(long):
    for segment in long.api("files")["segments"]:
        frames = long.api(f"files/{segment['name']}")["frames"]
        assert [frame["number"] for frame in frames] == list(range(len(frames)))
        assert sum(frame["events"] for frame in frames) == segment["events"]
        assert sum(block["events"] for frame in frames for block in frame["blocks"]) == segment["events"]
        assert all(one["last"] + 1 == other["first"] for one, other in zip(frames, frames[1:]))


def test_the_place_of_an_event_is_in_the_frames(long):
    place = long.api("events/1500")["place"]
    frames = long.api(f"files/{place['segment']}")["frames"]
    [frame] = [frame for frame in frames if frame["first"] <= 1500 <= frame["last"]]
    assert (frame["number"], frame["offset"]) == (place["frame"], place["frameOffset"])
    block = frame["blocks"][place["block"]]
    assert (block["offset"], block["bytes"]) == (place["blockOffset"], place["blockBytes"])


def test_a_segment_is_drawn_with_its_ranges(page, long):
    screen.show(page, long, "files")
    bar = page.locator(".segment").first
    expect(bar.get_by_role("img").first).to_be_visible()
    for kind in ["header", "frame", "marker"]:
        expect(bar.locator(f".range-{kind}").first).to_be_attached()
    expect(bar).to_contain_text("3,000 events, positions 1–3,000")


def test_a_segment_opens_with_its_frames_and_blocks(page, long):
    screen.show(page, long, "files")
    name = long.api("files")["segments"][0]["name"]
    page.get_by_role("button", name=name).click()
    frames = page.get_by_role("region", name="frames", exact=True).get_by_role("row")
    expect(frames.nth(1)).to_contain_text("1–")
    frames.nth(1).locator("summary").click()
    expect(frames.nth(1).get_by_role("listitem").first).to_contain_text("from byte")
    assert f"segment={name}" in screen.fragment(page)
    frames.nth(1).get_by_role("link").first.click()
    screen.wait_until_shown(page, "timeline")
    assert screen.positions(page)[0] == 1


def test_a_link_to_a_frame_marks_it(page, long):
    place = long.api("events/1500")["place"]
    screen.show(page, long, "timeline?event=1500")
    screen.detail(page).get_by_role("link", name=place["segment"]).click()
    screen.wait_until_shown(page, "files")
    expect(page.locator("tr[aria-current]")).to_contain_text(f"{place['frameOffset']:,}")


def test_verification_finds_nothing_in_a_sound_log(page, field):
    screen.show(page, field, "files")
    page.get_by_role("button", name="verify the whole log").click()
    expect(screen.section(page, "Verification")).to_contain_text("258 events in 1 segment")
    expect(screen.section(page, "Verification")).to_contain_text("none")


def test_damage_is_marked_where_it_is(page, damaged, screenshot):
    [segment] = damaged.api("files")["segments"]
    [damage] = segment["damage"]
    screen.show(page, damaged, "files")
    bar = page.locator(".segment").first
    expect(bar.locator(".range-damage")).to_be_visible()
    expect(bar.locator(".damage-text")).to_contain_text(damage["code"])
    expect(bar.locator(".damage-text")).to_contain_text(f"at byte {damage['offset']:,}")
    assert damage["offset"] <= DAMAGED_BYTE
    assert (damage["from"], damaged.api("log")["last"]) == (1_001, 1_000)
    expect(page.locator("#banners")).to_contain_text("The log is damaged")
    expect(page.locator("#banners")).to_contain_text("logtool repair")
    screenshot(page, "studio-damage")
    page.get_by_role("button", name="verify the whole log").click()
    expect(page.get_by_role("region", name="findings").get_by_role("row").nth(1)).to_contain_text(damage["code"])


def test_verification_says_what_logtool_verify_says(damaged, damaged_log):
    printed = [json.loads(line) for line in studio.logtool(
        "verify", damaged_log, "--output", "ndjson", codes=(1, 65)).splitlines()]
    findings = damaged.api("verify")["findings"]
    assert findings == printed
    assert findings[0]["segment"].endswith(".lz4") and findings[0]["offset"] <= DAMAGED_BYTE


def test_a_checkpoint_beyond_the_damage_has_a_problem(damaged):
    last = damaged.api("log")["last"]
    beyond = [item for item in damaged.api("files")["checkpoints"] if item["position"] > last]
    assert beyond and all(item["problem"] for item in beyond)


def test_the_events_before_the_damage_are_shown(page, serve):
    server = serve(studio.VECTORS / "damaged")
    screen.show(page, server)
    expect(screen.count(page)).to_have_text("2 events")
    expect(page.locator("#banners")).to_contain_text("through position 2")
    for tab in screen.TABS:
        screen.go(page, tab)


def test_checkpoints_and_compacted_segments_are_shown(page, serve, field_log, tmp_path):
    log = studio.copy(field_log, tmp_path / "log")
    studio.logtool("compact", log)
    server = serve(log)
    screen.wait_until_folded(server)
    files = server.api("files")
    assert files["checkpoints"] and any(view["name"] == "notes" for view in files["checkpoints"][0]["views"])
    screen.show(page, server, "files")
    expect(page.get_by_role("region", name="checkpoints").get_by_role("row").nth(1)).to_contain_text("notes")
    screen.section(page, "Compaction").get_by_role("button").click()
    expect(screen.section(page, "Compaction").get_by_role("row").nth(1)).to_be_visible()
    expect(page.locator(".segments")).to_contain_text("compacted through")
    through = server.api("log")["compactedThrough"]
    assert through > 0
    reply = server.request("/api/views/notes?at=1")
    assert (reply.status, reply.code) == (422, "compacted")
    screen.go(page, "views?view=notes&at=1")
    expect(screen.count(page)).to_contain_text(f"at position {through}")


def test_files_that_are_no_part_of_the_log_are_named(page, serve, field_log, tmp_path):
    log = studio.copy(field_log, tmp_path / "log")
    (log / "notes of a person.txt").write_text("not a file of the log")
    (log / "quarantine").mkdir()
    (log / "quarantine" / "torn-1").write_bytes(b"x" * 100)
    screen.show(page, serve(log), "files")
    others = page.get_by_role("region", name="other files")
    expect(others.get_by_role("row").filter(has_text="notes of a person.txt")).to_contain_text("not a file of the log")
    expect(others.get_by_role("row").filter(has_text="lock").first).to_be_visible()
    expect(page.get_by_role("region", name="quarantine").get_by_role("row").nth(1)).to_contain_text("100 B")


def test_space_and_compression_are_plotted(page, long):
    screen.show(page, long, "files")
    plots = screen.section(page, "Compression and write amplification")
    expect(plots.get_by_text("bytes of lines by type").first).to_be_attached()
    expect(plots.locator("svg, .bar-plot, .bars").first).to_be_visible()
    log = long.api("log")
    assert sum(kind["bytes"] for kind in log["types"]) == log["lineBytes"]
