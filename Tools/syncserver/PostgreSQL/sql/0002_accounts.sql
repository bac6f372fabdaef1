-- What looking after accounts needs: when each was used last, and how one is erased. The second step
-- of the schema. Spec/operations/operating.md.

ALTER TABLE daybook.account ADD COLUMN last_used date NOT NULL DEFAULT current_date;

-- One row: where the serials of a new account begin. Behind those of all that were erased, so that a
-- reader of an erased account that comes back misses nothing.
CREATE TABLE daybook.serial_floor (serial bigint NOT NULL);
INSERT INTO daybook.serial_floor VALUES (0);

CREATE FUNCTION daybook.begin_behind_erased() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    -- An erasure waits until this account is there, or gone: it would raise the floor behind us.
    SELECT greatest(NEW.last_serial, f.serial) INTO NEW.last_serial
    FROM daybook.serial_floor f FOR SHARE;
    RETURN NEW;
END $$;
CREATE TRIGGER begin_behind_erased BEFORE INSERT ON daybook.account
FOR EACH ROW EXECUTE FUNCTION daybook.begin_behind_erased();

-- Erases all that is known of an account, unless it was used on a day or later. Whoever takes events
-- in for it waits, and then finds none. Returns whether it was erased.
CREATE FUNCTION daybook.erase_account(for_account text, unused_since date) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    last bigint;
BEGIN
    -- First, as the trigger does: two that lock in the same order do not wait for each other.
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
