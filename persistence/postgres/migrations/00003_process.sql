-- Old writers: one of them has the database for itself, by the lock and the name in meta that newer ones look for and change; its rows have no owner, and
-- the next process that starts takes them.
-- The processes that work on the database. One that is not here can store nothing (see living).
CREATE TABLE process (
    id      text COLLATE "C" PRIMARY KEY,
    until   bigint  NOT NULL, -- when it counts as dead unless it beats again, by the clock of the database
    shared  boolean NOT NULL, -- it stands beside others that share
    started bigint  NOT NULL, -- by the clock of the database
    host    text    NOT NULL,
    pid     bigint  NOT NULL
);

-- living refuses the transaction unless a process is among those that work on the database, and keeps it among them until the transaction ends: who
-- buries it takes the same lock for himself. The lock comes first, and what is behind it sees all that was committed before.
CREATE FUNCTION living(name text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(hashtextextended(name, 3));
    RETURN must(EXISTS (SELECT 1 FROM process WHERE id = name), 'ZB002', 'the process is not among those that work on the database');
END
$$;

-- The process that sends a row for as long as it lives; '' is one that never lives.
ALTER TABLE outbox ADD COLUMN owner text COLLATE "C" NOT NULL DEFAULT '';
CREATE INDEX outbox_owner ON outbox (owner, channel, bot, id) WHERE state IN ('pending', 'sending');
CREATE INDEX outbox_busy ON outbox (channel, bot, surface, chat, id) WHERE state IN ('pending', 'sending');
