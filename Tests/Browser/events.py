"""Events for the logs of the tests. The same arguments always give the same events."""

import datetime
import json
import random
import uuid

START = datetime.datetime(2026, 3, 1, 8, 0, tzinfo=datetime.timezone.utc)
STEP = datetime.timedelta(seconds=90)
USERS = ["ana", "jonas", "mei"]
CITIES = ["lisbon", "porto", "augsburg", "kyoto", "lima", "oslo", "tartu", "quito"]
WORDS = ("the tram stops at the river and the market opens at nine bring water shoes a map and "
         "small coins the museum is closed on Mondays ask for the garden behind the library").split()


def identifier(name):
    """The UUID of version 4 that belongs to a name."""
    return str(uuid.UUID(int=random.Random(name).getrandbits(128), version=4))


def event(name, kind, data, minutes, **attributes):
    """An event whose id follows from `name` and whose time is `minutes` after the start."""
    time = START + datetime.timedelta(minutes=minutes)
    return {
        "specversion": "1.0", "id": identifier(name), "type": kind,
        "time": time.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        **attributes, "data": data}


def note_added(name, note, minutes, text="Tram 28 leaves from Graça", user="ana", **attributes):
    data = {"noteId": note, "cityId": "lisbon", "content": text, "createdBy": user}
    return event(name, "daybook.note.added", data, minutes, **attributes)


def note_updated(name, note, minutes, text, user="ana", **attributes):
    data = {"noteId": note, "content": text, "updatedBy": user}
    return event(name, "daybook.note.updated", data, minutes, **attributes)


def note_deleted(name, note, minutes, user="ana", **attributes):
    return event(name, "daybook.note.deleted", {"noteId": note, "deletedBy": user}, minutes, **attributes)


def city_saved(name, city, minutes, user="ana", **attributes):
    return event(name, "daybook.city.saved", {"userId": user, "cityId": city}, minutes, **attributes)


def journey(count, seed=1):
    """Yields `count` events of several types and users, one each 90 seconds."""
    choice = random.Random(seed)
    notes = []
    for number in range(count):
        name, minutes, user = f"journey-{seed}-{number}", number * 1.5, choice.choice(USERS)
        draw = choice.random()
        text = " ".join(choice.choices(WORDS, k=choice.randrange(4, 18)))
        if draw < 0.25 or not notes:
            notes.append(f"note-{seed}-{number}")
            yield note_added(name, notes[-1], minutes, text, user)
        elif draw < 0.45:
            yield note_updated(name, choice.choice(notes), minutes, text, user)
        elif draw < 0.48:
            yield note_deleted(name, notes.pop(choice.randrange(len(notes))), minutes, user)
        elif draw < 0.65:
            yield city_saved(name, choice.choice(CITIES), minutes, user)
        elif draw < 0.70:
            data = {"userId": user, "cityId": choice.choice(CITIES)}
            yield event(name, "daybook.city.unsaved", data, minutes)
        elif draw < 0.75:
            data = {"userId": user, "changes": {"pruneAfterDays": choice.randrange(1, 90)}}
            yield event(name, "daybook.preferences.updated", data, minutes)
        elif draw < 0.9:
            data = {"userId": user, "courseId": "math-1", "lessonId": f"lesson-{choice.randrange(200):03}",
                    "score": choice.randrange(101) / 100, "durationSeconds": choice.randrange(60, 2_000)}
            yield event(name, "daybook.lesson.completed", data, minutes)
        else:
            seen = choice.randrange(1, 20)
            data = {"userId": user, "courseId": "math-1", "reviewId": f"review-{number}",
                    "itemsSeen": seen, "itemsCorrect": choice.randrange(seen + 1)}
            yield event(name, "daybook.review.completed", data, minutes)


def lines(events):
    """The events as the lines of a file, as bytes."""
    return b"".join(
        json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode() + b"\n" for event in events)
