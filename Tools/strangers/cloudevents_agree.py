"""Posts a batch that the third-party CloudEvents package has encoded, and decodes the server's events with
it: those of a page, and those of a stream that a third-party reader of server-sent events parses. Called by Tools/strangers/run: cloudevents_agree.py URL, with the token in $TOKEN."""

import os
import sys
import urllib.request
import uuid
from datetime import datetime, timezone

from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent
import json
import requests
import sseclient

BATCH = "application/cloudevents-batch+json"
url = sys.argv[1] + "/v1/events"
source = f"urn:uuid:{uuid.uuid4()}"


def request(body=None):
    headers = {"Authorization": "Bearer " + os.environ["TOKEN"]}
    if body is not None:
        headers["Content-Type"] = BATCH
    with urllib.request.urlopen(urllib.request.Request(url, body, headers)) as reply:
        return reply.headers, reply.read()


def event(sequence, kind, subject, data, **more):
    attributes = {
        "type": kind, "source": source, "subject": subject, "sequence": str(sequence),
        "id": str(uuid.uuid4()), "time": datetime.now(timezone.utc), **more,
    }
    return CloudEvent(attributes, data)


written = [
    event(1, "daybook.city.saved", "são-paulo", {"userId": "ana", "cityId": "são-paulo"}),
    event(2, "daybook.note.added", "n1", {
        "noteId": "n1", "cityId": "lisbon", "content": "Olá \U0001f600 \"quoted\"\n",
        "createdBy": "ana"}),
    event(3, "com.example.unknown", "x", {"nested": [1, 2.5, None, True, {"a": "b"}]},
          dataschema="https://example.com/schema", region="eu"),
    event(4, "com.example.bytes", "y", b"\x00\xff\x10"),
    event(5, "com.example.empty", "z", None),
]
body = b"[" + b",".join(JSONFormat().write(each) for each in written) + b"]"
_, reply = request(body)
statuses = [verdict["status"] for verdict in json.loads(reply)["verdicts"]]
assert statuses == ["applied"] * len(written), reply
_, reply = request(body)
statuses = [verdict["status"] for verdict in json.loads(reply)["verdicts"]]
assert statuses == ["duplicate"] * len(written), reply

headers, reply = request()
assert headers["Content-Type"] == BATCH, headers["Content-Type"]
read = [JSONFormat().read(CloudEvent, json.dumps(each)) for each in json.loads(reply)]
read = {each.get_id(): each for each in read}
for mine in written:
    theirs = read[mine.get_id()]
    assert theirs.get_data() == mine.get_data(), (theirs.get_data(), mine.get_data())
    for name, value in mine.get_attributes().items():
        received = theirs.get_attributes()[name]
        if name == "sequence":  # The server writes all 20 digits.
            received, value = int(received), int(value)
        if name == "time":  # A line has milliseconds.
            value = value.replace(microsecond=value.microsecond // 1000 * 1000)
        assert received == value, (name, received, value)
    assert theirs.get_attributes()["partitionkey"]


def follow(count, **headers):
    """Reads events of the stream."""
    headers |= {"Authorization": "Bearer " + os.environ["TOKEN"], "Accept": "text/event-stream"}
    with requests.get(url, headers=headers, stream=True, timeout=60) as reply:
        reply.raise_for_status()
        events = sseclient.SSEClient(reply).events()
        return [next(events) for _ in range(count)]


streamed = follow(len(written))
for mine, theirs in zip(written, streamed):
    assert JSONFormat().read(CloudEvent, theirs.data).get_id() == mine.get_id(), theirs
resumed = follow(len(written) - 2, **{"Last-Event-ID": streamed[1].id})
assert [each.data for each in resumed] == [each.data for each in streamed[2:]], resumed
print(f"cloudevents: {len(written)} events posted, read back equal, and streamed")
