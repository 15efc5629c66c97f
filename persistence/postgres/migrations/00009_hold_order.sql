-- Rows of hold are locked in the order of their key, so that whoever takes over a turn and whoever charges what a dead process had set aside
-- wait for each other instead of ending in a deadlock.
-- Old writers: they call set_aside and book_holds, which do the same without the order.
CREATE FUNCTION put_aside(
    for_holder text, by_owner text, for_turn text, scopes text[], units text[], days text[], ns bigint[],
    account_scopes text[], account_units text[], account_spans text[], account_limits bigint[]
) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE own bigint; taken bigint; held bigint;
BEGIN
    IF by_owner <> '' THEN
        PERFORM 1 FROM hold WHERE holder = for_holder ORDER BY scope, unit, day FOR UPDATE;
        IF FOUND THEN
            DELETE FROM hold WHERE holder = for_holder;
        END IF;
    END IF;
    INSERT INTO hold (holder, scope, unit, day, n, owner, turn)
        SELECT for_holder, scope, unit, day, n, by_owner, for_turn FROM unnest(scopes, units, days, ns) AS a (scope, unit, day, n) WHERE n > 0;
    FOR i IN 1 .. cardinality(account_scopes) LOOP
        SELECT b.taken, b.held INTO taken, held FROM balance(for_holder, account_scopes[i], account_units[i], account_spans[i]) b;
        SELECT COALESCE(SUM(n), 0) INTO own FROM hold WHERE holder = for_holder AND scope = account_scopes[i] AND unit = account_units[i]
            AND day = ANY(days_of(account_spans[i]));
        PERFORM must(taken + held + own <= account_limits[i], 'ZB001', 'an account may have no room');
    END LOOP;
    RETURN true;
END
$$;

CREATE FUNCTION charge_holds(dead text) RETURNS void LANGUAGE sql AS $$
    WITH lost AS (
        SELECT holder, scope, unit, day FROM hold
        WHERE owner = dead OR dead = '' AND NOT EXISTS (SELECT 1 FROM process WHERE id = hold.owner)
        ORDER BY holder, scope, unit, day FOR UPDATE OF hold
    ), gone AS (
        DELETE FROM hold USING lost WHERE hold.holder = lost.holder AND hold.scope = lost.scope AND hold.unit = lost.unit AND hold.day = lost.day
        RETURNING hold.holder, hold.scope, hold.unit, hold.day, hold.n
    )
    INSERT INTO charge (key, scope, unit, day, n)
    SELECT 'lost/' || holder || '/' || unit || '/' || scope || '/' || day, scope, unit, day, n FROM gone WHERE n > 0 ON CONFLICT (key) DO NOTHING
$$;
