-- What is set aside of scopes that have limits, for calls of models that are under way: what a dead process had set aside is charged.
-- Old writers: they do not know the table; what they charge counts, what they set aside is with Redis.
CREATE TABLE hold (
    holder text COLLATE "C" NOT NULL, -- a run of a turn
    scope  text COLLATE "C" NOT NULL,
    unit   text COLLATE "C" NOT NULL,
    day    text COLLATE "C" NOT NULL,
    n      bigint NOT NULL,
    owner  text COLLATE "C" NOT NULL, -- the process that spends it
    turn   text COLLATE "C" NOT NULL,
    PRIMARY KEY (holder, scope, unit, day)
);
CREATE INDEX hold_scope ON hold (scope, unit, day, n);
CREATE INDEX hold_owner ON hold (owner);

-- Whether a process sets aside here; one that does not does so on the counters.
ALTER TABLE process ADD COLUMN ledger boolean NOT NULL DEFAULT false;

-- days_of lists the days of a window, which is a day or a month.
CREATE FUNCTION days_of(span text) RETURNS text[] LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN length(span) > 7 THEN ARRAY[span]
        ELSE ARRAY(SELECT span || '-' || lpad(d::text, 2, '0') FROM generate_series(1, 31) d) END
$$;

-- balance locks an account until the transaction ends, and adds up what is charged to it and what others than one holder have set aside. What was
-- committed before the lock was free is seen; charge and hold are read by one statement, so nothing is missed while it becomes the other.
CREATE FUNCTION balance(for_holder text, of_scope text, of_unit text, span text, OUT taken bigint, OUT held bigint) LANGUAGE plpgsql AS $$
DECLARE days text[] := days_of(span);
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended(of_scope || ' ' || of_unit || ' ' || span, 5));
    SELECT (SELECT COALESCE(SUM(n), 0) FROM charge WHERE day = ANY(days) AND scope = of_scope AND unit = of_unit)
        + (SELECT COALESCE(SUM(n), 0) FROM usage WHERE day = ANY(days) AND scope = of_scope AND unit = of_unit),
        (SELECT COALESCE(SUM(n), 0) FROM hold WHERE scope = of_scope AND unit = of_unit AND day = ANY(days) AND holder <> for_holder)
    INTO taken, held;
END
$$;

-- balances does so for several accounts, in their order.
CREATE FUNCTION balances(for_holder text, scopes text[], units text[], spans text[])
RETURNS TABLE (at_scope text, at_unit text, at_span text, taken bigint, held bigint) LANGUAGE plpgsql AS $$
BEGIN
    FOR i IN 1 .. cardinality(scopes) LOOP
        at_scope := scopes[i]; at_unit := units[i]; at_span := spans[i];
        SELECT b.taken, b.held INTO taken, held FROM balance(for_holder, scopes[i], units[i], spans[i]) b;
        RETURN NEXT;
    END LOOP;
END
$$;

-- set_aside replaces what a holder has set aside, unless there is no owner who could spend it. It refuses the transaction if an account, which then has what the holder asks of it, passes its limit.
CREATE FUNCTION set_aside(
    for_holder text, by_owner text, for_turn text, scopes text[], units text[], days text[], ns bigint[],
    account_scopes text[], account_units text[], account_spans text[], account_limits bigint[]
) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE own bigint; taken bigint; held bigint;
BEGIN
    IF by_owner <> '' THEN
        DELETE FROM hold WHERE holder = for_holder;
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

-- book_holds charges what a process that was buried had set aside, or all that no longer exist ('').
CREATE FUNCTION book_holds(dead text) RETURNS void LANGUAGE sql AS $$
    WITH gone AS (
        DELETE FROM hold WHERE owner = dead OR dead = '' AND NOT EXISTS (SELECT 1 FROM process WHERE id = hold.owner)
        RETURNING holder, scope, unit, day, n
    )
    INSERT INTO charge (key, scope, unit, day, n)
    SELECT 'lost/' || holder || '/' || unit || '/' || scope || '/' || day, scope, unit, day, n FROM gone WHERE n > 0 ON CONFLICT (key) DO NOTHING
$$;
