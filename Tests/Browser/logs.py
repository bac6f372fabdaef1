"""The logs that the tests show."""

import events
import studio
from answering_server import AnsweringServer

REJECTED_NOTE = "note-rejected"
CONFLICTING_NOTE = "note-conflicting"
REJECTION = "the city of the note is unknown"
OTHER_DEVICE = "urn:uuid:" + events.identifier("the other device")


def server_event():
    """The event of another device that the server has in place of the conflicting one."""
    return events.note_updated(
        "theirs", CONFLICTING_NOTE, 400, "closed on Mondays", "jonas", source=OTHER_DEVICE,
        sequence=f"{7:020}", partitionkey=f"note:{CONFLICTING_NOTE}", subject=CONFLICTING_NOTE)


def verdict(event):
    """Rejects one note, and answers the change of another one with a conflict."""
    if event["id"] == events.identifier("rejected"):
        return {"status": "rejected", "code": "invalid_event", "detail": REJECTION}
    if event["id"] == events.identifier("mine"):
        return {"status": "conflict", "current": server_event()}
    return None


def make_field_log(folder):
    """A log as it comes from the field: most events are settled, one is parked with two events that wait after it,
    one is in conflict, a server's event was received, and ten events have not been sent."""
    studio.import_events(folder, [
        *events.journey(240),
        events.note_added("rejected", REJECTED_NOTE, 380, "ask for the garden"),
        events.note_updated("rejected-1", REJECTED_NOTE, 381, "ask for the garden behind the library"),
        events.note_updated("rejected-2", REJECTED_NOTE, 382, "the garden is closed"),
        events.note_added("base", CONFLICTING_NOTE, 390, "open on Mondays"),
        events.note_updated(
            "mine", CONFLICTING_NOTE, 395, "open every day", baseid=events.identifier("base")),
    ])
    with AnsweringServer(verdict) as server:
        studio.logtool("replay", folder, "--to", server.address, "--once", codes=(1,))
    studio.import_events(folder, [
        events.city_saved(f"unsent-{number}", f"city-{number}", 420 + number) for number in range(10)])
    return folder


VANISHED_NOTE = "note-market"


def make_vanished_log(folder):
    """A log whose user misses a note: another device has deleted it, and this one has changed it later, before it
    received the deletion."""
    studio.import_events(folder, [
        *events.journey(60),
        events.note_added("market", VANISHED_NOTE, 100, "Fish market opens at eight, ask for Teresa"),
        events.note_updated("market-2", VANISHED_NOTE, 200, "Fish market opens at nine on Sundays"),
    ])
    deletion = events.note_deleted(
        "gone", VANISHED_NOTE, 150, "jonas", source=OTHER_DEVICE, sequence=f"{9:020}",
        partitionkey=f"note:{VANISHED_NOTE}", subject=VANISHED_NOTE)
    with AnsweringServer(others=[deletion]) as server:
        studio.logtool("replay", folder, "--to", server.address, "--once", "--receive")
    return folder
