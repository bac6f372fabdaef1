-- The restores of the database from a backup, which cursors name. The third migration of the schema.
-- Spec/operations/operating.md.

-- One row a restore. syncserver restored adds it.
CREATE TABLE daybook.restore (
    number integer PRIMARY KEY,
    -- Eight random hexadecimal digits.
    generation text COLLATE "C" NOT NULL,
    -- The time of the restored state, in milliseconds since 1970.
    restored_to bigint NOT NULL
);

INSERT INTO daybook.migration (number, name) VALUES (3, 'restores');
