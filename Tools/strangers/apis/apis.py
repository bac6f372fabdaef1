"""Runs the tests of requests against APIs that others wrote, and one in Hummingbird, each behind a proxy that loses, cuts and slows.

    apis.py PRODUCTS COUNT SEED COMMAND...    COUNT changes for each API; COMMAND runs the tests in Swift, PRODUCTS is the
                                              folder of the built notesserver

An API that keeps its state on the disk is killed at random, too.
"""

import asyncio
import collections
import json
import os
import random
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import urllib.request

from proxy import Proxy

BIN = os.path.dirname(sys.executable)
HERE = os.path.dirname(os.path.abspath(__file__))


class Server:
    """The process of an API."""

    def __init__(self, command, environment, seed):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.command = [part.format(port=self.port) for part in command]
        self.environment = {**os.environ, **environment}
        self.random = random.Random(seed)
        self.kills = 0
        self.process = None

    async def start(self):
        with open(os.devnull, "w") as nothing:
            self.process = subprocess.Popen(
                self.command, env=self.environment, cwd=HERE, stdout=nothing, stderr=nothing
            )
        for _ in range(600):
            try:
                (await asyncio.open_connection("127.0.0.1", self.port))[1].close()
                return
            except OSError:
                await asyncio.sleep(0.1)
        sys.exit("the server does not start: " + " ".join(self.command))

    async def kill_now_and_then(self):
        while True:
            await asyncio.sleep(0.5 + 3 * self.random.random())
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
            self.kills += 1
            await self.start()

    def stop(self):
        self.process.kill()
        self.process.wait()


def post(url, value, token=None):
    headers = {"Content-Type": "application/json"}
    if token:
        headers["Authorization"] = token
    request = urllib.request.Request(url, json.dumps(value).encode(), headers)
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


async def pocketbase(folder, seed):
    data = os.path.join(folder, "pocketbase")
    user = {"identity": "ana@example.com", "password": "only for this test"}
    program = os.path.join(BIN, "pocketbase")
    subprocess.run(
        [program, "superuser", "upsert", *user.values(), "--dir", data],
        check=True, stdout=subprocess.DEVNULL,
    )
    server = Server([program, "serve", "--http", "127.0.0.1:{port}", "--dir", data], {}, seed)
    await server.start()
    base = f"http://127.0.0.1:{server.port}/api/collections"
    token = post(base + "/_superusers/auth-with-password", user)["token"]
    key = {
        "name": "id", "type": "text", "primaryKey": True, "required": True, "system": True,
        "min": 15, "max": 36, "pattern": "^[a-z0-9-]+$", "autogeneratePattern": "[a-z0-9]{15}",
    }
    fields = [key, {"name": "note", "type": "text"}, {"name": "text", "type": "text"}]
    rules = {"listRule": "", "viewRule": "", "createRule": ""}
    post(base, {"name": "changes", "type": "base", "fields": fields, **rules}, token)
    return server


async def notes(folder, seed, keys):
    file = os.path.join(folder, f"notes-{keys}.db")
    environment = {"NOTES_FILE": file, "NOTES_KEYS": keys}
    command = [
        sys.executable, "-m", "uvicorn", "notes:app", "--port", "{port}", "--log-level", "warning"
    ]
    server = Server(command, environment, seed)
    server.file = file
    await server.start()
    return server


async def hummingbird(folder, seed, products):
    file = os.path.join(folder, "hummingbird.db")
    server = Server([os.path.join(products, "notesserver"), "{port}", file], {}, seed)
    await server.start()
    return server


async def run(name, server, path, environment, count, seed, command, is_killed):
    proxy = await Proxy(server.port, seed).start()
    killer = asyncio.create_task(server.kill_now_and_then()) if is_killed else None
    address = f"http://127.0.0.1:{proxy.port}{path}"
    settings = {key: value.format(address=address) for key, value in environment.items()}
    settings |= {
        "DAYBOOK_FOREIGN_COUNT": str(count), "DAYBOOK_SEED": str(seed),
        "DAYBOOK_FOREIGN_DUMP": f"http://127.0.0.1:{server.port}{path}",
    }
    test = await asyncio.create_subprocess_exec(
        *command, env={**os.environ, **settings}, stdout=asyncio.subprocess.PIPE
    )
    output = (await test.communicate())[0].decode()
    if killer:
        killer.cancel()
    lines = [line for line in output.splitlines() if " lost" in line and " runs, " in line]
    print(f"{name}: {lines[-1] if lines else 'no result'}")
    print(f"    {server.kills} kills of the API; " + ", ".join(
        f"{number} {label}" for label, number in sorted(proxy.counts.items())))
    if test.returncode or not lines:
        print(output)
        sys.exit(f"{name}: the test has failed")
    return proxy, lines[-1]


def check_doubled(server, proxy, summary):
    """With an API without keys, a change is doubled only where an answer was lost, or the app was killed."""
    applied = collections.Counter(
        key for key, in sqlite3.connect(server.file).execute("select key from lines"))
    kills = int(summary.split(" runs, ")[1].split()[0])
    doubled = sum(number - 1 for number in applied.values())
    unexplained = sum(max(0, number - 1 - proxy.lost[key]) for key, number in applied.items())
    print(f"    {doubled} doubled: {doubled - unexplained} whose answer was lost on the way, "
          f"{unexplained} whose answer the app was killed with")
    # Two requests are under way at a time.
    if unexplained > 2 * kills:
        sys.exit("a change was doubled whose answer had arrived")


async def main(products, count, seed, command):
    with tempfile.TemporaryDirectory() as folder:
        for name, is_killed, make in [
            ("PocketBase", True, lambda: pocketbase(folder, seed)),
            ("Hummingbird with keys on the disk", True, lambda: hummingbird(folder, seed, products)),
            ("FastAPI with fastapi-idempotency", False, lambda: notes(folder, seed, "1")),
            ("FastAPI without keys", True, lambda: notes(folder, seed, "0")),
        ]:
            server = await make()
            try:
                if name == "PocketBase":
                    await run(name, server, "/api/collections/changes/",
                              {"DAYBOOK_FOREIGN_POCKETBASE": "{address}"}, count, seed, command, is_killed)
                    continue
                keys = "0" if "without" in name else "1"
                proxy, summary = await run(
                    name, server, "/", {"DAYBOOK_FOREIGN_API": "{address}", "DAYBOOK_FOREIGN_KEYS": keys},
                    count, seed, command, is_killed)
                if keys == "0":
                    check_doubled(server, proxy, summary)
            finally:
                server.stop()


asyncio.run(main(os.path.abspath(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]))
