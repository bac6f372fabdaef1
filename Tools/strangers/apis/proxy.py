"""A proxy that loses, cuts and slows requests and answers at random, and notes which answers never arrived."""

import asyncio
import collections
import random


class Proxy:
    """Between the app and an API on this machine, one request a connection."""

    def __init__(self, port, seed):
        self.target = port
        self.random = random.Random(seed)
        self.counts = collections.Counter()
        #: How often the answer to a request with a key was lost after the API had got the request.
        self.lost = collections.Counter()

    async def start(self):
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        self.port = self.server.sockets[0].getsockname()[1]
        return self

    async def serve(self, reader, writer):
        key, is_sent, is_answered = None, False, False
        try:
            request, key = await self.message(reader)
            if request is None:
                return
            self.counts["requests"] += 1
            fate = self.random.randrange(16)
            if fate == 0:
                self.counts["requests lost"] += 1
                return
            if fate == 1:
                self.counts["requests cut"] += 1
                upstream = (await asyncio.open_connection("127.0.0.1", self.target))[1]
                upstream.write(request[: self.random.randrange(len(request))])
                await upstream.drain()
                upstream.close()
                return
            if fate == 2:
                self.counts["requests slowed"] += 1
                await asyncio.sleep(self.random.random() * 0.2)
            api, upstream = await asyncio.open_connection("127.0.0.1", self.target)
            is_sent = True
            upstream.write(request)
            await upstream.drain()
            answer, _ = await self.message(api)
            upstream.close()
            if answer is None:
                return
            if fate in (3, 4):
                self.counts["answers lost"] += 1
                return
            if fate == 5:
                self.counts["answers cut"] += 1
                writer.write(answer[: self.random.randrange(len(answer))])
                await writer.drain()
                return
            if fate == 6:
                self.counts["answers slowed"] += 1
                await asyncio.sleep(self.random.random() * 0.2)
            writer.write(answer)
            await writer.drain()
            is_answered = True
        except (OSError, asyncio.IncompleteReadError):
            self.counts["server not there"] += 1
        finally:
            if is_sent and not is_answered and key:
                self.lost[key] += 1
            writer.close()

    async def message(self, reader):
        """Reads a message of HTTP/1.1. Returns its bytes, for one request a connection, and its key."""
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, OSError):
            return None, None
        lines = head[:-4].split(b"\r\n")
        fields = [line for line in lines[1:] if not line.lower().startswith(b"connection:")]
        values = {
            name.lower(): value.strip()
            for name, _, value in (field.partition(b":") for field in fields)
        }
        if b"chunked" in values.get(b"transfer-encoding", b""):
            body = b""
            while True:
                size = await reader.readuntil(b"\r\n")
                chunk = await reader.readexactly(int(size, 16) + 2)
                body += size + chunk
                if int(size, 16) == 0:
                    break
        else:
            body = await reader.readexactly(int(values.get(b"content-length", b"0")))
        head = b"\r\n".join([lines[0], *fields, b"Connection: close", b"", b""])
        return head + body, values.get(b"idempotency-key", b"").decode()
