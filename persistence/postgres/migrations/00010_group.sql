-- lock_accounts locks accounts for a transaction that holds several Changes, in the order that is given and as put_aside does: shared if the
-- transaction asks for so little of an account that all connections of the server together cannot ask for half of its limit, and less than half
-- of it is used. Each of its Changes then finds the lock that it needs.
-- Old writers: they store one Change in a transaction and do not call it.
CREATE FUNCTION lock_accounts(scopes text[], units text[], spans text[], limits bigint[], asked bigint[])
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE account bigint;
BEGIN
    FOR i IN 1 .. cardinality(scopes) LOOP
        account := hashtextextended(scopes[i] || ' ' || units[i] || ' ' || spans[i], 5);
        IF asked[i] <= limits[i] / 2 / current_setting('max_connections')::bigint
            AND used_of(scopes[i], units[i], days_of(spans[i])) <= limits[i] / 2 THEN
            PERFORM pg_advisory_xact_lock_shared(account);
        ELSE
            PERFORM pg_advisory_xact_lock(account);
        END IF;
    END LOOP;
    RETURN true;
END
$$;
