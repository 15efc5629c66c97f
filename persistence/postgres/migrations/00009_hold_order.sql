-- Rows of hold are locked in the order of their key, so that whoever takes over a turn and whoever charges what a dead process had set aside
-- wait for each other instead of ending in a deadlock.
-- Old writers: they call set_aside and book_holds, which do the same without the order.
--
-- put_aside is told what the Change charges to each account, too. It refuses the transaction unless each account, with what the transaction
-- adds, keeps its limit. While less than half of a limit is used, and what is asked is so little that all connections of the server together
-- cannot ask for the other half, transactions share the lock of the account, so that one that many people use does not let one after the other
-- pass: whoever has read last has read at most one half, and those that it does not see can add at most the other one. Otherwise each has the
-- lock for itself.
CREATE FUNCTION put_aside(
    for_holder text, by_owner text, for_turn text, scopes text[], units text[], days text[], ns bigint[],
    account_scopes text[], account_units text[], account_spans text[], account_limits bigint[], account_charges bigint[]
) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE asked bigint; most bigint; account bigint; its_days text[];
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
        account := hashtextextended(account_scopes[i] || ' ' || account_units[i] || ' ' || account_spans[i], 5);
        its_days := days_of(account_spans[i]);
        most := account_limits[i];
        asked := account_charges[i];
        FOR j IN 1 .. cardinality(scopes) LOOP
            IF scopes[j] = account_scopes[i] AND units[j] = account_units[i] AND days[j] = ANY(its_days) THEN
                asked := asked + ns[j];
            END IF;
        END LOOP;
        IF asked <= most / 2 / current_setting('max_connections')::bigint
            AND used_of(account_scopes[i], account_units[i], its_days) <= most / 2 THEN
            most := most / 2;
            PERFORM pg_advisory_xact_lock_shared(account);
        ELSE
            PERFORM pg_advisory_xact_lock(account);
        END IF;
        PERFORM must(used_of(account_scopes[i], account_units[i], its_days) <= most, 'ZB001', 'an account may have no room');
    END LOOP;
    RETURN true;
END
$$;

-- used_of adds up what is charged to an account and set aside of it. What was committed before it is called is seen, and what the transaction
-- itself has written; charge and hold are read by one statement, so nothing is missed while it becomes the other.
CREATE FUNCTION used_of(of_scope text, of_unit text, its_days text[]) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN (SELECT COALESCE(SUM(n), 0) FROM charge WHERE day = ANY(its_days) AND scope = of_scope AND unit = of_unit)
        + (SELECT COALESCE(SUM(n), 0) FROM usage WHERE day = ANY(its_days) AND scope = of_scope AND unit = of_unit)
        + (SELECT COALESCE(SUM(n), 0) FROM hold WHERE day = ANY(its_days) AND scope = of_scope AND unit = of_unit);
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
