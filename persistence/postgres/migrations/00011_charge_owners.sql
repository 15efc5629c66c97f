-- What dead processes had set aside is found by its owner, and deleted where it was found: charge_holds asks for one owner or for those that no
-- longer exist in one condition, for which the server walks over the whole table of holds, and once more to delete them.
-- Old writers: they call charge_holds, which does the same.
CREATE FUNCTION charge_owners(owners text[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    WITH lost AS (
        SELECT ctid FROM hold WHERE owner = ANY(owners) ORDER BY holder, scope, unit, day FOR UPDATE
    ), gone AS (
        DELETE FROM hold WHERE ctid = ANY(ARRAY(SELECT ctid FROM lost))
        RETURNING holder, scope, unit, day, n
    )
    INSERT INTO charge (key, scope, unit, day, n)
    SELECT 'lost/' || holder || '/' || unit || '/' || scope || '/' || day, scope, unit, day, n FROM gone WHERE n > 0 ON CONFLICT (key) DO NOTHING;
END
$$;
