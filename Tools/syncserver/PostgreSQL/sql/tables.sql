-- Fills a project's own tables from the events of daybook.event. An example with three tables: a project replaces
-- the tables and daybook.write_tables by its own. Run after supabase.sql, as the owner of the database; may be run
-- again. Spec/operations/supabase.md, SUP-13 to SUP-16.

-- The project's tables, unless they exist. user_id is the account: on Supabase the user's id, auth.uid().
CREATE TABLE IF NOT EXISTS public.cities (
    user_id text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    saved_at timestamptz NOT NULL,
    PRIMARY KEY (user_id, id)
);
CREATE TABLE IF NOT EXISTS public.notes (
    user_id text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    city_id text NOT NULL,
    content text NOT NULL,
    created_by text NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (user_id, id)
);
CREATE TABLE IF NOT EXISTS public.preferences (
    user_id text COLLATE "C" PRIMARY KEY,
    auto_download_enabled boolean NOT NULL DEFAULT false,
    wifi_only_download boolean NOT NULL DEFAULT true,
    max_storage_limit bigint NOT NULL DEFAULT 104857600,
    auto_sync boolean NOT NULL DEFAULT true,
    show_stale_data_warning boolean NOT NULL DEFAULT true,
    prune_after_days bigint NOT NULL DEFAULT 7,
    updated_at timestamptz NOT NULL
);

-- Users read their own rows. They write none: a row that no event has made would reach no device, and the next
-- event would replace it.
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY '{cities,notes,preferences}'::text[] LOOP
        EXECUTE format('ALTER TABLE public.%I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('REVOKE ALL ON public.%I FROM PUBLIC, anon, authenticated', name);
        EXECUTE format('GRANT SELECT ON public.%I TO authenticated', name);
        EXECUTE format('DROP POLICY IF EXISTS own_rows ON public.%I', name);
        EXECUTE format(
            'CREATE POLICY own_rows ON public.%I FOR SELECT TO authenticated '
                || 'USING (user_id = (SELECT daybook.current_account()))', name);
    END LOOP;
END $$;

-- The winner of each register (VIEW-1): the event that has set it, and the event's LWW timestamp. The key is the
-- SHA-256 of the register's names, which may be longer than an index entry.
CREATE TABLE IF NOT EXISTS daybook.winner (
    account text COLLATE "C" NOT NULL,
    register bytea NOT NULL,
    "time" timestamptz NOT NULL,
    source uuid NOT NULL,
    sequence bigint NOT NULL,
    event uuid NOT NULL,
    PRIMARY KEY (account, register)
) WITH (fillfactor = 70);

-- The events that the project's tables have refused, each with the last error.
CREATE TABLE IF NOT EXISTS daybook.refused (
    account text COLLATE "C" NOT NULL,
    event uuid NOT NULL,
    code text NOT NULL,
    message text NOT NULL,
    refused_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (account, event)
);
ALTER TABLE daybook.winner ENABLE ROW LEVEL SECURITY;
ALTER TABLE daybook.refused ENABLE ROW LEVEL SECURITY;

-- The key of a register in daybook.winner.
CREATE OR REPLACE FUNCTION daybook.register_key(names text[]) RETURNS bytea
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT pg_catalog.sha256(pg_catalog.convert_to(pg_catalog.to_jsonb(names)::text, 'UTF8'))
$$;

-- Sets a register to an event unless a later one has set it. Returns whether the event is its winner now, also if it
-- was before. The row stays locked until the commit, so transactions that set a register follow each other.
CREATE OR REPLACE FUNCTION daybook.wins(for_account text, event jsonb, VARIADIC names text[])
RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO daybook.winner AS w VALUES (
        for_account, daybook.register_key(names), (event ->> 'time')::timestamptz,
        substr(event ->> 'source', 10)::uuid, (event ->> 'sequence')::bigint, (event ->> 'id')::uuid)
    ON CONFLICT (account, register) DO UPDATE SET
        "time" = excluded."time", source = excluded.source, sequence = excluded.sequence,
        event = excluded.event
    -- The id for events with one LWW timestamp, which only a forked source has.
    WHERE (excluded."time", excluded.source, excluded.sequence, excluded.event)
        >= (w."time", w.source, w.sequence, w.event);
    RETURN FOUND;
END $$;

-- The event that has set a register, as JSON; NULL if none has.
CREATE OR REPLACE FUNCTION daybook.winner_of(for_account text, VARIADIC names text[]) RETURNS jsonb
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan AS $$
BEGIN
    RETURN (
        SELECT e.line::jsonb
        FROM daybook.winner w JOIN daybook.event e ON e.account = w.account AND e.id = w.event
        WHERE w.account = for_account AND w.register = daybook.register_key(names)
            AND e.account = for_account);
END $$;

-- Writes what an event sets to the project's tables. Any order of the events, and any repetition, gives the same
-- rows: each value belongs to a register, and is written only by the register's winner. A row belongs to the
-- account; the user ids in an event's data are the client's word, and choose no row.
CREATE OR REPLACE FUNCTION daybook.write_tables(for_account text, event jsonb) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    data jsonb := event -> 'data';
    city text := data ->> 'cityId';
    note text := data ->> 'noteId';
    at timestamptz := event ->> 'time';
    origin jsonb;
    content jsonb;
    changes jsonb;
BEGIN
    CASE event ->> 'type'
    WHEN 'daybook.city.saved' THEN
        IF daybook.wins(for_account, event, 'city', city) THEN
            INSERT INTO public.cities (user_id, id, saved_at) VALUES (for_account, city, at)
            ON CONFLICT (user_id, id) DO UPDATE SET saved_at = excluded.saved_at;
        END IF;
    WHEN 'daybook.city.unsaved' THEN
        IF daybook.wins(for_account, event, 'city', city) THEN
            DELETE FROM public.cities c WHERE c.user_id = for_account AND c.id = city;
        END IF;
    WHEN 'daybook.note.added', 'daybook.note.updated' THEN
        -- Else the event would win the register, and refuse the note that comes after it.
        IF data ->> 'content' IS NULL THEN
            RAISE EXCEPTION 'the note % has no content', note USING ERRCODE = '22023';
        END IF;
        IF event ->> 'type' = 'daybook.note.added' THEN
            PERFORM daybook.wins(for_account, event, 'note', note, 'origin');
        END IF;
        PERFORM daybook.wins(for_account, event, 'note', note, 'content');
        origin := daybook.winner_of(for_account, 'note', note, 'origin');
        content := daybook.winner_of(for_account, 'note', note, 'content');
        -- A change may come before its note. A deletion is final.
        IF origin IS NOT NULL
            AND daybook.winner_of(for_account, 'note', note, 'deletion') IS NULL
        THEN
            INSERT INTO public.notes (
                user_id, id, city_id, created_by, created_at, content, updated_at)
            VALUES (
                for_account, note, origin #>> '{data,cityId}', origin #>> '{data,createdBy}',
                (origin ->> 'time')::timestamptz, content #>> '{data,content}',
                (content ->> 'time')::timestamptz)
            ON CONFLICT (user_id, id) DO UPDATE SET
                city_id = excluded.city_id, created_by = excluded.created_by,
                created_at = excluded.created_at, content = excluded.content,
                updated_at = excluded.updated_at;
        END IF;
    WHEN 'daybook.note.deleted' THEN
        PERFORM daybook.wins(for_account, event, 'note', note, 'deletion');
        DELETE FROM public.notes n WHERE n.user_id = for_account AND n.id = note;
    WHEN 'daybook.preferences.updated' THEN
        SELECT pg_catalog.jsonb_object_agg(c.key, c.value) INTO changes
        FROM pg_catalog.jsonb_each(data -> 'changes') c
        WHERE daybook.wins(for_account, event, 'preferences', c.key);
        INSERT INTO public.preferences AS p (user_id, updated_at) VALUES (for_account, at)
        ON CONFLICT (user_id) DO UPDATE SET updated_at = greatest(p.updated_at, excluded.updated_at);
        UPDATE public.preferences p SET
            auto_download_enabled = coalesce(
                (changes -> 'autoDownloadEnabled')::boolean, p.auto_download_enabled),
            wifi_only_download = coalesce(
                (changes -> 'wifiOnlyDownload')::boolean, p.wifi_only_download),
            max_storage_limit = coalesce(
                (changes -> 'maxStorageLimit')::bigint, p.max_storage_limit),
            auto_sync = coalesce((changes -> 'autoSync')::boolean, p.auto_sync),
            show_stale_data_warning = coalesce(
                (changes -> 'showStaleDataWarning')::boolean, p.show_stale_data_warning),
            prune_after_days = coalesce(
                (changes -> 'pruneAfterDays')::bigint, p.prune_after_days)
        WHERE p.user_id = for_account;
    ELSE NULL;
    END CASE;
END $$;

-- Writes an event to the project's tables, or its error to daybook.refused: an error of the tables must not roll back
-- the batch, which the device would send again for ever. Errors of the moment (a deadlock, a full disk, a cancelled
-- statement) do roll it back.
CREATE OR REPLACE FUNCTION daybook.try_tables(for_account text, event_id uuid, line text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM daybook.write_tables(for_account, line::jsonb);
EXCEPTION WHEN OTHERS THEN
    IF substr(SQLSTATE, 1, 2) NOT IN ('21', '22', '23', '42', '44', '54', 'P0') THEN
        RAISE;
    END IF;
    INSERT INTO daybook.refused (account, event, code, message)
    VALUES (for_account, event_id, SQLSTATE, SQLERRM)
    ON CONFLICT (account, event) DO UPDATE SET
        code = excluded.code, message = excluded.message, refused_at = excluded.refused_at;
END $$;

-- Writes all events of an account to the project's tables: those from before the trigger, and those that were
-- refused. The lock is that of append_batch.
CREATE OR REPLACE FUNCTION daybook.fill_tables(for_account text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM FROM daybook.account a WHERE a.account = for_account FOR UPDATE;
    DELETE FROM daybook.refused r WHERE r.account = for_account;
    PERFORM daybook.try_tables(for_account, e.id, e.line)
    FROM (
        SELECT v.id, v.line FROM daybook.event v WHERE v.account = for_account ORDER BY v.serial
    ) e;
END $$;

CREATE OR REPLACE FUNCTION daybook.event_inserted() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM daybook.try_tables(NEW.account, NEW.id, NEW.line);
    RETURN NULL;
END $$;
DROP TRIGGER IF EXISTS write_tables ON daybook.event;
CREATE TRIGGER write_tables AFTER INSERT ON daybook.event
FOR EACH ROW EXECUTE FUNCTION daybook.event_inserted();

-- Erases an account's rows with the account (daybook.erase_account).
CREATE OR REPLACE FUNCTION daybook.account_erased() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    DELETE FROM public.cities c WHERE c.user_id = OLD.account;
    DELETE FROM public.notes n WHERE n.user_id = OLD.account;
    DELETE FROM public.preferences p WHERE p.user_id = OLD.account;
    DELETE FROM daybook.winner w WHERE w.account = OLD.account;
    DELETE FROM daybook.refused r WHERE r.account = OLD.account;
    RETURN NULL;
END $$;
DROP TRIGGER IF EXISTS erase_rows ON daybook.account;
CREATE TRIGGER erase_rows AFTER DELETE ON daybook.account
FOR EACH ROW EXECUTE FUNCTION daybook.account_erased();

REVOKE ALL ON daybook.winner, daybook.refused FROM PUBLIC, anon, authenticated;
REVOKE ALL ON FUNCTION
    daybook.register_key(text[]), daybook.wins(text, jsonb, text[]),
    daybook.winner_of(text, text[]), daybook.write_tables(text, jsonb),
    daybook.try_tables(text, uuid, text), daybook.fill_tables(text), daybook.event_inserted(),
    daybook.account_erased()
    FROM PUBLIC, anon, authenticated;
