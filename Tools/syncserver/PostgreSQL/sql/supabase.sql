-- What a Supabase project needs beside the numbered steps: row-level security, and the two functions
-- that apps call. Run after them, as the owner of the database; may be run again. The account is the
-- user of the JWT, never a parameter. Spec/operations/supabase.md.

-- Users read their own rows and write none: all writing goes through append_events, or serials
-- would not follow the order of commits.
ALTER TABLE daybook.migration ENABLE ROW LEVEL SECURITY;
ALTER TABLE daybook.account ENABLE ROW LEVEL SECURITY;
ALTER TABLE daybook.event ENABLE ROW LEVEL SECURITY;
ALTER TABLE daybook.note_head ENABLE ROW LEVEL SECURITY;
ALTER TABLE daybook.serial_floor ENABLE ROW LEVEL SECURITY;
REVOKE ALL ON ALL TABLES IN SCHEMA daybook FROM PUBLIC, anon, authenticated;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA daybook FROM PUBLIC, anon, authenticated;
GRANT USAGE ON SCHEMA daybook TO authenticated;
GRANT SELECT ON daybook.event TO authenticated;

-- The account on whose behalf PostgREST runs this transaction; NULL if there is none.
CREATE OR REPLACE FUNCTION daybook.current_account() RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT nullif(
        nullif(pg_catalog.current_setting('request.jwt.claims', true), '')::jsonb ->> 'sub', '')
$$;
REVOKE ALL ON FUNCTION daybook.current_account() FROM PUBLIC, anon;
GRANT EXECUTE ON FUNCTION daybook.current_account() TO authenticated;

DROP POLICY IF EXISTS own_events ON daybook.event;
CREATE POLICY own_events ON daybook.event FOR SELECT TO authenticated
    USING (account = (SELECT daybook.current_account()));

-- The string of a member, NULL where it is missing or null.
CREATE OR REPLACE FUNCTION daybook.attribute(event jsonb, name text) RETURNS text
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF coalesce(event -> name, 'null') = 'null' THEN
        RETURN NULL;
    END IF;
    IF pg_catalog.jsonb_typeof(event -> name) <> 'string' THEN
        RAISE EXCEPTION '% is not a string', name USING ERRCODE = 'DB001';
    END IF;
    IF event ->> name = '' THEN
        RAISE EXCEPTION '% is empty', name USING ERRCODE = 'DB001';
    END IF;
    RETURN event ->> name;
END $$;

-- A time as RFC 3339 writes it, cut to milliseconds.
CREATE OR REPLACE FUNCTION daybook.moment(given text) RETURNS timestamptz
LANGUAGE plpgsql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    moment timestamptz;
BEGIN
    IF given ~ ('^\d{4}-\d\d-\d\d[Tt ]([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)(\.\d+)?'
        || '([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d)$')
    THEN
        -- A leap second counts as the second before it.
        moment := (pg_catalog.regexp_replace(
            pg_catalog.regexp_replace(given, ':60', ':59'), '(\.\d{3})\d+', '\1'))::timestamptz;
        IF moment < '10000-01-01T00:00:00Z' AND moment >= '0001-01-01T00:00:00Z' THEN
            RETURN moment;
        END IF;
    END IF;
    RAISE EXCEPTION 'time is not RFC 3339 with an offset' USING ERRCODE = 'DB001';
EXCEPTION WHEN data_exception THEN
    RAISE EXCEPTION 'time is not RFC 3339 with an offset' USING ERRCODE = 'DB001';
END $$;

-- The rules of the known types (Spec/model/events.md, EVT-1 to EVT-5): subject and lane, which follow
-- from the data; no row for a type that is not known.
CREATE OR REPLACE FUNCTION daybook.known(type text, data jsonb, OUT subject text, OUT lane text)
RETURNS SETOF record
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    identifiers text[];
    name text;
    setting record;
    seen numeric;
    correct numeric;
BEGIN
    identifiers := CASE type
        WHEN 'daybook.city.saved' THEN '{userId,cityId}'
        WHEN 'daybook.city.unsaved' THEN '{userId,cityId}'
        WHEN 'daybook.note.added' THEN '{noteId,cityId,createdBy}'
        WHEN 'daybook.note.updated' THEN '{noteId,updatedBy}'
        WHEN 'daybook.note.deleted' THEN '{noteId,deletedBy}'
        WHEN 'daybook.preferences.updated' THEN '{userId}'
        WHEN 'daybook.course.activated' THEN '{userId,courseId}'
        WHEN 'daybook.lesson.completed' THEN '{userId,courseId,lessonId}'
        WHEN 'daybook.review.completed' THEN '{userId,courseId,reviewId}'
    END;
    IF identifiers IS NULL THEN
        RETURN;
    END IF;
    IF data IS NULL OR pg_catalog.jsonb_typeof(data) <> 'object' THEN
        RAISE EXCEPTION 'data is not a JSON object' USING ERRCODE = 'DB001';
    END IF;
    FOREACH name IN ARRAY identifiers LOOP
        IF pg_catalog.jsonb_typeof(data -> name) IS DISTINCT FROM 'string' THEN
            RAISE EXCEPTION 'data.% is not a string', name USING ERRCODE = 'DB001';
        END IF;
        IF data ->> name = '' THEN
            RAISE EXCEPTION 'data.% is empty', name USING ERRCODE = 'DB001';
        END IF;
    END LOOP;
    CASE type
        WHEN 'daybook.note.added', 'daybook.note.updated' THEN
            IF pg_catalog.jsonb_typeof(data -> 'content') IS DISTINCT FROM 'string' THEN
                RAISE EXCEPTION 'data.content is not a string' USING ERRCODE = 'DB001';
            END IF;
        WHEN 'daybook.lesson.completed' THEN
            FOREACH name IN ARRAY '{score,durationSeconds}'::text[] LOOP
                CONTINUE WHEN data -> name IS NULL;
                IF pg_catalog.jsonb_typeof(data -> name) <> 'number' THEN
                    RAISE EXCEPTION 'data.% is not a number', name USING ERRCODE = 'DB001';
                END IF;
                IF (data ->> name)::numeric < 0
                    OR name = 'score' AND (data ->> name)::numeric > 1
                    OR (data ->> name)::numeric > 1.7976931348623157e308
                THEN
                    RAISE EXCEPTION 'data.% is out of its range', name USING ERRCODE = 'DB001';
                END IF;
            END LOOP;
        WHEN 'daybook.review.completed' THEN
            seen := daybook.whole(data, 'itemsSeen');
            correct := daybook.whole(data, 'itemsCorrect');
            IF seen IS NULL OR correct IS NULL THEN
                RAISE EXCEPTION 'data.itemsSeen or data.itemsCorrect is missing'
                    USING ERRCODE = 'DB001';
            END IF;
            IF correct > seen THEN
                RAISE EXCEPTION 'data.itemsCorrect is more than data.itemsSeen'
                    USING ERRCODE = 'DB001';
            END IF;
        WHEN 'daybook.preferences.updated' THEN
            IF pg_catalog.jsonb_typeof(data -> 'changes') IS DISTINCT FROM 'object'
                OR data -> 'changes' = '{}'
            THEN
                RAISE EXCEPTION 'data.changes changes nothing' USING ERRCODE = 'DB001';
            END IF;
            FOR setting IN SELECT * FROM pg_catalog.jsonb_each(data -> 'changes') LOOP
                IF setting.key IN (
                    'autoDownloadEnabled', 'wifiOnlyDownload', 'autoSync', 'showStaleDataWarning')
                THEN
                    IF pg_catalog.jsonb_typeof(setting.value) <> 'boolean' THEN
                        RAISE EXCEPTION 'data.changes.% is neither true nor false', setting.key
                            USING ERRCODE = 'DB001';
                    END IF;
                ELSIF setting.key IN ('maxStorageLimit', 'pruneAfterDays') THEN
                    PERFORM daybook.whole(data -> 'changes', setting.key);
                ELSE
                    RAISE EXCEPTION 'data.changes names an unknown setting'
                        USING ERRCODE = 'DB001';
                END IF;
            END LOOP;
        ELSE NULL;
    END CASE;
    subject := data ->> CASE
        WHEN type LIKE 'daybook.city.%' THEN 'cityId'
        WHEN type LIKE 'daybook.note.%' THEN 'noteId'
        WHEN type = 'daybook.lesson.completed' THEN 'lessonId'
        WHEN type = 'daybook.review.completed' THEN 'reviewId'
        ELSE 'userId'
    END;
    lane := pg_catalog.split_part(type, '.', 2)
        || CASE WHEN type LIKE 'daybook.note.%' THEN '' ELSE ':' || (data ->> 'userId') END
        || CASE
            WHEN type IN ('daybook.preferences.updated', 'daybook.course.activated') THEN ''
            ELSE ':' || subject
        END;
    RETURN NEXT;
END $$;

-- Whether a type of the catalogue stays on the device (Spec/model/events.md, EVT-7 and EVT-8). The list is
-- that of the catalogue: a test compares them.
CREATE OR REPLACE FUNCTION daybook.stays_on_device(type text) RETURNS boolean
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT type IN (
        'daybook.album.linked', 'daybook.album.removed', 'daybook.album.stored',
        'daybook.album.unlinked', 'daybook.asset.removed', 'daybook.asset.stored',
        'daybook.backupalbum.removed', 'daybook.backupalbum.stored', 'daybook.cities.listed',
        'daybook.city.accessed', 'daybook.city.cached', 'daybook.city.removed',
        'daybook.combination.selected', 'daybook.content.removed', 'daybook.content.updated',
        'daybook.content.used', 'daybook.courses.listed', 'daybook.deviceasset.removed',
        'daybook.deviceasset.stored', 'daybook.download.cancelled', 'daybook.download.completed',
        'daybook.download.failed', 'daybook.download.paused', 'daybook.download.queued',
        'daybook.download.removed', 'daybook.download.started', 'daybook.duplicate.removed',
        'daybook.duplicate.stored', 'daybook.etag.removed', 'daybook.etag.stored',
        'daybook.image.accessed', 'daybook.image.cached', 'daybook.image.removed',
        'daybook.images.cleared', 'daybook.languages.listed', 'daybook.lesson.removed',
        'daybook.lesson.stored', 'daybook.page.removed', 'daybook.page.stored',
        'daybook.resource.removed', 'daybook.resource.stored', 'daybook.review.removed',
        'daybook.review.stored', 'daybook.setting.deleted', 'daybook.setting.put',
        'daybook.sync.discarded', 'daybook.sync.pulled', 'daybook.sync.reinstated',
        'daybook.sync.settled', 'daybook.user.stored', 'daybook.vocabulary.cached'
    )
$$;

-- A member that is a whole number from 0 to 2^63 - 1; NULL where it is missing.
CREATE OR REPLACE FUNCTION daybook.whole(data jsonb, name text) RETURNS numeric
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    number numeric;
BEGIN
    IF data -> name IS NULL THEN
        RETURN NULL;
    END IF;
    IF pg_catalog.jsonb_typeof(data -> name) <> 'number' THEN
        RAISE EXCEPTION 'data.% is not a number', name USING ERRCODE = 'DB001';
    END IF;
    number := data ->> name;
    IF number < 0 OR number > 9223372036854775807 OR number <> pg_catalog.trunc(number) THEN
        RAISE EXCEPTION 'data.% is not a whole number from 0 on', name USING ERRCODE = 'DB001';
    END IF;
    RETURN number;
END $$;

-- One element of a posted batch as daybook.append_events takes it: what syncserver's BatchReader
-- does before it. jsonb has dropped all but the last of members with one name.
CREATE OR REPLACE FUNCTION daybook.received(event jsonb, now timestamptz) RETURNS jsonb
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    id text := pg_catalog.lower(event ->> 'id');
    source text;
    number text;
    type text;
    subject text;
    given_lane text;
    given_time text;
    lane text;
    at timestamptz;
    member record;
    rule record;
    line text;
    result jsonb;
BEGIN
    lane := coalesce(event ->> 'partitionkey', event ->> 'subject', event ->> 'type', '');
    result := pg_catalog.jsonb_build_object('id', id, 'lane', lane);

    IF event -> 'specversion' IS DISTINCT FROM '"1.0"' THEN
        RAISE EXCEPTION 'specversion is not "1.0"' USING ERRCODE = 'DB001';
    END IF;
    IF id !~ '^.{14}4.{4}[89ab]' THEN
        RAISE EXCEPTION 'id is not a UUID of version 4' USING ERRCODE = 'DB001';
    END IF;
    source := pg_catalog.lower(daybook.attribute(event, 'source'));
    IF source IS NULL
        OR source !~ '^urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'
    THEN
        RAISE EXCEPTION 'source is not urn:uuid: and a UUID' USING ERRCODE = 'DB001';
    END IF;
    number := daybook.attribute(event, 'sequence');
    IF number IS NULL OR number !~ '^[0-9]{1,20}$'
        OR number::numeric NOT BETWEEN 1 AND 9223372036854775807
    THEN
        RAISE EXCEPTION 'sequence is not a decimal number from 1 on' USING ERRCODE = 'DB001';
    END IF;
    type := daybook.attribute(event, 'type');
    IF type IS NULL THEN
        RAISE EXCEPTION 'type is missing' USING ERRCODE = 'DB001';
    END IF;
    subject := daybook.attribute(event, 'subject');
    given_lane := daybook.attribute(event, 'partitionkey');
    given_time := daybook.attribute(event, 'time');
    at := coalesce(
        daybook.moment(given_time), pg_catalog.date_trunc('milliseconds', now));
    FOR member IN SELECT * FROM pg_catalog.jsonb_each(event) LOOP
        CONTINUE WHEN member.key IN ('data', 'data_base64');
        IF member.key !~ '^[a-z0-9]{1,20}$' THEN
            RAISE EXCEPTION 'an attribute''s name is not [a-z0-9], at most 20 characters'
                USING ERRCODE = 'DB001';
        END IF;
        IF pg_catalog.jsonb_typeof(member.value) IN ('object', 'array') THEN
            RAISE EXCEPTION '% is neither a string, a number nor a truth value', member.key
                USING ERRCODE = 'DB001';
        END IF;
    END LOOP;
    IF event ? 'data_base64' AND event -> 'data_base64' <> 'null' THEN
        IF event ? 'data' THEN
            RAISE EXCEPTION 'data and data_base64 exclude each other' USING ERRCODE = 'DB001';
        END IF;
        IF pg_catalog.jsonb_typeof(event -> 'data_base64') <> 'string' THEN
            RAISE EXCEPTION 'data_base64 is not a string' USING ERRCODE = 'DB001';
        END IF;
        PERFORM pg_catalog.decode(event ->> 'data_base64', 'base64');
    END IF;
    -- A batch has at most 64 levels (SYNC-6). Two are its array and the event.
    IF pg_catalog.jsonb_path_exists(
        event, 'strict $.**{63 to last} ? (@.type() == "object" || @.type() == "array")')
    THEN
        RAISE EXCEPTION 'it is nested too deeply' USING ERRCODE = 'DB001';
    END IF;

    SELECT * INTO rule FROM daybook.known(type, event -> 'data');
    IF FOUND THEN
        IF subject <> rule.subject THEN
            RAISE EXCEPTION 'the subject is not the entity that the data name'
                USING ERRCODE = 'DB001';
        END IF;
        subject := rule.subject;
        lane := rule.lane;
    ELSE
        lane := coalesce(given_lane, subject, type);
    END IF;

    -- The line in the order of Spec/format/line.md.
    line := pg_catalog.format(
        '{"specversion":"1.0","id":"%s","source":"%s","sequence":"%s","type":%s%s'
            || ',"partitionkey":%s,"time":"%s"',
        id, source, pg_catalog.lpad(pg_catalog.ltrim(number, '0'), 20, '0'),
        pg_catalog.to_json(type),
        CASE WHEN subject IS NULL THEN '' ELSE ',"subject":' || pg_catalog.to_json(subject) END,
        pg_catalog.to_json(lane),
        pg_catalog.to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'));
    FOR member IN
        SELECT m.key, m.value FROM pg_catalog.jsonb_each(event) m
        WHERE m.key NOT IN (
                'specversion', 'id', 'source', 'sequence', 'position', 'type', 'subject',
                'partitionkey', 'time', 'data')
            AND m.value <> 'null'
            AND NOT (m.key = 'datacontenttype' AND m.value = '"application/json"')
        ORDER BY m.key IN ('datacontenttype', 'data_base64'), m.key DESC
    LOOP
        line := line || ',"' || member.key || '":' || member.value;
    END LOOP;
    IF event ? 'data' THEN
        line := line || ',"data":' || (event -> 'data');
    END IF;
    line := line || '}';
    IF octet_length(line) > 262144 THEN
        RETURN result || pg_catalog.jsonb_build_object(
            'code', 'too_large',
            'detail', 'the event has more than 262144 bytes');
    END IF;

    RETURN result || pg_catalog.jsonb_build_object(
        'lane', lane, 'line', line, 'source', pg_catalog.substr(source, 10),
        'sequence', number::numeric,
        'time', pg_catalog.floor(extract(epoch FROM at) * 1000),
        'lane_given', given_lane IS NOT NULL, 'time_given', given_time IS NOT NULL)
        -- With the line: what was taken in before this rule is a duplicate all the same.
        || CASE
            WHEN daybook.stays_on_device(type) THEN pg_catalog.jsonb_build_object(
                'code', 'invalid_event',
                'detail', type || ' says what a device holds: it is not sent to a server')
            ELSE '{}'
        END
        || CASE
            WHEN type IN ('daybook.note.added', 'daybook.note.updated', 'daybook.note.deleted')
            THEN pg_catalog.jsonb_strip_nulls(pg_catalog.jsonb_build_object(
                'note', pg_catalog.encode(pg_catalog.convert_to(subject, 'UTF8'), 'hex'),
                'base', CASE
                    WHEN type <> 'daybook.note.added'
                        AND pg_catalog.jsonb_typeof(event -> 'baseid') = 'string'
                    THEN pg_catalog.lower(event ->> 'baseid')
                END,
                'deletes', type = 'daybook.note.deleted'))
            ELSE '{}'
        END;
EXCEPTION
    WHEN SQLSTATE 'DB001' THEN
        RETURN result || pg_catalog.jsonb_build_object('code', 'invalid_event', 'detail', SQLERRM);
    WHEN data_exception THEN
        RETURN result || pg_catalog.jsonb_build_object(
            'code', 'invalid_event', 'detail', 'a value is out of its range');
END $$;

-- The account of the caller.
CREATE OR REPLACE FUNCTION daybook.require_account() RETURNS text
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF daybook.current_account() IS NULL THEN
        RAISE EXCEPTION 'there is no user' USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN daybook.current_account();
END $$;

-- Takes in a batch of CloudEvents; the answer is that of SYNC-20.
CREATE OR REPLACE FUNCTION public.append_events(events jsonb) RETURNS json
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    owner text := daybook.require_account();
    answer json;
BEGIN
    IF events IS NULL OR pg_catalog.jsonb_typeof(events) <> 'array' THEN
        RAISE EXCEPTION 'a batch is a JSON array' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    -- PostgREST answers with the status that stands in the code.
    IF pg_catalog.jsonb_array_length(events) > 500
        OR pg_catalog.pg_column_size(events) > 4194304
    THEN
        RAISE EXCEPTION 'the batch has more than 500 events or too many bytes'
            USING ERRCODE = 'PT413';
    END IF;
    -- 1e131071 is nine bytes here and 131,072 as text: looked for before anything is written out.
    IF (
        SELECT coalesce(pg_catalog.bool_or(abs(v) >= 1e1000 OR scale(v) > 1000), false)
            OR pg_catalog.count(*) > 500
        FROM (
            SELECT n::numeric FROM pg_catalog.jsonb_path_query(
                events, 'strict $.** ? (@.type() == "number")') n) numbers (v)
        WHERE abs(v) >= 1e100 OR scale(v) > 100)
    THEN
        RAISE EXCEPTION 'a number is out of range' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF octet_length(events::text) > 1310720 THEN
        RAISE EXCEPTION 'the batch has too many bytes' USING ERRCODE = 'PT413';
    END IF;
    IF EXISTS (
        SELECT FROM pg_catalog.jsonb_array_elements(events) e
        WHERE pg_catalog.jsonb_typeof(e) <> 'object'
            OR coalesce(e ->> 'id', '') !~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$')
    THEN
        RAISE EXCEPTION 'an element has no id that is a UUID'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    SELECT pg_catalog.json_build_object('verdicts', coalesce(
        pg_catalog.json_agg(
            ('{"id":"' || v.id || '","status":"' || v.status || '"'
                || coalesce(',"code":"' || v.code || '"', '')
                || coalesce(',"detail":' || pg_catalog.to_json(v.detail), '')
                || coalesce(',"current":' || v.current, '') || '}')::json
            ORDER BY v.ordinality),
        '[]'))
    INTO answer
    FROM daybook.append_events(owner, (
        SELECT coalesce(pg_catalog.jsonb_agg(
            daybook.received(e.value, pg_catalog.now()) ORDER BY e.ordinality), '[]')
        FROM pg_catalog.jsonb_array_elements(events) WITH ORDINALITY e))
        WITH ORDINALITY v;
    RETURN answer;
END $$;

-- A page of the caller's events in the server's order, and the cursor behind it.
CREATE OR REPLACE FUNCTION public.read_events(after text, max integer) RETURNS json
LANGUAGE plpgsql SECURITY DEFINER STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    owner text := daybook.require_account();
    place bigint := 0;
    events text;
BEGIN
    IF after IS NOT NULL THEN
        IF after !~ '^a[0-9]{1,19}$'
            OR pg_catalog.substr(after, 2)::numeric > 9223372036854775807
        THEN
            RAISE EXCEPTION 'after is not a cursor' USING ERRCODE = 'invalid_parameter_value';
        END IF;
        place := pg_catalog.substr(after, 2);
    END IF;
    SELECT pg_catalog.string_agg(e.line, ',' ORDER BY e.serial), coalesce(
        pg_catalog.max(e.serial), place)
    INTO events, place
    FROM daybook.read_events(
        owner, NULL, 0, place, least(greatest(coalesce(max, 500), 1), 500)) e;
    RETURN '{"next":"a' || place || '","events":[' || coalesce(events, '') || ']}';
END $$;

REVOKE ALL ON FUNCTION
    daybook.attribute(jsonb, text), daybook.moment(text), daybook.known(text, jsonb),
    daybook.stays_on_device(text), daybook.whole(jsonb, text),
    daybook.received(jsonb, timestamptz), daybook.require_account()
    FROM PUBLIC, anon, authenticated;
REVOKE ALL ON FUNCTION public.append_events(jsonb), public.read_events(text, integer)
    FROM PUBLIC, anon;
GRANT EXECUTE ON FUNCTION public.append_events(jsonb), public.read_events(text, integer)
    TO authenticated;
