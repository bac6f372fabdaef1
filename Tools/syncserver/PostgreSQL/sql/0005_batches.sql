-- Applies a batch with one query and one insert instead of some for each event. The fifth migration of the
-- schema. Spec/operations/postgresql.md.

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
-- As for read_events, in the fourth migration.
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

-- As append_batch, for events that are objects in JSON: for Supabase, and for servers of older releases,
-- which may still run on the new schema. The members are those of the first migration. It touches no table, so
-- it needs no plan_cache_mode.
CREATE OR REPLACE FUNCTION daybook.append_events(for_account text, events jsonb)
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

REVOKE ALL ON FUNCTION daybook.append_batch(
    text, uuid[], text[], text[], uuid[], bigint[], bigint[], boolean[], boolean[], text[], text[], text[],
    text[], boolean[]) FROM PUBLIC;

INSERT INTO daybook.migration (number, name) VALUES (5, 'batches');
