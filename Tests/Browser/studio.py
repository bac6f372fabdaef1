"""Runs `logtool studio` and the other commands of logtool."""

import http.client
import json
import os
import pathlib
import re
import shutil
import subprocess
import urllib.parse

import events

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
VECTORS = ROOT / "Spec" / "vectors"


def logtool_path():
    """The binary that `DAYBOOK_LOGTOOL` names, or the one in .build."""
    return pathlib.Path(os.environ.get("DAYBOOK_LOGTOOL", ROOT / ".build" / "debug" / "logtool"))


def logtool(*arguments, stdin=b"", codes=(0,)):
    """Runs a command to its end and returns its standard output; fails if its exit code is none of `codes`."""
    done = subprocess.run([logtool_path(), *arguments], input=stdin, capture_output=True, timeout=600)
    assert done.returncode in codes, f"logtool {arguments[0]}: exit {done.returncode}: {done.stderr.decode()}"
    return done.stdout.decode()


def import_events(log, listed, *options):
    """Imports events into the log in a folder, and returns the folder."""
    logtool("import", log, "-", *options, stdin=events.lines(listed))
    return log


def copy(log, folder):
    """A copy of a log, so that a test can change it."""
    return shutil.copytree(log, folder)


class Writer:
    """`logtool import` that holds a log open for writing, and records an event when it is told to."""

    def __init__(self, log):
        self.process = subprocess.Popen(
            [logtool_path(), "import", log, "-", "--batch", "1", "--ack"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def record(self, event):
        """Records an event; it is on the disk on return. Returns its position."""
        self.process.stdin.write(events.lines([event]))
        self.process.stdin.flush()
        return int(self.process.stdout.readline().split()[1])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.communicate(timeout=60)


class Reply:
    """An answer of the server: `status`, `headers` (lower case), `body` (bytes)."""

    def __init__(self, answer):
        self.status = answer.status
        self.headers = {name.lower(): value for name, value in answer.getheaders()}
        self.body = answer.read()

    def json(self):
        return json.loads(self.body)

    @property
    def code(self):
        """The code of an error."""
        return self.json()["error"]["code"]


class Studio:
    """A running `logtool studio LOG`. `address` has the token, `origin` has not."""

    def __init__(self, log, *options):
        self.process = subprocess.Popen(
            [logtool_path(), "studio", log, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        line = self.process.stdout.readline().decode()
        match = re.fullmatch(r"listening on ((http://127\.0\.0\.1:(\d+))/\?token=(\S+))\n", line)
        if match is None:
            self.process.kill()
            raise AssertionError(f"logtool studio printed {line!r}: {self.process.communicate()[1].decode()}")
        self.address, self.origin, port, self.token = match.groups()
        self.port = int(port)

    def request(self, path, method="GET", headers=None, body=None, key=True):
        """Sends a request outside of a browser. `headers` replace those that a browser would send."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        sent = {"Host": f"127.0.0.1:{self.port}"}
        if key:
            sent["Authorization"] = f"Bearer {self.token}"
        if method == "POST":
            sent |= {"Origin": self.origin, "Content-Type": "application/json"}
        sent |= headers or {}
        connection.request(
            method, path, None if body is None else json.dumps(body),
            {name: value for name, value in sent.items() if value is not None})
        try:
            return Reply(connection.getresponse())
        finally:
            connection.close()

    def api(self, name, **parameters):
        """The JSON answer of `/api/NAME`; fails for an error."""
        query = urllib.parse.urlencode(parameters, doseq=True)
        reply = self.request(f"/api/{name}" + ("?" + query if query else ""))
        assert reply.status == 200, reply.body
        return reply.json()

    def stop(self):
        """Ends the server, and fails if it has printed anything to standard error."""
        self.process.terminate()
        printed = self.process.communicate(timeout=60)[1].decode()
        assert printed == "", printed

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
