-- Events of accounts, and the function that applies batches. The first migration of the schema;
-- migrations run once each, in the order of their numbers. syncserver runs them automatically; on
-- Supabase they are run by hand (Spec/operations/supabase.md). The statements of a released migration
-- never change. Spec/operations/postgresql.md.

CREATE SCHEMA daybook;
REVOKE ALL ON SCHEMA daybook FROM PUBLIC;

-- The migrations that have been run.
CREATE TABLE daybook.migration (
    number integer PRIMARY KEY,
    name text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
);

-- Every key begins with the account, so that rows can be distributed by it.
-- append_events locks an account's row until the commit: serials are assigned in the order of commits,
-- so no event gets a serial below one that a reader has passed. The fillfactor leaves space for updates
-- in place.
CREATE TABLE daybook.account (
    account text COLLATE "C" PRIMARY KEY,
    last_serial bigint NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE daybook.event (
    account text COLLATE "C" NOT NULL,
    serial bigint NOT NULL,
    id uuid NOT NULL,
    source uuid NOT NULL,
    sequence bigint NOT NULL,
    -- The event as JSON on one line, in the form of Spec/format/line.md.
    line text COLLATE "C" NOT NULL,
    PRIMARY KEY (account, serial)
);
CREATE UNIQUE INDEX event_by_id ON daybook.event (account, id);
CREATE INDEX event_by_source ON daybook.event (account, source, sequence, serial);

-- The newest event of each note. The key is the SHA-256 of the note's name, which may be longer than an
-- index entry.
CREATE TABLE daybook.note_head (
    account text COLLATE "C" NOT NULL,
    note bytea NOT NULL,
    event uuid NOT NULL,
    is_deletion boolean NOT NULL,
    "time" bigint NOT NULL,
    source uuid NOT NULL,
    sequence bigint NOT NULL,
    PRIMARY KEY (account, note)
) WITH (fillfactor = 70);

-- The content of an event that SYNC-24 compares: everything except id, source, sequence and position, and
-- except the lane and time if the received event lacks them. In CloudEvents, a null attribute is absent.
CREATE FUNCTION daybook.content(line text, has_lane boolean, has_time boolean) RETURNS jsonb
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT pg_catalog.jsonb_object_agg(m.key, m.value)
    FROM pg_catalog.jsonb_each(line::jsonb) m
    WHERE m.key NOT IN ('id', 'source', 'sequence', 'position')
        AND (has_lane OR m.key <> 'partitionkey')
        AND (has_time OR m.key <> 'time')
        AND (m.key = 'data' OR m.value <> 'null')
        AND NOT (m.key = 'datacontenttype' AND m.value = '"application/json"')
$$;

-- Whether a received event has the same content as the stored event with its id.
CREATE FUNCTION daybook.is_same(
    stored text, newcomer text, has_lane boolean, has_time boolean
) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    -- A line's first 154 characters are id, source and sequence. If the text after them is equal, no parsing
    -- is needed, which also covers values that jsonb cannot represent (\u0000, lone surrogates).
    IF substr(stored, 155) = substr(newcomer, 155) THEN
        RETURN true;
    END IF;
    RETURN daybook.content(stored, has_lane, has_time)
        = daybook.content(newcomer, has_lane, has_time);
EXCEPTION WHEN data_exception THEN
    RETURN false;
END $$;

-- Applies a batch to an account, in one transaction with its effects (SYNC-16 to SYNC-29).
--
-- events: an array of objects, each a parsed event:
--   id        a UUID
--   lane      any text that is the same for the events of one lane
--   line      the event as it is stored; missing if it is unreadable
--   source, sequence, time    its LWW timestamp: UUID, number, milliseconds since 1970
--   lane_given, time_given    whether the sender gave partitionkey and time
--   code, detail    the rule that it breaks, if any
--   note      the UTF-8 of the note's name in hexadecimal digits, for an event of a note
--   base      the id in lower case that must be the note's head, if it names one
--   deletes   whether it deletes the note
-- Returns one row for each event, in their order.
CREATE FUNCTION daybook.append_events(for_account text, events jsonb)
RETURNS TABLE (id uuid, status text, code text, detail text, current text)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    e record;
    stored text;
    head daybook.note_head;
    note_key bytea;
    has_twin boolean;
    held text[] := '{}';
    current_bytes bigint := 0;
    first_serial bigint;
    serial bigint;
BEGIN
    -- The only lock of the transaction: it serializes the batches of one account, so the statements below
    -- see everything that was committed before.
    LOOP
        SELECT a.last_serial INTO first_serial
        FROM daybook.account a WHERE a.account = for_account FOR UPDATE;
        EXIT WHEN FOUND;
        INSERT INTO daybook.account VALUES (for_account, 0) ON CONFLICT DO NOTHING;
    END LOOP;
    serial := first_serial;

    FOR e IN
        SELECT x.* FROM pg_catalog.jsonb_to_recordset(events) AS x(
            id uuid, lane text, line text, source uuid, sequence bigint, "time" bigint,
            lane_given boolean, time_given boolean, code text, detail text, note text, base text,
            deletes boolean)
    LOOP
        id := e.id;
        status := NULL;
        code := NULL;
        detail := NULL;
        current := NULL;

        IF e.lane = ANY (held) THEN
            status := 'unprocessed';
            RETURN NEXT;
            CONTINUE;
        END IF;

        stored := NULL;
        IF e.line IS NOT NULL THEN
            SELECT v.line INTO stored
            FROM daybook.event v WHERE v.account = for_account AND v.id = e.id;
        END IF;
        IF stored IS NOT NULL THEN
            IF daybook.is_same(stored, e.line, e.lane_given, e.time_given) THEN
                status := 'duplicate';
            ELSE
                status := 'rejected';
                code := 'id_reused';
                detail := 'the account has another event with this id';
            END IF;
        ELSIF e.code IS NOT NULL OR e.line IS NULL THEN
            status := 'rejected';
            code := e.code;
            detail := e.detail;
        ELSE
            IF e.note IS NOT NULL THEN
                note_key := pg_catalog.sha256(pg_catalog.decode(e.note, 'hex'));
                SELECT * INTO head
                FROM daybook.note_head h WHERE h.account = for_account AND h.note = note_key;
                IF e.base IS NOT NULL AND e.base IS DISTINCT FROM head.event::text THEN
                    status := 'conflict';
                    IF head.event IS NULL THEN
                        detail := 'the note has no events here';
                    ELSE
                        SELECT v.line INTO current
                        FROM daybook.event v WHERE v.account = for_account AND v.id = head.event;
                        detail := 'the base is not the newest event of the note';
                        -- Includes head events as long as the answer stays small.
                        IF current_bytes > 0
                            AND current_bytes + octet_length(current) > 1048576
                        THEN
                            status := 'unprocessed';
                            detail := NULL;
                            current := NULL;
                        ELSE
                            current_bytes := current_bytes + octet_length(current);
                        END IF;
                    END IF;
                END IF;
            END IF;
            IF status IS NULL THEN
                status := 'applied';
            END IF;
        END IF;

        IF status IN ('applied', 'duplicate') THEN
            -- Also for a duplicate: the reply that reported the fork first may have been lost.
            SELECT EXISTS (
                SELECT FROM daybook.event v
                WHERE v.account = for_account AND v.source = e.source
                    AND v.sequence = e.sequence AND v.id <> e.id
            ) INTO has_twin;
            IF has_twin THEN
                code := 'source_fork';
                detail := 'the account has another event with this source and sequence';
            END IF;
        ELSE
            held := held || e.lane;
        END IF;

        IF status = 'applied' THEN
            serial := serial + 1;
            INSERT INTO daybook.event (account, serial, id, source, sequence, line)
            VALUES (for_account, serial, e.id, e.source, e.sequence, e.line);
            -- A deletion is final; otherwise the greater LWW timestamp wins.
            IF e.note IS NOT NULL AND (
                head.event IS NULL OR CASE
                    WHEN head.is_deletion = e.deletes THEN
                        (e."time", e.source, e.sequence)
                            > (head."time", head.source, head.sequence)
                    ELSE e.deletes
                END)
            THEN
                INSERT INTO daybook.note_head AS h
                VALUES (
                    for_account, note_key, e.id, e.deletes, e."time", e.source, e.sequence)
                ON CONFLICT (account, note) DO UPDATE SET
                    event = excluded.event, is_deletion = excluded.is_deletion,
                    "time" = excluded."time", source = excluded.source,
                    sequence = excluded.sequence;
            END IF;
        END IF;
        RETURN NEXT;
    END LOOP;

    IF serial <> first_serial THEN
        UPDATE daybook.account SET last_serial = serial WHERE account = for_account;
    END IF;
END $$;

-- Returns events of an account after a cursor, in the server's order or in that of a source, up to a
-- number of events or of bytes.
CREATE FUNCTION daybook.read_events(
    for_account text, of_source uuid, after_sequence bigint, after_serial bigint, count_max integer
) RETURNS TABLE (line text, serial bigint, sequence bigint)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    bytes bigint := 0;
BEGIN
    IF of_source IS NULL THEN
        FOR line, serial, sequence IN
            SELECT v.line, v.serial, v.sequence FROM daybook.event v
            WHERE v.account = for_account AND v.serial > after_serial
            ORDER BY v.serial LIMIT count_max
        LOOP
            RETURN NEXT;
            bytes := bytes + octet_length(line);
            EXIT WHEN bytes >= 1048576;
        END LOOP;
    ELSE
        FOR line, serial, sequence IN
            SELECT v.line, v.serial, v.sequence FROM daybook.event v
            WHERE v.account = for_account AND v.source = of_source
                AND (v.sequence, v.serial) > (after_sequence, after_serial)
            ORDER BY v.sequence, v.serial LIMIT count_max
        LOOP
            RETURN NEXT;
            bytes := bytes + octet_length(line);
            EXIT WHEN bytes >= 1048576;
        END LOOP;
    END IF;
END $$;

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA daybook FROM PUBLIC;

INSERT INTO daybook.migration (number, name) VALUES (1, 'events');
