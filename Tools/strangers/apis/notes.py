"""The notes of Tests/ReplayTests/Requests/NotesAPI.swift over HTTP, as a Python team writes such an API.

    NOTES_KEYS=1    with the middleware of the package fastapi-idempotency, and keys on the disk
    NOTES_FILE      the SQLite file
"""

import asyncio
import contextlib
import gzip
import json
import os
import sqlite3

from fastapi import APIRouter, FastAPI, HTTPException, Request
from fastapi.routing import APIRoute
from fastapi_idempotency import (
    ConflictingRequestError, IdempotencyMiddleware, MemoryStore, StoredResponse)
from pydantic import BaseModel

has_keys = os.environ.get("NOTES_KEYS") == "1"
database = sqlite3.connect(
    os.environ["NOTES_FILE"], check_same_thread=False, isolation_level=None)
database.execute("pragma journal_mode = wal")
database.executescript(
    """
    create table if not exists notes (number integer primary key autoincrement, client text);
    create table if not exists lines
        (number integer primary key autoincrement, note integer, text text, key text);
    create table if not exists answers
        (key text primary key, fingerprint text, status integer, headers text, body blob);
    """
)


class NotesStore(MemoryStore):
    """Keeps an answer in the database of the notes, in one transaction with the change: one write at a time."""

    def __init__(self):
        super().__init__()
        self.writing = asyncio.Lock()

    async def claim(self, *, key, fingerprint, explicit, **others):
        row = database.execute(
            "select fingerprint, status, headers, body from answers where key = ?", (key,)
        ).fetchone()
        if row and row[0] != fingerprint:
            raise ConflictingRequestError(key)
        if row:
            return StoredResponse(row[1], [tuple(header) for header in json.loads(row[2])], row[3])
        claim = await super().claim(key=key, fingerprint=fingerprint, explicit=explicit, **others)
        if hasattr(claim, "version") and explicit:
            await self.writing.acquire()
            database.execute("begin immediate")
        return claim

    async def complete(self, claim, response, ttl_seconds):
        fingerprint = self._rows[claim.key].fingerprint
        done = await super().complete(claim, response, ttl_seconds)
        if claim.explicit:
            database.execute(
                "insert into answers values (?, ?, ?, ?, ?)",
                (claim.key, fingerprint, response.status_code, json.dumps(response.headers), response.body),
            )
            database.execute("commit")
            self.writing.release()
        return done

    async def release(self, claim):
        await super().release(claim)
        if claim.explicit:
            database.execute("rollback")
            self.writing.release()


class GzipRequest(Request):
    """As in the documentation of FastAPI, "Custom Request and APIRoute class"."""

    async def body(self):
        if not hasattr(self, "_body"):
            body = await super().body()
            if "gzip" in self.headers.getlist("Content-Encoding"):
                body = gzip.decompress(body)
            self._body = body
        return self._body


class GzipRoute(APIRoute):
    def get_route_handler(self):
        handler = super().get_route_handler()

        async def handle(request):
            return await handler(GzipRequest(request.scope, request.receive))

        return handle


app = FastAPI()
router = APIRouter(route_class=GzipRoute)
if has_keys:
    app.add_middleware(
        IdempotencyMiddleware, store=NotesStore(), methods=("POST",), wait_seconds=5)


class Line(BaseModel):
    text: str


@router.post("/notes", status_code=201)
async def add_note(client: str, line: Line, request: Request):
    with change():
        number = database.execute("insert into notes (client) values (?)", (client,)).lastrowid
        append(number, line, request)
    return {"number": number}


@router.post("/notes/{number}/lines")
async def add_line(number: int, line: Line, request: Request):
    with change():
        if not database.execute("select 1 from notes where number = ?", (number,)).fetchone():
            raise HTTPException(404, "there is no such note")
        append(number, line, request)
    return {}


@contextlib.contextmanager
def change():
    """A transaction; with keys that of the store."""
    if has_keys:
        yield
        return
    database.execute("begin immediate")
    try:
        yield
        database.execute("commit")
    except BaseException:
        database.execute("rollback")
        raise


def append(number, line, request):
    database.execute(
        "insert into lines (note, text, key) values (?, ?, ?)",
        (number, line.text, request.headers.get("idempotency-key", "")),
    )


@router.get("/changes/{key}")
async def is_there(key: str):
    row = database.execute("select note from lines where key = ?", (key,)).fetchone()
    if not row:
        raise HTTPException(404, "there is no such change")
    return {"number": row[0]}


class Part(BaseModel):
    method: str
    path: str
    key: str
    #: As it is sent alone: the middleware compares the bytes.
    body: str


@router.post("/batch")
async def batch(parts: list[Part]):
    """Passes each part through the whole app, its middleware included: one set of keys."""
    return [await answer(part) for part in parts]


async def answer(part):
    path, _, query = part.path.partition("?")
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "scheme": "http",
        "method": part.method, "path": "/" + path, "raw_path": b"/" + path.encode(),
        "root_path": "", "query_string": query.encode(), "client": ("127.0.0.1", 0),
        "server": ("127.0.0.1", 80),
        "headers": [
            (b"content-type", b"application/json"), (b"idempotency-key", part.key.encode())],
    }
    messages = [{"type": "http.request", "body": part.body.encode()}]
    result = {"status": 500, "body": b""}

    async def receive():
        if messages:
            return messages.pop()
        await asyncio.Event().wait()

    async def send(message):
        result["status"] = message.get("status", result["status"])
        result["body"] += message.get("body", b"")

    await app(scope, receive, send)
    return {"status": result["status"], "body": result["body"].decode()}


@router.get("/dump")
async def dump(prefix: str):
    notes = database.execute("select count(*) from notes where client like ?", (prefix + "%",))
    rows = database.execute(
        "select client, text from lines join notes on notes.number = lines.note"
        " where client like ? order by lines.number",
        (prefix + "%",),
    )
    return {
        "notes": notes.fetchone()[0],
        "rows": [{"note": note, "text": text} for note, text in rows],
    }


app.include_router(router)
