-- The additions of a Supabase project to the numbered migrations: row-level security, and the two functions
-- that apps call. Run after them, as the owner of the database; may be run again. The account is the
-- user of the JWT, never a parameter. Spec/operations/supabase.md.

-- The known event types: the rules of their data, as EventSchema of the library encodes them, or NULL for a
-- type that stays on the device. An app adds its own (Spec/operations/supabase.md, SUP-11).
CREATE TABLE IF NOT EXISTS daybook.event_type (type text PRIMARY KEY, schema jsonb);

-- Users read their own rows and write none: all writes go through append_events, so that serials follow
-- the order of commits.
ALTER TABLE daybook.migration ENABLE ROW LEVEL SECURITY;
ALTER TABLE daybook.account ENABLE ROW LEVEL SECURITY;
ALTER TABLE daybook.event ENABLE ROW LEVEL SECURITY;
ALTER TABLE daybook.note_head ENABLE ROW LEVEL SECURITY;
ALTER TABLE daybook.serial_floor ENABLE ROW LEVEL SECURITY;
ALTER TABLE daybook.event_type ENABLE ROW LEVEL SECURITY;
ALTER TABLE daybook.server ENABLE ROW LEVEL SECURITY;
ALTER TABLE daybook.restore ENABLE ROW LEVEL SECURITY;
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

-- The string of a member; NULL if it is missing or null.
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

-- Parses a time of RFC 3339, truncated to milliseconds.
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

-- The catalogue of the library, written by a test of it (EVT-18). Begins:
INSERT INTO daybook.event_type (type, schema) VALUES
    ('daybook.album.linked', NULL),
    ('daybook.album.removed', NULL),
    ('daybook.album.stored', NULL),
    ('daybook.album.unlinked', NULL),
    ('daybook.asset.removed', NULL),
    ('daybook.asset.stored', NULL),
    ('daybook.backupalbum.removed', NULL),
    ('daybook.backupalbum.stored', NULL),
    ('daybook.cities.listed', NULL),
    ('daybook.city.accessed', NULL),
    ('daybook.city.cached', NULL),
    ('daybook.city.removed', NULL),
    ('daybook.city.saved', '{"subject":["","cityId"],"lane":["city:","userId",":","cityId"],"members":[{"name":"userId","kind":"identifier"},{"name":"cityId","kind":"identifier"}]}'),
    ('daybook.city.unsaved', '{"subject":["","cityId"],"lane":["city:","userId",":","cityId"],"members":[{"name":"userId","kind":"identifier"},{"name":"cityId","kind":"identifier"}]}'),
    ('daybook.combination.selected', NULL),
    ('daybook.content.removed', NULL),
    ('daybook.content.updated', NULL),
    ('daybook.content.used', NULL),
    ('daybook.course.activated', '{"subject":["","userId"],"lane":["course:","userId"],"members":[{"name":"userId","kind":"identifier"},{"name":"courseId","kind":"identifier"}]}'),
    ('daybook.courses.listed', NULL),
    ('daybook.deviceasset.removed', NULL),
    ('daybook.deviceasset.stored', NULL),
    ('daybook.download.cancelled', NULL),
    ('daybook.download.completed', NULL),
    ('daybook.download.failed', NULL),
    ('daybook.download.paused', NULL),
    ('daybook.download.queued', NULL),
    ('daybook.download.removed', NULL),
    ('daybook.download.started', NULL),
    ('daybook.duplicate.removed', NULL),
    ('daybook.duplicate.stored', NULL),
    ('daybook.etag.removed', NULL),
    ('daybook.etag.stored', NULL),
    ('daybook.image.accessed', NULL),
    ('daybook.image.cached', NULL),
    ('daybook.image.removed', NULL),
    ('daybook.images.cleared', NULL),
    ('daybook.languages.listed', NULL),
    ('daybook.lesson.completed', '{"subject":["","lessonId"],"lane":["lesson:","userId",":","lessonId"],"members":[{"name":"userId","kind":"identifier"},{"name":"courseId","kind":"identifier"},{"name":"lessonId","kind":"identifier"},{"name":"score","optional":true,"kind":"number","min":0.0,"max":1.0},{"name":"durationSeconds","optional":true,"kind":"number","min":0.0}]}'),
    ('daybook.lesson.removed', NULL),
    ('daybook.lesson.stored', NULL),
    ('daybook.note.added', '{"subject":["","noteId"],"lane":["note:","noteId"],"members":[{"name":"noteId","kind":"identifier"},{"name":"cityId","kind":"identifier"},{"name":"content","kind":"text"},{"name":"createdBy","kind":"identifier"}]}'),
    ('daybook.note.deleted', '{"subject":["","noteId"],"lane":["note:","noteId"],"members":[{"name":"noteId","kind":"identifier"},{"name":"deletedBy","kind":"identifier"}]}'),
    ('daybook.note.updated', '{"subject":["","noteId"],"lane":["note:","noteId"],"members":[{"name":"noteId","kind":"identifier"},{"name":"content","kind":"text"},{"name":"updatedBy","kind":"identifier"}]}'),
    ('daybook.page.removed', NULL),
    ('daybook.page.stored', NULL),
    ('daybook.preferences.updated', '{"subject":["","userId"],"lane":["preferences:","userId"],"members":[{"name":"userId","kind":"identifier"},{"name":"changes","kind":"object","change":true,"members":[{"name":"autoDownloadEnabled","optional":true,"kind":"flag"},{"name":"wifiOnlyDownload","optional":true,"kind":"flag"},{"name":"maxStorageLimit","optional":true,"kind":"count"},{"name":"autoSync","optional":true,"kind":"flag"},{"name":"showStaleDataWarning","optional":true,"kind":"flag"},{"name":"pruneAfterDays","optional":true,"kind":"count"}]}]}'),
    ('daybook.resource.removed', NULL),
    ('daybook.resource.stored', NULL),
    ('daybook.review.completed', '{"subject":["","reviewId"],"lane":["review:","userId",":","reviewId"],"members":[{"name":"userId","kind":"identifier"},{"name":"courseId","optional":true,"kind":"identifier"},{"name":"reviewId","kind":"identifier"},{"name":"itemsSeen","kind":"count"},{"name":"itemsCorrect","kind":"count"}],"rules":[["atMost","itemsCorrect","itemsSeen"]]}'),
    ('daybook.review.removed', NULL),
    ('daybook.review.stored', NULL),
    ('daybook.setting.deleted', NULL),
    ('daybook.setting.put', NULL),
    ('daybook.sync.discarded', NULL),
    ('daybook.sync.pulled', NULL),
    ('daybook.sync.reinstated', NULL),
    ('daybook.sync.requested', NULL),
    ('daybook.sync.settled', NULL),
    ('daybook.user.stored', NULL),
    ('daybook.vocabulary.cached', NULL)
ON CONFLICT (type) DO UPDATE SET schema = EXCLUDED.schema;
-- Ends.

-- Checks a member of an event's data, or an element of a list (Spec/model/events.md, EVT-1).
CREATE OR REPLACE FUNCTION daybook.check_member(path text, value jsonb, schema jsonb) RETURNS void
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    kind text := schema ->> 'kind';
    expected text := CASE
        WHEN kind IN ('identifier', 'text', 'nonEmptyText', 'choice') THEN 'string'
        WHEN kind IN ('count', 'number') THEN 'number'
        WHEN kind = 'flag' THEN 'boolean'
        WHEN kind = 'list' THEN 'array'
        ELSE 'object'
    END;
    number numeric;
    element record;
BEGIN
    IF pg_catalog.jsonb_typeof(value) <> expected THEN
        RAISE EXCEPTION '% is not %', path,
            CASE expected
                WHEN 'boolean' THEN 'true or false'
                WHEN 'array' THEN 'an array'
                WHEN 'object' THEN 'a JSON object'
                ELSE 'a ' || expected
            END
            USING ERRCODE = 'DB001';
    END IF;
    IF kind IN ('identifier', 'nonEmptyText') AND value = '""' THEN
        RAISE EXCEPTION '% is empty', path USING ERRCODE = 'DB001';
    END IF;
    IF kind = 'choice' AND NOT schema -> 'choices' @> value THEN
        RAISE EXCEPTION '% is none of %', path, schema -> 'choices' USING ERRCODE = 'DB001';
    END IF;
    IF expected = 'number' THEN
        number := value #>> '{}';
        IF kind = 'count'
            AND (number < 0 OR number > 9223372036854775807 OR number <> pg_catalog.trunc(number))
        THEN
            RAISE EXCEPTION '% is not a whole number from 0 on', path USING ERRCODE = 'DB001';
        END IF;
        IF pg_catalog.abs(number) > 1.7976931348623157e308
            OR number < (schema ->> 'min')::numeric OR number > (schema ->> 'max')::numeric
        THEN
            RAISE EXCEPTION '% is out of its range', path USING ERRCODE = 'DB001';
        END IF;
    END IF;
    IF kind = 'object' THEN
        PERFORM daybook.check_object(path, value, schema);
    END IF;
    IF kind = 'list' THEN
        IF pg_catalog.jsonb_array_length(value) < (schema ->> 'min')::numeric
            OR pg_catalog.jsonb_array_length(value) > (schema ->> 'max')::numeric
        THEN
            RAISE EXCEPTION '% has too few or too many elements', path USING ERRCODE = 'DB001';
        END IF;
        FOR element IN
            SELECT e.value, e.ordinality - 1 AS index
            FROM pg_catalog.jsonb_array_elements(value) WITH ORDINALITY e
        LOOP
            PERFORM daybook.check_member(
                pg_catalog.format('%s[%s]', path, element.index), element.value,
                schema -> 'element');
        END LOOP;
        IF schema ? 'unique'
            AND (SELECT pg_catalog.count(*) <> pg_catalog.count(DISTINCT e.value -> (schema ->> 'unique'))
                FROM pg_catalog.jsonb_array_elements(value) e)
        THEN
            RAISE EXCEPTION '% has two elements with the same %', path, schema ->> 'unique'
                USING ERRCODE = 'DB001';
        END IF;
    END IF;
END $$;

-- Checks an object against its declared members and the rules about several of them.
CREATE OR REPLACE FUNCTION daybook.check_object(path text, object jsonb, schema jsonb) RETURNS void
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    member jsonb;
    name text;
    rule jsonb;
    is_met boolean;
BEGIN
    IF schema ? 'change' THEN
        IF object = '{}' THEN
            RAISE EXCEPTION '% changes nothing', path USING ERRCODE = 'DB001';
        END IF;
        FOR name IN SELECT pg_catalog.jsonb_object_keys(object) LOOP
            IF NOT EXISTS (
                SELECT FROM pg_catalog.jsonb_array_elements(schema -> 'members') m
                WHERE m.value ->> 'name' = name)
            THEN
                RAISE EXCEPTION '% has a member that is not known, %', path, name
                    USING ERRCODE = 'DB001';
            END IF;
        END LOOP;
    END IF;
    FOR member IN
        SELECT m.value FROM pg_catalog.jsonb_array_elements(schema -> 'members') m
    LOOP
        name := member ->> 'name';
        IF object ? name THEN
            PERFORM daybook.check_member(path || '.' || name, object -> name, member);
        ELSIF NOT member ? 'optional' THEN
            RAISE EXCEPTION '%.% is missing', path, name USING ERRCODE = 'DB001';
        END IF;
    END LOOP;
    FOR rule IN SELECT r.value FROM pg_catalog.jsonb_array_elements(schema -> 'rules') r LOOP
        is_met := CASE rule ->> 0
            WHEN 'atMost' THEN
                coalesce((object ->> (rule ->> 1))::numeric <= (object ->> (rule ->> 2))::numeric, true)
            WHEN 'atLeastOne' THEN EXISTS (
                SELECT FROM pg_catalog.jsonb_array_elements_text(rule - 0) n
                WHERE object -> n.value <> '[]')
            WHEN 'requiredWhere' THEN
                object ->> (rule ->> 1) IS DISTINCT FROM rule ->> 2 OR object ? (rule ->> 3)
        END;
        IF NOT is_met THEN
            RAISE EXCEPTION '% breaks the rule %', path, rule USING ERRCODE = 'DB001';
        END IF;
    END LOOP;
END $$;

-- Builds a subject or a lane from parts, in which texts and the names of members alternate.
CREATE OR REPLACE FUNCTION daybook.joined(parts jsonb, data jsonb) RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT pg_catalog.string_agg(
        CASE ordinality % 2 WHEN 1 THEN part ELSE data ->> part END, '' ORDER BY ordinality)
    FROM pg_catalog.jsonb_array_elements_text(parts) WITH ORDINALITY p (part, ordinality)
$$;

-- Converts an element of a posted batch into an argument of daybook.append_events, as syncserver's
-- BatchReader does. Of members with one name, jsonb keeps only the last.
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
    known daybook.event_type;
    named text;
    line text;
    result jsonb;
BEGIN
    lane := coalesce(event ->> 'partitionkey', event ->> 'subject', event ->> 'type', '');
    result := pg_catalog.jsonb_build_object('id', id, 'lane', lane);

    IF event -> 'specversion' IS DISTINCT FROM '"1.0"' THEN
        RAISE EXCEPTION 'specversion is not "1.0"' USING ERRCODE = 'DB001';
    END IF;
    IF id !~ '^.{14}[1-8].{4}[89ab]' THEN
        RAISE EXCEPTION 'id is not a UUID (RFC 9562, versions 1 to 8)' USING ERRCODE = 'DB001';
    END IF;
    IF event ->> 'type' LIKE 'daybook.%' AND id !~ '^.{14}4' THEN
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
    -- A batch has at most 64 levels (SYNC-6), of which two are its array and the event.
    IF pg_catalog.jsonb_path_exists(
        event, 'strict $.**{63 to last} ? (@.type() == "object" || @.type() == "array")')
    THEN
        RAISE EXCEPTION 'it is nested too deeply' USING ERRCODE = 'DB001';
    END IF;

    SELECT * INTO known FROM daybook.event_type k WHERE k.type = event ->> 'type';
    IF known.schema IS NULL THEN
        lane := coalesce(given_lane, subject, type);
    ELSE
        IF coalesce(pg_catalog.jsonb_typeof(event -> 'data'), '') <> 'object' THEN
            RAISE EXCEPTION 'data is not a JSON object' USING ERRCODE = 'DB001';
        END IF;
        PERFORM daybook.check_object('data', event -> 'data', known.schema);
        named := daybook.joined(known.schema -> 'subject', event -> 'data');
        IF subject IS NOT NULL AND subject IS DISTINCT FROM named THEN
            RAISE EXCEPTION 'the subject is not the entity that the data name'
                USING ERRCODE = 'DB001';
        END IF;
        subject := named;
        lane := coalesce(daybook.joined(known.schema -> 'lane', event -> 'data'), subject, type);
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
        -- With the line: an event that was stored before its type had the rule is still a duplicate.
        || CASE
            WHEN known.type IS NOT NULL AND known.schema IS NULL THEN pg_catalog.jsonb_build_object(
                'code', 'invalid_event',
                'detail', type || ' stays on its device: it is not sent to a server')
            ELSE '{}'
        END
        || CASE
            WHEN type IN ('daybook.note.added', 'daybook.note.updated', 'daybook.note.deleted')
            THEN pg_catalog.jsonb_strip_nulls(pg_catalog.jsonb_build_object(
                'note', pg_catalog.encode(pg_catalog.convert_to(subject, 'UTF8'), 'hex'),
                'base', CASE
                    WHEN pg_catalog.jsonb_typeof(event -> 'baseid') = 'string'
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

-- Applies a batch of CloudEvents; the answer is that of SYNC-20. Offered events are stored whatever they are based
-- on (SYNC-52).
CREATE OR REPLACE FUNCTION public.append_events(events jsonb, offered boolean DEFAULT false) RETURNS json
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    owner text := daybook.require_account();
    answer json;
BEGIN
    IF events IS NULL OR pg_catalog.jsonb_typeof(events) <> 'array' THEN
        RAISE EXCEPTION 'a batch is a JSON array' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    -- PostgREST answers with the status in the code.
    IF pg_catalog.jsonb_array_length(events) > 500
        OR pg_catalog.pg_column_size(events) > 4194304
    THEN
        RAISE EXCEPTION 'the batch has more than 500 events or too many bytes'
            USING ERRCODE = 'PT413';
    END IF;
    -- 1e131071 has nine bytes here and 131,072 as text: checked before any number is converted to text.
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
            daybook.received(e.value, pg_catalog.now()) - CASE WHEN offered THEN 'base' ELSE '' END
            ORDER BY e.ordinality), '[]')
        FROM pg_catalog.jsonb_array_elements(events) WITH ORDINALITY e))
        WITH ORDINALITY v;
    RETURN answer;
END $$;

-- A page of the caller's events in the server's order, and the cursor after it.
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
    daybook.attribute(jsonb, text), daybook.moment(text),
    daybook.check_member(text, jsonb, jsonb), daybook.check_object(text, jsonb, jsonb),
    daybook.joined(jsonb, jsonb), daybook.received(jsonb, timestamptz), daybook.require_account()
    FROM PUBLIC, anon, authenticated;
REVOKE ALL ON FUNCTION public.append_events(jsonb, boolean), public.read_events(text, integer)
    FROM PUBLIC, anon;
GRANT EXECUTE ON FUNCTION public.append_events(jsonb, boolean), public.read_events(text, integer)
    TO authenticated;
