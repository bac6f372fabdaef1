-- Partitions daybook.event by a hash of the account, with the service running. The fourth migration of the
-- schema. Spec/operations/postgresql.md.
--
-- The migration creates the partitioned table daybook.event_hashed, and triggers that repeat every write to
-- daybook.event there. daybook.move_events copies the older rows in batches. When all rows are copied, it
-- drops daybook.event and gives its name to daybook.event_hashed. Until then every query reads daybook.event
-- as before. A view of both tables would need no copy of the rows, but its pages pass the index entries of
-- all rows that have been moved: 95,889 buffers and 162 ms instead of 507 and 2.7 ms.

CREATE TABLE daybook.event_hashed (LIKE daybook.event) PARTITION BY HASH (account);
ALTER TABLE daybook.event_hashed ADD CONSTRAINT event_hashed_pkey PRIMARY KEY (account, serial);
CREATE UNIQUE INDEX event_hashed_by_id ON daybook.event_hashed (account, id);
CREATE INDEX event_hashed_by_source ON daybook.event_hashed (account, source, sequence, serial);
DO $$
BEGIN
    FOR remainder IN 0..15 LOOP
        EXECUTE pg_catalog.format(
            'CREATE TABLE daybook.event_%s PARTITION OF daybook.event_hashed'
                || ' FOR VALUES WITH (MODULUS 16, REMAINDER %s)',
            remainder, remainder);
    END LOOP;
END $$;

-- One row: the key of the last row that move_events has copied. Exists until all rows are copied. A key and
-- not a ctid: VACUUM FULL and a restored dump change the order of the heap.
CREATE TABLE daybook.event_copy (account text COLLATE "C" NOT NULL, serial bigint NOT NULL);
INSERT INTO daybook.event_copy VALUES ('', 0);

-- Repeats an inserted or changed row of daybook.event in daybook.event_hashed.
CREATE FUNCTION daybook.repeat_write() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF TG_OP = 'UPDATE' THEN
        DELETE FROM daybook.event_hashed h WHERE h.account = OLD.account AND h.serial = OLD.serial;
    END IF;
    INSERT INTO daybook.event_hashed (account, serial, id, source, sequence, line)
    VALUES (NEW.account, NEW.serial, NEW.id, NEW.source, NEW.sequence, NEW.line);
    RETURN NULL;
END $$;

-- Repeats a DELETE or TRUNCATE of daybook.event in daybook.event_hashed.
CREATE FUNCTION daybook.repeat_deletion() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET row_security = off AS $$
DECLARE
    deleted record;
BEGIN
    IF TG_OP = 'TRUNCATE' THEN
        TRUNCATE daybook.event_hashed;
        RETURN NULL;
    END IF;
    -- Waits for a running batch of move_events: its copies of the deleted rows are visible only after its
    -- commit. erase_account already holds this lock.
    PERFORM FROM daybook.serial_floor FOR UPDATE;
    -- By range and not by row: a join with deleted_row prunes no partitions.
    FOR deleted IN
        SELECT d.account, min(d.serial) AS first, max(d.serial) AS last
        FROM deleted_row d GROUP BY d.account
    LOOP
        DELETE FROM daybook.event_hashed h
        WHERE h.account = deleted.account AND h.serial BETWEEN deleted.first AND deleted.last
            AND NOT EXISTS (
                SELECT FROM daybook.event v
                WHERE v.account = deleted.account AND v.serial = h.serial);
    END LOOP;
    RETURN NULL;
END $$;

-- Copies the next rows of daybook.event into its partitions; if none is left, replaces daybook.event by the
-- partitioned table. The caller repeats it until it returns 0, each call in a transaction of its own.
--
-- Returns the number of rows that it has passed; 0 if daybook.event is partitioned; NULL if another session
-- holds a lock that it needs: nothing has changed, and the caller tries again after a pause.
CREATE FUNCTION daybook.move_events(count_max integer) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
-- While a statement waits for ACCESS EXCLUSIVE, all later statements on the table wait behind it.
SET lock_timeout = '200ms'
-- An error instead of a copy that lacks the rows that a policy hides from the role.
SET row_security = off
-- Excludes a plan that reads and sorts the whole table for each batch.
SET enable_sort = off
SET plan_cache_mode = force_custom_plan AS $$
DECLARE
    last_account text;
    last_serial bigint;
    count_passed bigint;
    command text;
BEGIN
    IF coalesce(count_max, 0) < 1 THEN
        RAISE EXCEPTION 'count_max must be at least 1' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    -- A snapshot from before the lock of serial_floor could contain rows that are erased since.
    IF pg_catalog.current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'move_events needs the isolation level READ COMMITTED'
            USING ERRCODE = 'invalid_transaction_state';
    END IF;
    IF NOT pg_catalog.pg_try_advisory_xact_lock(
        pg_catalog.hashtextextended('daybook.move_events', 0))
    THEN
        RETURN NULL;
    END IF;
    IF pg_catalog.to_regclass('daybook.event_copy') IS NULL THEN
        RETURN 0;
    END IF;

    -- Excludes deletions: a copy that is not committed is invisible to a DELETE, which would leave it behind.
    -- append_events does not wait: it takes FOR SHARE, too, and only for a new account.
    PERFORM FROM daybook.serial_floor FOR SHARE;
    SELECT c.account, c.serial INTO last_account, last_serial FROM daybook.event_copy c;
    -- A row that was written since the migration is already there.
    WITH batch AS MATERIALIZED (
        SELECT v.account, v.serial, v.id, v.source, v.sequence, v.line FROM daybook.event v
        WHERE (v.account, v.serial) > (last_account, last_serial)
        ORDER BY v.account, v.serial LIMIT count_max
    ), copied AS (
        INSERT INTO daybook.event_hashed (account, serial, id, source, sequence, line)
        SELECT b.account, b.serial, b.id, b.source, b.sequence, b.line FROM batch b
        ON CONFLICT (account, serial) DO NOTHING
    )
    SELECT b.account, b.serial, pg_catalog.count(*) OVER ()
    INTO last_account, last_serial, count_passed
    FROM batch b ORDER BY b.account DESC, b.serial DESC LIMIT 1;
    IF FOUND THEN
        UPDATE daybook.event_copy SET account = last_account, serial = last_serial;
        RETURN count_passed;
    END IF;

    -- Every row is in both tables. The partitions themselves need no lock.
    LOCK TABLE daybook.event, ONLY daybook.event_hashed IN ACCESS EXCLUSIVE MODE;
    -- The rights of the table are those of its successor: on Supabase, users read their own rows.
    FOR command IN
        SELECT 'ALTER TABLE daybook.event_hashed ENABLE ROW LEVEL SECURITY'
        FROM pg_catalog.pg_class c
        WHERE c.oid = 'daybook.event'::regclass AND c.relrowsecurity
        UNION ALL
        SELECT 'ALTER TABLE daybook.event_hashed FORCE ROW LEVEL SECURITY'
        FROM pg_catalog.pg_class c
        WHERE c.oid = 'daybook.event'::regclass AND c.relforcerowsecurity
        UNION ALL
        SELECT pg_catalog.format(
            'CREATE POLICY %I ON daybook.event_hashed AS %s FOR %s TO %s%s%s',
            p.policyname, p.permissive, p.cmd,
            (SELECT pg_catalog.string_agg(
                CASE r WHEN 'public' THEN 'PUBLIC' ELSE pg_catalog.quote_ident(r) END, ', ')
            FROM pg_catalog.unnest(p.roles) r),
            ' USING (' || p.qual || ')', ' WITH CHECK (' || p.with_check || ')')
        FROM pg_catalog.pg_policies p WHERE p.schemaname = 'daybook' AND p.tablename = 'event'
        UNION ALL
        SELECT pg_catalog.format(
            'GRANT %s ON daybook.event_hashed TO %s%s', a.privilege_type,
            CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END,
            CASE WHEN a.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END)
        FROM pg_catalog.pg_class c, pg_catalog.aclexplode(c.relacl) a
        WHERE c.oid = 'daybook.event'::regclass AND a.grantee <> c.relowner
    LOOP
        EXECUTE command;
    END LOOP;
    DROP TABLE daybook.event, daybook.event_copy;
    ALTER TABLE daybook.event_hashed RENAME TO event;
    ALTER TABLE daybook.event RENAME CONSTRAINT event_hashed_pkey TO event_pkey;
    ALTER INDEX daybook.event_hashed_by_id RENAME TO event_by_id;
    ALTER INDEX daybook.event_hashed_by_source RENAME TO event_by_source;
    DROP FUNCTION daybook.repeat_write(), daybook.repeat_deletion();
    RETURN 0;
EXCEPTION WHEN lock_not_available THEN
    RETURN NULL;
END $$;

REVOKE ALL ON FUNCTION
    daybook.repeat_write(), daybook.repeat_deletion(), daybook.move_events(integer) FROM PUBLIC;

-- Without the setting, the planner plans each query of each call again: it counts the cost of all 16
-- partitions for a generic plan, which prunes 15 of them only when it is executed. A batch of 10 events took
-- 1.27 instead of 0.75 ms. But a generic plan locks all partitions, so ACCESS EXCLUSIVE on one (SET
-- TABLESPACE) stops all accounts; force_custom_plan during that time stops only those of the partition.
ALTER FUNCTION daybook.append_events(text, jsonb) SET plan_cache_mode = force_generic_plan;
ALTER FUNCTION daybook.read_events(text, uuid, bigint, bigint, integer)
    SET plan_cache_mode = force_generic_plan;

-- Creates the triggers, and moves the rows at once if there are at most 10,000. Readers wait only then.
DO $$
DECLARE
    attempts_max CONSTANT integer := 300;
    is_small boolean;
BEGIN
    SELECT pg_catalog.count(*) <= 10000 INTO is_small
    FROM (SELECT FROM daybook.event LIMIT 10001) e;
    PERFORM pg_catalog.set_config('lock_timeout', '200ms', true);
    FOR attempt IN 1..attempts_max LOOP
        BEGIN
            IF is_small THEN
                LOCK TABLE daybook.event IN ACCESS EXCLUSIVE MODE;
            ELSE
                LOCK TABLE daybook.event IN SHARE ROW EXCLUSIVE MODE;
            END IF;
            EXIT;
        EXCEPTION WHEN lock_not_available THEN
            IF attempt = attempts_max THEN
                RAISE;
            END IF;
            PERFORM pg_catalog.pg_sleep(1);
        END;
    END LOOP;
    CREATE TRIGGER repeat_write AFTER INSERT OR UPDATE ON daybook.event
    FOR EACH ROW EXECUTE FUNCTION daybook.repeat_write();
    CREATE TRIGGER repeat_deletion AFTER DELETE ON daybook.event
    REFERENCING OLD TABLE AS deleted_row
    FOR EACH STATEMENT EXECUTE FUNCTION daybook.repeat_deletion();
    CREATE TRIGGER repeat_truncation AFTER TRUNCATE ON daybook.event
    FOR EACH STATEMENT EXECUTE FUNCTION daybook.repeat_deletion();
    -- Also in a session with session_replication_role = replica, which skips other triggers.
    ALTER TABLE daybook.event ENABLE ALWAYS TRIGGER repeat_write;
    ALTER TABLE daybook.event ENABLE ALWAYS TRIGGER repeat_deletion;
    ALTER TABLE daybook.event ENABLE ALWAYS TRIGGER repeat_truncation;
    WHILE is_small AND daybook.move_events(10000) > 0 LOOP
    END LOOP;
END $$;

INSERT INTO daybook.migration (number, name) VALUES (4, 'partitions');
