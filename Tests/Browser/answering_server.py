"""A sync server that answers as a test says. Spec/protocol/sync-protocol.md, SYNC-20 to SYNC-29."""

import http.server
import json
import threading


class AnsweringServer:
    """Serves `/v1/events`. `verdict(event)` returns a verdict's members; None applies the event. A device receives
    the events of `others`."""

    def __init__(self, verdict=lambda event: None, others=()):
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                batch = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                self.answer("application/json", {"verdicts": list(verdicts(batch, verdict))})

            def do_GET(self):
                isFirst = "after=a1" not in self.path
                self.answer("application/cloudevents-batch+json", list(others) if isFirst else [])

            def answer(self, kind, body):
                body = json.dumps(body).encode()
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.send_header("Link", '</v1/events?after=a1>; rel="next"')
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, args=[0.02], daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def verdicts(batch, verdict):
    """The verdicts of a batch: an event that is not applied holds the later ones of its lane (SYNC-29)."""
    held = set()
    for event in batch:
        lane = event["partitionkey"]
        answer = {"status": "unprocessed"} if lane in held else verdict(event) or {"status": "applied"}
        if answer["status"] not in ("applied", "duplicate"):
            held.add(lane)
        yield {"id": event["id"], **answer}
