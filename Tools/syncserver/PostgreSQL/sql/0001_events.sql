-- Events of accounts, and the functions that apply batches and read pages. The first migration of the schema;
-- migrations run once each, in the order of their numbers. syncserver runs them automatically; on Supabase they
-- are run by hand (Spec/operations/supabase.md). Spec/operations/postgresql.md.

CREATE SCHEMA daybook;
REVOKE ALL ON SCHEMA daybook FROM PUBLIC;

-- The migrations that have been run.
CREATE TABLE daybook.migration (
    number integer PRIMARY KEY,
    name text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
);

-- Every key begins with the account, so that rows can be distributed by it.
-- append_batch locks an account's row until the commit: serials are assigned in the order of commits, so no
-- event gets a serial below one that a reader has passed. The fillfactor leaves space for updates in place.
CREATE TABLE daybook.account (
    account text COLLATE "C" PRIMARY KEY,
    last_serial bigint NOT NULL,
    last_used date NOT NULL DEFAULT current_date
) WITH (fillfactor = 50);

-- The partitions, by a hash of the account, can be stored on several disks.
CREATE TABLE daybook.event (
    account text COLLATE "C" NOT NULL,
    serial bigint NOT NULL,
    id uuid NOT NULL,
    source uuid NOT NULL,
    sequence bigint NOT NULL,
    -- The event as JSON on one line, in the form of Spec/format/line.md.
    line text COLLATE "C" NOT NULL,
    PRIMARY KEY (account, serial)
) PARTITION BY HASH (account);
CREATE UNIQUE INDEX event_by_id ON daybook.event (account, id);
CREATE INDEX event_by_source ON daybook.event (account, source, sequence, serial);
DO $$
BEGIN
    FOR remainder IN 0..15 LOOP
        EXECUTE pg_catalog.format(
            'CREATE TABLE daybook.event_%s PARTITION OF daybook.event FOR VALUES WITH (MODULUS 16, REMAINDER %s)',
            remainder, remainder);
    END LOOP;
END $$;

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

-- One row: the highest serial of all erased accounts. The serials of a new account begin after it: if an
-- erased account comes back, a reader with an old cursor misses nothing.
CREATE TABLE daybook.serial_floor (serial bigint NOT NULL);
INSERT INTO daybook.serial_floor VALUES (0);

CREATE FUNCTION daybook.begin_behind_erased() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    -- FOR SHARE makes an erasure wait until this insertion is committed or rolled back; otherwise it could
    -- raise the floor after this read.
    SELECT greatest(NEW.last_serial, f.serial) INTO NEW.last_serial
    FROM daybook.serial_floor f FOR SHARE;
    RETURN NEW;
END $$;
CREATE TRIGGER begin_behind_erased BEFORE INSERT ON daybook.account
FOR EACH ROW EXECUTE FUNCTION daybook.begin_behind_erased();

-- One row: the random name that every reply has (SYNC-50). A copy of the database that serves other devices
-- needs another one.
CREATE TABLE daybook.server (
    name text COLLATE "C" NOT NULL
);
INSERT INTO daybook.server (name) VALUES (replace(gen_random_uuid()::text, '-', ''));

-- The restores of the database from a backup, which cursors name (Spec/operations/operating.md).
-- One row a restore. syncserver restored adds it.
CREATE TABLE daybook.restore (
    number integer PRIMARY KEY,
    -- Eight random hexadecimal digits.
    generation text COLLATE "C" NOT NULL,
    -- The time of the restored state, in milliseconds since 1970.
    restored_to bigint NOT NULL
);

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

-- Applies a batch to an account, in one transaction with its effects (SYNC-16 to SYNC-29). An event is an
-- element of each array, and a NULL array counts as one of NULLs:
--   ids        UUIDs
--   lanes      any text that is the same for the events of one lane
--   lines      the events as they are stored; NULL for one that is unreadable
--   sources, sequences, times    their LWW timestamps: UUID, number, milliseconds since 1970
--   given_lanes, given_times    whether the sender gave partitionkey and time
--   codes, details    the rule that an event breaks, if any
--   notes      the UTF-8 of the note's name in hexadecimal digits, for an event of a note
--   bases      the id in lower case that must be the note's head, if the event names one; the nil UUID if the
--              note must have none
--   deletions  whether the event deletes the note
-- Returns one row for each event, in their order.
CREATE FUNCTION daybook.append_batch(
    for_account text, ids uuid[], lanes text[], lines text[], sources uuid[], sequences bigint[],
    times bigint[], given_lanes boolean[], given_times boolean[], codes text[], details text[], notes text[],
    bases text[], deletions boolean[]
) RETURNS TABLE (id uuid, status text, code text, detail text, current text)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
-- Without the setting, the planner plans each query of each call again: it counts the cost of all 16 partitions
-- for a generic plan, which prunes 15 of them only when it is executed. A batch of 10 events took 1.27 instead
-- of 0.75 ms. But a generic plan locks all partitions, so ACCESS EXCLUSIVE on one (SET TABLESPACE) stops all
-- accounts; force_custom_plan during that time stops only those of the partition.
SET plan_cache_mode = force_generic_plan AS $$
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
    -- The applied events that are not inserted yet.
    new_serials bigint[] := '{}';
    new_ids uuid[] := '{}';
    new_sources uuid[] := '{}';
    new_sequences bigint[] := '{}';
    new_lines text[] := '{}';
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
        SELECT x.*,
            -- Subqueries instead of joins: each is a search in an index, whatever the planner knows of the
            -- table.
            (SELECT v.line FROM daybook.event v
                WHERE v.account = for_account AND v.id = x.id) AS stored,
            (SELECT true FROM daybook.event v
                WHERE v.account = for_account AND v.source = x.source
                    AND v.sequence = x.sequence AND v.id <> x.id LIMIT 1) AS has_twin,
            pg_catalog.count(*) OVER (PARTITION BY x.id) > 1
                OR pg_catalog.count(*) OVER (PARTITION BY x.source, x.sequence) > 1 AS is_repeated
        FROM unnest(
            ids, lanes, lines, sources, sequences, times, given_lanes, given_times, codes, details, notes,
            bases, deletions
        ) WITH ORDINALITY AS x(
            id, lane, line, source, sequence, "time", given_lane, given_time, code, detail, note, base,
            deletes, place)
        ORDER BY x.place
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

        stored := e.stored;
        has_twin := e.has_twin;
        -- Another event of the batch has the same id, or the same source and sequence, and may be stored by now.
        IF e.is_repeated AND e.line IS NOT NULL THEN
            SELECT v.line INTO stored
            FROM daybook.event v WHERE v.account = for_account AND v.id = e.id;
            SELECT EXISTS (
                SELECT FROM daybook.event v
                WHERE v.account = for_account AND v.source = e.source
                    AND v.sequence = e.sequence AND v.id <> e.id
            ) INTO has_twin;
        END IF;
        IF e.line IS NOT NULL AND stored IS NOT NULL THEN
            IF daybook.is_same(stored, e.line, e.given_lane, e.given_time) THEN
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
                -- The nil UUID is based on nothing: there must be no head.
                IF e.base IS NOT NULL AND e.base
                    <> coalesce(head.event::text, '00000000-0000-0000-0000-000000000000')
                THEN
                    status := 'conflict';
                    IF head.event IS NULL THEN
                        detail := 'the note has no events here';
                    ELSE
                        current := new_lines[pg_catalog.array_position(new_ids, head.event)];
                        IF current IS NULL THEN
                            SELECT v.line INTO current FROM daybook.event v
                            WHERE v.account = for_account AND v.id = head.event;
                        END IF;
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
            IF has_twin THEN
                code := 'source_fork';
                detail := 'the account has another event with this source and sequence';
            END IF;
        ELSE
            held := held || e.lane;
        END IF;

        IF status = 'applied' THEN
            serial := serial + 1;
            IF e.is_repeated THEN
                INSERT INTO daybook.event (account, serial, id, source, sequence, line)
                VALUES (for_account, serial, e.id, e.source, e.sequence, e.line);
            ELSE
                new_serials := new_serials || serial;
                new_ids := new_ids || e.id;
                new_sources := new_sources || e.source;
                new_sequences := new_sequences || e.sequence;
                new_lines := new_lines || e.line;
            END IF;
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

    INSERT INTO daybook.event (account, serial, id, source, sequence, line)
    SELECT for_account, n.serial, n.id, n.source, n.sequence, n.line
    FROM unnest(new_serials, new_ids, new_sources, new_sequences, new_lines)
        AS n(serial, id, source, sequence, line);
    IF serial <> first_serial THEN
        UPDATE daybook.account SET last_serial = serial WHERE account = for_account;
    END IF;
END $$;

-- As append_batch, for Supabase: `events` is an array of objects in JSON, each a parsed event:
--   id, lane, line, source, sequence, time, code, detail, note, base    an element of the array of the same kind
--   lane_given, time_given    an element of given_lanes, given_times
--   deletes    an element of deletions
-- It touches no table, so it needs no plan_cache_mode.
CREATE FUNCTION daybook.append_events(for_account text, events jsonb)
RETURNS TABLE (id uuid, status text, code text, detail text, current text)
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT applied.* FROM (
        SELECT
            array_agg(x.id ORDER BY x.place) AS ids,
            array_agg(x.lane ORDER BY x.place) AS lanes,
            array_agg(x.line ORDER BY x.place) AS lines,
            array_agg(x.source ORDER BY x.place) AS sources,
            array_agg(x.sequence ORDER BY x.place) AS sequences,
            array_agg(x."time" ORDER BY x.place) AS times,
            array_agg(x.lane_given ORDER BY x.place) AS given_lanes,
            array_agg(x.time_given ORDER BY x.place) AS given_times,
            array_agg(x.code ORDER BY x.place) AS codes,
            array_agg(x.detail ORDER BY x.place) AS details,
            array_agg(x.note ORDER BY x.place) AS notes,
            array_agg(x.base ORDER BY x.place) AS bases,
            array_agg(x.deletes ORDER BY x.place) AS deletions
        FROM ROWS FROM (
            pg_catalog.jsonb_to_recordset(events) AS (
                id uuid, lane text, line text, source uuid, sequence bigint, "time" bigint,
                lane_given boolean, time_given boolean, code text, detail text, note text, base text,
                deletes boolean)
        ) WITH ORDINALITY AS x(
            id, lane, line, source, sequence, "time", lane_given, time_given, code, detail, note, base,
            deletes, place)
    ) b,
    LATERAL daybook.append_batch(
        for_account, b.ids, b.lanes, b.lines, b.sources, b.sequences, b.times, b.given_lanes, b.given_times,
        b.codes, b.details, b.notes, b.bases, b.deletions) applied
$$;

-- Returns events of an account after a cursor, in the server's order or in that of a source, up to a
-- number of events or of bytes.
CREATE FUNCTION daybook.read_events(
    for_account text, of_source uuid, after_sequence bigint, after_serial bigint, count_max integer
) RETURNS TABLE (line text, serial bigint, sequence bigint)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan AS $$
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

-- Erases all data of an account, unless it was used on or after a day. A concurrent append_batch waits
-- and then finds no account. Returns whether the account was erased.
CREATE FUNCTION daybook.erase_account(for_account text, unused_since date) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    last bigint;
BEGIN
    -- Locked first, as in the trigger: the same order of locks prevents a deadlock.
    PERFORM FROM daybook.serial_floor FOR UPDATE;
    SELECT a.last_serial INTO last FROM daybook.account a
    WHERE a.account = for_account
        AND (unused_since IS NULL OR a.last_used < unused_since) FOR UPDATE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    DELETE FROM daybook.event v WHERE v.account = for_account;
    DELETE FROM daybook.note_head h WHERE h.account = for_account;
    UPDATE daybook.serial_floor SET serial = greatest(serial, last);
    DELETE FROM daybook.account a WHERE a.account = for_account;
    RETURN true;
END $$;

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA daybook FROM PUBLIC;

INSERT INTO daybook.migration (number, name) VALUES (1, 'events');
