-- What looking after accounts needs: when each was used last, and how one is erased. The second step
-- of the schema. Spec/operating.md.

ALTER TABLE daybook.account ADD COLUMN last_used date NOT NULL DEFAULT current_date;

-- One row: where the serials of a new account begin. Behind those of all that were erased, so that a
-- reader of an erased account that comes back misses nothing.
CREATE TABLE daybook.serial_floor (serial bigint NOT NULL);
INSERT INTO daybook.serial_floor VALUES (0);

CREATE FUNCTION daybook.begin_behind_erased() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = '' AS $$
BEGIN
    SELECT greatest(NEW.last_serial, f.serial) INTO NEW.last_serial FROM daybook.serial_floor f;
    RETURN NEW;
END $$;
CREATE TRIGGER begin_behind_erased BEFORE INSERT ON daybook.account
FOR EACH ROW EXECUTE FUNCTION daybook.begin_behind_erased();

-- Erases all that is known of an account. Whoever takes events in for it waits, and then finds none.
CREATE FUNCTION daybook.erase_account(for_account text) RETURNS void
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    last bigint;
BEGIN
    SELECT a.last_serial INTO last FROM daybook.account a
    WHERE a.account = for_account FOR UPDATE;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    DELETE FROM daybook.event v WHERE v.account = for_account;
    DELETE FROM daybook.note_head h WHERE h.account = for_account;
    UPDATE daybook.serial_floor SET serial = greatest(serial, last);
    DELETE FROM daybook.account a WHERE a.account = for_account;
END $$;

REVOKE ALL ON FUNCTION daybook.begin_behind_erased(), daybook.erase_account(text) FROM PUBLIC;

INSERT INTO daybook.migration (number, name) VALUES (2, 'accounts');
