-- The name of the database, and its restores from a backup, which cursors name. The third migration of the
-- schema. Spec/operations/operating.md.

-- One row: the random name that every reply has (SYNC-50). A copy of the database that serves other devices
-- needs another one.
CREATE TABLE daybook.server (
    name text COLLATE "C" NOT NULL
);
INSERT INTO daybook.server (name) VALUES (replace(gen_random_uuid()::text, '-', ''));

-- One row a restore. syncserver restored adds it.
CREATE TABLE daybook.restore (
    number integer PRIMARY KEY,
    -- Eight random hexadecimal digits.
    generation text COLLATE "C" NOT NULL,
    -- The time of the restored state, in milliseconds since 1970.
    restored_to bigint NOT NULL
);

INSERT INTO daybook.migration (number, name) VALUES (3, 'restores');
