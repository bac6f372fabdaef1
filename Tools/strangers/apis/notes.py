"""The notes of Tests/ReplayTests/Requests/NotesAPI.swift over HTTP, as a Python team writes such an API.

    NOTES_KEYS=1    with the middleware of the package fastapi-idempotency, which keeps keys in memory
    NOTES_FILE      the SQLite file
"""

import os
import sqlite3

from fastapi import FastAPI, HTTPException, Request
from fastapi_idempotency import IdempotencyMiddleware
from pydantic import BaseModel

app = FastAPI()
if os.environ.get("NOTES_KEYS") == "1":
    app.add_middleware(IdempotencyMiddleware, methods=("POST",), wait_seconds=5)

database = sqlite3.connect(os.environ["NOTES_FILE"], check_same_thread=False)
database.execute("pragma journal_mode = wal")
database.executescript(
    """
    create table if not exists notes (number integer primary key autoincrement, client text);
    create table if not exists lines
        (number integer primary key autoincrement, note integer, text text, key text);
    """
)


class Line(BaseModel):
    text: str


@app.post("/notes", status_code=201)
async def add_note(client: str, line: Line, request: Request):
    with database:
        number = database.execute("insert into notes (client) values (?)", (client,)).lastrowid
        append(number, line, request)
    return {"number": number}


@app.post("/notes/{number}/lines")
async def add_line(number: int, line: Line, request: Request):
    with database:
        if not database.execute("select 1 from notes where number = ?", (number,)).fetchone():
            raise HTTPException(404, "there is no such note")
        append(number, line, request)
    return {}


def append(number, line, request):
    database.execute(
        "insert into lines (note, text, key) values (?, ?, ?)",
        (number, line.text, request.headers.get("idempotency-key", "")),
    )


@app.get("/dump")
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
