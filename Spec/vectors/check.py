#!/usr/bin/env python3
"""Reads the vectors beside this file with a reader written from the pages in Spec/ alone.

It shares no code with the project and needs nothing but Python 3. Every function names the
requirement it follows. Exit 0: all vectors read as their expected files say; 1: differences.

    python3 Spec/vectors/check.py            check all vectors
    python3 Spec/vectors/check.py --dump DIR describe one log, frame by frame
"""

import json
import os
import re
import struct
import sys

MASK32 = 0xFFFFFFFF
MASK64 = 0xFFFFFFFFFFFFFFFF
POSITION_MAX = 2**64 - 2**32 - 1

# ---- xxHash ------------------------------------------------------------------------------------


def rotl(value, bits, width):
    mask = (1 << width) - 1
    return ((value << bits) | (value >> (width - bits))) & mask


def xxh32(data, seed=0):
    p1, p2, p3, p4, p5 = 2654435761, 2246822519, 3266489917, 668265263, 374761393
    at, size = 0, len(data)
    if size >= 16:
        lanes = [(seed + p1 + p2) & MASK32, (seed + p2) & MASK32, seed, (seed - p1) & MASK32]
        while at <= size - 16:
            for lane, word in enumerate(struct.unpack_from("<4I", data, at)):
                lanes[lane] = rotl((lanes[lane] + word * p2) & MASK32, 13, 32) * p1 & MASK32
            at += 16
        h = sum(rotl(lane, bits, 32) for lane, bits in zip(lanes, (1, 7, 12, 18))) & MASK32
    else:
        h = (seed + p5) & MASK32
    h = (h + size) & MASK32
    while at <= size - 4:
        h = rotl((h + struct.unpack_from("<I", data, at)[0] * p3) & MASK32, 17, 32) * p4 & MASK32
        at += 4
    for byte in data[at:]:
        h = rotl((h + byte * p5) & MASK32, 11, 32) * p1 & MASK32
    h = (h ^ h >> 15) * p2 & MASK32
    h = (h ^ h >> 13) * p3 & MASK32
    return h ^ h >> 16


def xxh64(data, seed=0):
    p1, p2, p3 = 11400714785074694791, 14029467366897019727, 1609587929392839161
    p4, p5 = 9650029242287828579, 2870177450012600261

    def round64(lane, word):
        return rotl((lane + word * p2) & MASK64, 31, 64) * p1 & MASK64

    at, size = 0, len(data)
    if size >= 32:
        lanes = [(seed + p1 + p2) & MASK64, (seed + p2) & MASK64, seed, (seed - p1) & MASK64]
        while at <= size - 32:
            for lane, word in enumerate(struct.unpack_from("<4Q", data, at)):
                lanes[lane] = round64(lanes[lane], word)
            at += 32
        h = sum(rotl(lane, bits, 64) for lane, bits in zip(lanes, (1, 7, 12, 18))) & MASK64
        for lane in lanes:
            h = ((h ^ round64(0, lane)) * p1 + p4) & MASK64
    else:
        h = (seed + p5) & MASK64
    h = (h + size) & MASK64
    while at <= size - 8:
        h = h ^ round64(0, struct.unpack_from("<Q", data, at)[0])
        h = (rotl(h, 27, 64) * p1 + p4) & MASK64
        at += 8
    if at <= size - 4:
        h = h ^ struct.unpack_from("<I", data, at)[0] * p1 & MASK64
        h = (rotl(h, 23, 64) * p2 + p3) & MASK64
        at += 4
    for byte in data[at:]:
        h = rotl(h ^ byte * p5 & MASK64, 11, 64) * p1 & MASK64
    h = (h ^ h >> 33) * p2 & MASK64
    h = (h ^ h >> 29) * p3 & MASK64
    return h ^ h >> 32


# ---- LZ4 blocks (block-and-frame.md, BLK) ------------------------------------------------------


class Damage(Exception):
    """Something that is not as the Spec says; `offset` is where, `expected` what stood there."""

    def __init__(self, code, detail, offset=None, expected=None):
        super().__init__(detail)
        self.code, self.offset, self.expected = code, offset, expected


def lz4_sequences(data):
    """BLK-3: of each sequence the literals, then offset and length of the match; no match: 0, 0."""
    at = 0

    def length(nibble):
        nonlocal at
        if nibble < 15:
            return nibble
        while True:
            if at >= len(data):
                raise Damage("undecodable", "a length runs over the end of the block")
            byte = data[at]
            at += 1
            nibble += byte
            if byte < 255:
                return nibble

    while at < len(data):
        token = data[at]
        at += 1
        end = length(token >> 4) + at
        if end > len(data):
            raise Damage("undecodable", "literals run over the end of the block")
        literals, at = data[at:end], end
        if at == len(data):
            yield literals, 0, 0
            return
        if at + 2 > len(data):
            raise Damage("undecodable", "a match has no offset")
        distance = data[at] | data[at + 1] << 8
        at += 2
        yield literals, distance, length(token & 15) + 4
    raise Damage("undecodable", "the block ends without a last sequence")


def lz4_block(data, history, room):
    """BLK-3: the plaintext of compressed `data` that may refer to the end of `history`."""
    out = bytearray(history[-65536:])
    start = len(out)
    for literals, distance, count in lz4_sequences(data):
        out += literals
        if count and not 0 < distance <= len(out) or len(out) - start + count > room:
            raise Damage("undecodable", "a match leads out of the plaintext")
        for _ in range(count):
            out.append(out[-distance])
    if not start < len(out) <= start + room:
        raise Damage("undecodable", "the block has no plaintext or too much")
    return bytes(out[start:])


# ---- Lines (line.md, LINE-2, LINE-3) -----------------------------------------------------------

UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
PREFIX = re.compile(
    ('\\{"specversion":"1\\.0","id":"(%s)","source":"urn:uuid:(%s)","sequence":"([0-9]{20})"'
     '(?:,"position":"([0-9]{20})")?,"type":"' % (UUID, UUID)).encode())
TIME = re.compile(rb',"time":"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)\.(\d{3})Z"')


class Line:
    def __init__(self, text):
        match = PREFIX.match(text)
        if not match:
            raise Damage("bad-line", "a line does not begin as every stored line does")
        self.text = text
        self.id = match[1].decode()
        self.sequence = int(match[3])
        self.position = int(match[4]) if match[4] else self.sequence
        self.time = milliseconds(text)


def milliseconds(text):
    """SEG-5: the first `,"time":"` of a line is the envelope's."""
    import calendar
    match = TIME.search(text)
    if not match:
        return None
    *whole, milli = (int(part) for part in match.groups())
    return calendar.timegm((*whole, 0, 0, 0)) * 1000 + milli


# ---- Segments (segment.md) ---------------------------------------------------------------------


def header(data):
    """SEG-2, checks in the order the page gives."""
    if len(data) < 16:
        raise Damage("truncated", "the file ends inside the header", 0)
    if data[8:16] != b"DAYBOOK\0":
        raise Damage("foreign", "not a Daybook segment", 0)
    if len(data) < 512:
        raise Damage("truncated", "the file ends inside the header", 0)
    if xxh32(data[:508]) != struct.unpack_from("<I", data, 508)[0]:
        raise Damage("checksum", "the header's checksum does not match", 0)
    version, _, incompatible, compatible, _ = struct.unpack_from("<HHIII", data, 16)
    if version != 1:
        raise Damage("newer-version", "format %d" % version, 0)
    if incompatible:
        raise Damage("unknown-feature", "feature flags %#x" % incompatible, 0)
    if struct.unpack_from("<II", data) != (0x184D2A50, 504):
        raise Damage("malformed", "the header's frame has a wrong size", 0)
    base, created = struct.unpack_from("<Qq", data, 48)
    account = data[65:65 + data[64]].decode()
    if not 1 <= base <= POSITION_MAX:
        raise Damage("malformed", "an impossible base position", 0)
    log = data[32:48][::-1].hex()
    return {"log": log, "base": base, "created": created, "account": account or None,
            "compatible": compatible}


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def footer(data):
    """SEG-5: the footer that fills `data`."""
    size = len(data)
    if size < 104 or xxh32(data[:-4]) != struct.unpack_from("<I", data, size - 4)[0]:
        raise Damage("checksum", "the footer's checksum does not match")
    magic, content = struct.unpack_from("<II", data)
    if magic != 0x184D2A52 or content != size - 8 or size != struct.unpack_from("<I", data, size - 8)[0]:
        raise Damage("malformed", "the footer has a wrong size")
    names = ("covered", "first", "last", "events", "oldest", "newest", "plaintext")
    result = dict(zip(names, struct.unpack_from("<4Q2qQ", data, 8)))
    flags, frames, sparse, ids, _ = struct.unpack_from("<4IQ", data, 64)
    result["compacted"] = bool(flags & 1)
    more = 16 if result["compacted"] else 0
    if 104 + sparse + ids + more != size:
        raise Damage("malformed", "the footer's parts do not fill it")
    result["frames"], at, offset, position = [], 88, 0, 0
    for _ in range(frames):
        delta, at = varint(data, at)
        offset += delta
        delta, at = varint(data, at)
        position += delta
        result["frames"].append((offset, position))
    if at != 88 + sparse:
        raise Damage("malformed", "the footer's frame list has a wrong length")
    result["index"] = data[at:at + ids]
    result["through"], result["removed"] = (
        struct.unpack_from("<QQ", data, at + ids) if more else (0, 0))
    if max(result["through"], result["covered"]) > POSITION_MAX:
        raise Damage("malformed", "the footer has impossible values")
    result["digest"] = struct.unpack_from("<Q", data, at + ids + more)[0]
    return result


def footer_at_end(data):
    if len(data) < 104:
        return None
    size = struct.unpack_from("<I", data, len(data) - 8)[0]
    if not 104 <= size <= len(data):
        return None
    try:
        return len(data) - size, footer(data[len(data) - size:])
    except Damage:
        return None


def id_index(data):
    """SEG-6: all (hash, frame) entries and the seed."""
    seed, count, rice, width, _ = struct.unpack_from("<IIBBH", data)
    fences = -(-count // 128)
    bits = "".join("{:08b}".format(byte) for byte in data[12 + 8 * fences:])
    at, entries, current = 0, [], 0
    for number in range(count):
        if number % 128 == 0:
            current, bit = struct.unpack_from("<II", data, 12 + 8 * (number // 128))
            assert bit == at, "a fence points beside its entry"
        quotient = 0
        while bits[at] == "1":
            quotient += 1
            at += 1
        at += 1
        gap = quotient << rice | int(bits[at:at + rice] or "0", 2)
        at += rice
        frame = int(bits[at:at + width] or "0", 2)
        at += width
        current += gap
        entries.append((current, frame))
    assert entries == sorted(entries) and len(bits) - at < 8 and "1" not in bits[at:]
    return seed, entries


def removed_ids(data, at, base, covered):
    """SEG-8: the list of removed ids at an offset, as {id: (position, hash, hash)}, and its end."""
    if at + 24 > len(data):
        raise Damage("truncated", "the file ends inside removed ids", at)
    magic, content, _, count, _ = struct.unpack_from("<IIqII", data, at)
    end = at + 8 + content
    if magic != 0x184D2A54 or content != 24 + 28 * count or end > len(data):
        raise Damage("malformed", "a list of removed ids has a wrong size", at)
    if xxh64(data[at:end - 8]) != struct.unpack_from("<Q", data, end - 8)[0]:
        raise Damage("checksum", "the digest of removed ids does not match", at)
    records = [struct.unpack_from("<16s3I", data, at + 24 + 28 * i) for i in range(count)]
    ids = [record[0] for record in records]
    if ids != sorted(set(ids)) or any(base + record[1] > covered for record in records):
        raise Damage("malformed", "a list of removed ids is not in order", at)
    return {record[0].hex(): (base + record[1],) + record[2:] for record in records}, end


class Segment:
    """Reads one segment from its first frame on, commit by commit, until something ends it."""

    def __init__(self, data, base, holes=False):
        self.data, self.base, self.expected, self.holes = data, base, base, holes
        self.commits = []  # (offset, end, frame offset, [Line])
        self.frames = []  # (offset, first position)
        self.stored = self.big = 0
        self.last_is_big = False
        self.boundary = 512  # where the last commit ends
        self.tail = None  # (kind, offset, value)
        self.lists = None  # where lists of removed ids begin

    def scan(self):
        at = 512
        while self.tail is None:
            at = self.frame(at)
        return self

    def u32(self, at, expected):
        if at + 4 > len(self.data):
            raise Damage("truncated", "the file ends inside a frame", at, expected)
        return struct.unpack_from("<I", self.data, at)[0]

    def frame(self, at):
        data = self.data
        if at >= len(data):
            self.tail = ("none", at, None)
            return at
        if at + 8 <= len(data):
            magic, size = struct.unpack_from("<II", data, at)
            if magic == 0x184D2A51:
                self.tail = ("trailer", at, size)
                return at
            if magic == 0x184D2A52:
                try:
                    self.tail = ("footer", at, footer(data[at:at + 8 + size]))
                except Damage as damage:
                    damage.offset, damage.expected = at, "frame"
                    raise
                return at
            if magic == 0x184D2A53:
                mark = data[at:at + 20]
                if size != 12 or len(mark) < 20 or xxh32(mark[:16]) != struct.unpack_from("<I", mark, 16)[0]:
                    raise Damage("checksum", "the clean-shutdown marker is damaged", at, "frame")
                self.tail = ("clean-shutdown marker", at, struct.unpack_from("<Q", mark, 8)[0])
                return at
            if magic == 0x184D2A54:
                # SEG-8
                if not self.holes or at + 8 + size >= len(data):
                    raise Damage("malformed", "removed ids where none belong", at, "frame")
                self.lists = self.lists or at
                return at + 8 + size
        if self.lists:
            raise Damage("malformed", "a frame behind removed ids", at, "frame")
        # FRM-1
        if at + 7 > len(data):
            raise Damage("truncated", "the file ends inside a frame header", at, "frame")
        if data[at:at + 4] != b"\x04\x22\x4d\x18" or data[at + 4] & ~8 != 0x50 or data[at + 5] != 0x40:
            raise Damage("malformed", "no frame of this format begins here", at, "frame")
        big = bool(data[at + 4] & 8)
        size = 15 if big else 7
        if at + size > len(data):
            raise Damage("truncated", "the file ends inside a frame header", at, "frame")
        if xxh32(data[at + 4:at + size - 1]) >> 8 & 255 != data[at + size - 1]:
            raise Damage("checksum", "the frame header's checksum does not match", at, "frame")
        plaintext = bytearray()
        if big:
            limit = struct.unpack_from("<Q", data, at + 6)[0]
            if not 0 < limit <= 4194304:
                raise Damage("malformed", "more than a commit", at, "frame")
            next_block = at + size
            while len(plaintext) < limit:
                text, next_block = self.block(next_block, plaintext, limit, "big commit")
                if text is None:
                    raise Damage("truncated", "a big commit ends early", next_block, "big commit")
                plaintext += text
            if self.u32(next_block, "big commit") != 0:
                raise Damage("malformed", "a big commit has no end mark", next_block, "big commit")
            self.big += 1
            self.commit(at, next_block + 4, at, bytes(plaintext), "big commit")
            return next_block + 4
        next_block, first = at + size, True
        while True:
            offset = next_block
            text, next_block = self.block(offset, plaintext, 262144, "block")
            if text is None:
                if first:
                    raise Damage("malformed", "a frame without a block", offset, "block")
                return next_block
            plaintext += text
            self.commit(at if first else offset, next_block, at, text, "block")
            first = False

    def block(self, at, history, limit, expected):
        """BLK-1, BLK-2: the plaintext of a block, or None for the end mark; and what follows."""
        word = self.u32(at, expected)
        if word == 0:
            return None, at + 4
        size, stored = word & 0x7FFFFFFF, word >> 31
        if not 0 < size <= 65536:
            raise Damage("malformed", "a block of %d bytes" % size, at, expected)
        if at + 8 + size > len(self.data):
            raise Damage("truncated", "the file ends inside a block", at, expected)
        body = self.data[at + 4:at + 4 + size]
        if xxh32(body) != struct.unpack_from("<I", self.data, at + 4 + size)[0]:
            raise Damage("checksum", "the block's checksum does not match", at, expected)
        room = min(65536, limit - len(history))
        if stored:
            self.stored += 1
            if size > room:
                raise Damage("malformed", "the frame holds more bytes than the limit", at, expected)
            return body, at + 8 + size
        try:
            return lz4_block(body, history, room), at + 8 + size
        except Damage as damage:
            damage.offset, damage.expected = at, expected
            raise

    def commit(self, at, end, frame, text, expected):
        """LINE-3: whole lines, positions without holes."""
        lines, next_position = [], self.expected
        place = at if expected == "big commit" or at != frame else frame + 7
        if not text.endswith(b"\n"):
            raise Damage("bad-line", "a line runs over the end of its commit", place, expected)
        for one in text[:-1].split(b"\n"):
            try:
                line = Line(one)
            except Damage as damage:
                damage.offset, damage.expected = place, expected
                raise
            if line.position != next_position and not (self.holes and line.position > next_position):
                raise Damage("bad-position", "position %d stands where %d belongs"
                             % (line.position, next_position), place, expected)
            next_position = line.position + 1
            lines.append(line)
        if at == frame:
            self.frames.append((frame, lines[0].position))
        self.expected = next_position
        self.boundary = end
        self.last_is_big = expected == "big commit"
        self.commits.append((at, end, frame, lines))

    @property
    def lines(self):
        return [line for commit in self.commits for line in commit[3]]


# ---- Recovery (recovery.md) --------------------------------------------------------------------


def last_nonzero(data, start):
    at = len(data)
    while at > start and data[at - 1] == 0:
        at -= 1
    return at - 1 if at > start else None


def good_block(data, at):
    if at + 4 > len(data):
        return None
    word = struct.unpack_from("<I", data, at)[0]
    size = word & 0x7FFFFFFF
    if not 0 < size <= 65536 or at + 8 + size > len(data):
        return None
    if xxh32(data[at + 4:at + 4 + size]) != struct.unpack_from("<I", data, at + 4 + size)[0]:
        return None
    return at + 8 + size


def plaintext_bytes(data, at):
    """REC-3: the length of a good block's plaintext, from its tokens; None where they are wrong."""
    word = struct.unpack_from("<I", data, at)[0]
    block = data[at + 4:at + 4 + (word & 0x7FFFFFFF)]
    try:
        return len(block) if word >> 31 else sum(
            len(literals) + count for literals, _, count in lz4_sequences(block))
    except Damage:
        return None


def is_commit(data, at):
    """REC-3: is the good block at an offset one that no big commit has, with another behind it?"""
    end = good_block(data, at)
    return end and good_block(data, end) and plaintext_bytes(data, at) not in (None, 61440)


def is_list(data, at):
    try:
        removed_ids(data, at, 0, MASK64)
        return True
    except (Damage, struct.error):
        return False


def proof(data, expected):
    """REC-3: what in the bytes from a bad place on proves that the place had been synced."""
    if expected == "frame":
        second = good_block(data, 7)
        if second and good_block(data, second):
            return "a later block"
    for at in range(0 if expected == "frame" and is_list(data, 0) else 1, len(data) - 3):
        magic = struct.unpack_from("<I", data, at)[0]
        if magic == 0x184D2204 and at + 7 <= len(data):
            if data[at + 4] & ~8 == 0x50 and data[at + 5] == 0x40:
                size = 15 if data[at + 4] & 8 else 7
                if at + size <= len(data) and good_block(data, at + size) \
                        and xxh32(data[at + 4:at + size - 1]) >> 8 & 255 == data[at + size - 1]:
                    return "a later frame"
        elif magic == 0x184D2A53:
            mark = data[at:at + 20]
            if len(mark) == 20 and mark[4:8] == b"\x0c\0\0\0" \
                    and xxh32(mark[:16]) == struct.unpack_from("<I", mark, 16)[0]:
                return "a clean-shutdown marker"
        elif magic == 0x184D2A52 and has_footer(data, at):
            return "a footer"
        elif magic == 0x184D2A54 and is_list(data, at):
            return "a list of removed ids"
        elif magic and (good_block if expected == "block" else is_commit)(data, at):
            return "a later block"
    return None


def cut(segment):
    """R6, a file that ends where no writer ends it; None if it does not."""
    open_frame = segment.commits and not segment.last_is_big
    size, end = len(segment.data), segment.boundary + (4 if open_frame else 0)
    if size in (end + 8, end + 20) or size % 4096 == 0 and size > end + 8:
        return None
    return "R6", "corrupt", segment, {
        "offset": len(segment.data), "positions": [segment.expected, segment.expected]}


def has_footer(data, at):
    """Does a sound footer begin at an offset?"""
    try:
        return bool(footer(data[at:at + 8 + struct.unpack_from("<I", data, at + 4)[0]]))
    except (Damage, struct.error):
        return False


def ends_file(data, at):
    """R6: does a damaged footer that begins at an offset end the file, as its first or last bytes say?"""
    size = len(data) - at
    return size >= 8 and (
        data[at:at + 8] == struct.pack("<II", 0x184D2A52, size - 8)
        or struct.unpack_from("<I", data, len(data) - 8)[0] == size >= 104)


def read_last(data, name):
    """The last segment of a log: (row label, state, result, details)."""
    try:
        head = header(data)
    except Damage as damage:
        if damage.code not in ("newer-version", "unknown-feature") and len(data) % 4096 == 0 \
                and last_nonzero(data, 520) is None:
            return "R1", "unfinished", None, {}
        raise
    assert head["base"] == int(name[:20]), "the name and the header disagree"
    segment = Segment(data, head["base"], (footer_at_end(data) or (0, {}))[1].get("compacted", False))
    try:
        segment.scan()
        kind, at, value = segment.tail
        if kind == "footer":
            lines = segment.lines
            if (value["frames"], value["events"], value["last"]) != (
                    segment.frames, len(lines), lines[-1].position if lines else 0) \
                    or not value["compacted"] and value["covered"] != segment.expected - 1:
                return "R6", "corrupt", segment, {
                    "offset": at, "positions": [segment.expected, value["covered"]]}
            return "R2", "sealed", segment, {}
        if kind == "clean-shutdown marker":
            assert value + 1 == segment.expected and at + 20 == len(data)
            return "R3", "closed", segment, {}
        if kind == "trailer" and last_nonzero(data, at + 8) is not None:
            raise Damage("malformed", "the preallocated space after the trailer is not empty", at, "frame")
        if kind == "none":
            return cut(segment)
        return "R4", "live", segment, {}
    except Damage as damage:
        end = last_nonzero(data, segment.boundary)
        if end is None:
            return cut(segment) or ("R4", "live", segment, {})
        why = proof(data[damage.offset:], damage.expected)
        if why:
            at = damage.offset
            while is_list(data, at):  # so the segment was compacted: its footer is what is damaged
                at += 8 + struct.unpack_from("<I", data, at + 4)[0]
            if at > damage.offset and has_footer(data, at):  # ... or is sound, and zeros follow it
                at = damage.offset
            return "R6", "corrupt", segment, {"offset": at, "proof": why}
        not_whole = cut(segment)
        if not_whole and damage.expected == "frame" and ends_file(data, damage.offset):
            return "R6", "corrupt", segment, {"offset": damage.offset}
        return not_whole or ("R5", "torn", segment, {
            "offset": segment.boundary, "bytes": end + 1 - segment.boundary})


def check_sealed(data, segment, start, foot):
    """SEG-5, SEG-6 and SEG-8: the footer agrees with what was read. Returns the removed ids."""
    lines = segment.lines
    assert foot["digest"] == xxh64(data[:start]), "digest"
    assert foot["frames"] == segment.frames, "frame list"
    assert foot["events"] == len(lines) and foot["plaintext"] == sum(len(x.text) + 1 for x in lines)
    assert (foot["first"], foot["last"]) == (
        (lines[0].position, lines[-1].position) if lines else (0, 0))
    assert foot["compacted"] or foot["covered"] == segment.expected - 1
    assert (foot["oldest"], foot["newest"]) == (
        (min(x.time for x in lines), max(x.time for x in lines)) if lines else (0, 0))
    seed, entries = id_index(foot["index"])
    offsets = {frame: number for number, (frame, _) in enumerate(segment.frames)}
    wanted = sorted(
        (xxh32(bytes.fromhex(line.id.replace("-", "")), seed), offsets[frame])
        for _, _, frame, commit in segment.commits for line in commit)
    assert entries == wanted, "id index"
    assert (segment.lists or start) == start - foot["removed"], "lists of removed ids"
    removed, at = {}, start - foot["removed"]
    while at < start:
        found, at = removed_ids(data, at, segment.base, foot["covered"])
        removed.update(found)
    assert not foot["compacted"] or len(data) % 4096, "a size that could end in room"
    return removed


def read_log(folder):
    """A log: what `expected.json` says about it, and all intact lines."""
    names = sorted(name for name in os.listdir(folder) if re.fullmatch(r"[0-9]{20}\.lz4", name))
    lines, expected, through, removed = [], 1, 0, {}
    for name in names[:-1]:
        data = open(os.path.join(folder, name), "rb").read()
        head = header(data)
        assert head["base"] == int(name[:20]) == expected
        found = footer_at_end(data)
        assert found, "%s has no footer" % name
        start, foot = found
        segment = Segment(data, head["base"], foot["compacted"])
        try:
            segment.scan()
            assert segment.tail[:2] == ("footer", start)
            removed.update(check_sealed(data, segment, start, foot))
            through = max(through, foot["through"])
        except Damage as damage:
            lines += segment.lines
            last = next((p - 1 for o, p in foot["frames"] if o > damage.offset), foot["covered"])
            return {"state": "corrupt", "segment": name, "offset": damage.offset,
                    "positions": [segment.expected, last]}, lines
        lines += segment.lines
        expected = foot["covered"] + 1
    name = names[-1]
    data = open(os.path.join(folder, name), "rb").read()
    try:
        row, state, segment, details = read_last(data, name)
    except Damage as damage:
        return {"state": damage.code, "segment": name, "offset": 0}, lines
    if segment:
        assert int(name[:20]) == expected
        lines += segment.lines
        if state == "sealed":
            start, foot = footer_at_end(data)
            removed.update(check_sealed(data, segment, start, foot))
            through = max(through, foot["through"])
    result = {"state": state, "row": row, "segment": name}
    result.update(details)
    if through:
        result["compactedThrough"] = through
    if removed:
        result["removed"] = {
            key: [position, "%08x" % one, "%08x" % two]
            for key, (position, one, two) in removed.items()}
    return result, lines


# ---- What is remembered of content (compaction.md, CMP-26) --------------------------------------


def canonical(value):
    """The one text of everything that means the same."""
    if isinstance(value, dict):
        members = sorted((canonical(name), canonical(member)) for name, member in value.items())
        return b"{" + b"".join(name + b":" + text + b"," for name, text in members) + b"}"
    if isinstance(value, list):
        return b"[" + b"".join(canonical(one) + b"," for one in value) + b"]"
    if isinstance(value, Number):
        return value.canonical()
    if isinstance(value, str):
        short = {8: "\\b", 9: "\\t", 10: "\\n", 12: "\\f", 13: "\\r", 34: '\\"', 92: "\\\\"}
        return ('"' + "".join(
            short.get(ord(c), c if ord(c) > 31 else "\\u%04x" % ord(c)) for c in value) + '"').encode()
    return {None: b"null", True: b"true", False: b"false"}[value]


class Number(str):
    """A number as it was written."""

    def canonical(self):
        mantissa, _, exponent = self.lower().partition("e")
        whole, _, fraction = mantissa.lstrip("-").partition(".")
        digits = (whole + fraction).lstrip("0")
        power = int(exponent or 0) - len(fraction) + len(digits) - len(digits.rstrip("0"))
        digits = digits.rstrip("0")
        sign = "-" if self.startswith("-") and digits else ""
        return ("%s%se%d" % (sign, digits, power if digits else 0)).encode()


def content_hashes(line):
    """CMP-26: the hashes of a line's content, without and with its time."""
    event = json.loads(line, parse_int=Number, parse_float=Number)
    for name in ("specversion", "id", "source", "sequence", "position", "partitionkey"):
        event.pop(name, None)
    timed = xxh64(canonical(event)) & MASK32
    del event["time"]
    return ["%08x" % (xxh64(canonical(event)) & MASK32), "%08x" % timed]


# ---- The recorded rules --------------------------------------------------------------------------


def rules(folder):
    """The rules that a log has recorded, by type; None without the file. Events, EVT-19."""
    path = os.path.join(folder, "rules")
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as file:
        elements = json.load(file)["rules"]
    found = {}
    for element in elements:
        name = element.get("type") if isinstance(element, dict) else None
        if not isinstance(name, str) or not name or name.startswith("daybook."):
            continue
        rule = found[name] = {}
        for member in ("action", "newest"):
            if isinstance(element.get(member), str) and element[member]:
                rule[member] = element[member]
        if element.get("begins") is True:
            rule["begins"] = True
    return found


# ---- The vectors -------------------------------------------------------------------------------


def summary(folder):
    found, lines = read_log(folder)
    plaintext = b"".join(line.text + b"\n" for line in lines)
    found["events"] = len(lines)
    found["plaintextBytes"] = len(plaintext)
    found["xxh64"] = "%016x" % xxh64(plaintext)
    if rules(folder) is not None:
        found["rules"] = rules(folder)
    return found, plaintext


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    if len(sys.argv) == 3 and sys.argv[1] == "--dump":
        return dump(sys.argv[2])
    differences = 0
    for name in sorted(os.listdir(here)):
        folder = os.path.join(here, name)
        if not os.path.isdir(folder) or name.startswith((".", "_")):
            continue
        found, plaintext = summary(folder)
        wrong = []
        with open(os.path.join(folder, "expected.json")) as file:
            expected = json.load(file)
        for key in sorted(set(expected) | set(found)):
            if expected.get(key) != found.get(key):
                wrong.append("%s: expected %r, found %r" % (key, expected.get(key), found.get(key)))
        path = os.path.join(folder, "expected.ndjson")
        if os.path.exists(path) and open(path, "rb").read() != plaintext:
            wrong.append("the lines differ from expected.ndjson")
        for line in plaintext.splitlines():
            json.loads(line)
        path = os.path.join(folder, "removed.ndjson")
        if os.path.exists(path):
            gone = open(path, "rb").read().splitlines()
            remembered = {
                Line(line).id.replace("-", ""): [Line(line).position] + content_hashes(line)
                for line in gone}
            if remembered != found.get("removed"):
                wrong.append("what is remembered is not what removed.ndjson comes to")
        print("%-16s %s" % (name, "; ".join(wrong) or "ok"))
        differences += len(wrong)
    return 1 if differences else 0


def dump(folder):
    for name in sorted(os.listdir(folder)):
        if not name.endswith(".lz4"):
            continue
        data = open(os.path.join(folder, name), "rb").read()
        print(name, len(data), header(data))
        found = footer_at_end(data)
        segment = Segment(data, int(name[:20]), bool(found and found[1]["compacted"]))
        try:
            segment.scan()
        except Damage as damage:
            print("  damage", damage.offset, damage.expected, damage)
        for at, end, frame, lines in segment.commits:
            print("  commit %d..%d frame %d: positions %d..%d"
                  % (at, end, frame, lines[0].position, lines[-1].position))
        print("  tail", segment.tail, "stored", segment.stored, "big", segment.big)
    return 0


if __name__ == "__main__":
    sys.exit(main())
