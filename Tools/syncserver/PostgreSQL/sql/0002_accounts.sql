-- Maintenance of accounts: the last use of each, and erasure. The second migration of the schema.
-- Spec/operations/operating.md.

ALTER TABLE daybook.account ADD COLUMN last_used date NOT NULL DEFAULT current_date;

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

-- Erases all data of an account, unless it was used on or after a day. A concurrent append_events waits
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

REVOKE ALL ON FUNCTION daybook.begin_behind_erased(), daybook.erase_account(text, date)
    FROM PUBLIC;

INSERT INTO daybook.migration (number, name) VALUES (2, 'accounts');
