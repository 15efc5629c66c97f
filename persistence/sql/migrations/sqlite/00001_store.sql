-- Times are nanoseconds since 1970 (UTC), 0 = none. Flags are 0 or 1. Indexes cover open work only, so that finished rows cost nothing.

-- +goose Up
CREATE TABLE inbox (
    seq      INTEGER PRIMARY KEY AUTOINCREMENT,
    channel  TEXT    NOT NULL,
    bot      TEXT    NOT NULL,
    id       TEXT    NOT NULL,
    session  TEXT    NOT NULL,
    express  INTEGER NOT NULL,
    raw      BLOB,
    at       INTEGER NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    problem  TEXT    NOT NULL DEFAULT '',
    state    TEXT    NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'done', 'dead')),
    finished INTEGER NOT NULL DEFAULT 0,
    UNIQUE (channel, bot, id)
);
CREATE INDEX inbox_lane ON inbox (session, seq) WHERE state = 'waiting' AND express = 0 AND session <> '';
CREATE INDEX inbox_express ON inbox (channel, bot, seq) WHERE state = 'waiting' AND (express = 1 OR session = '');
CREATE INDEX inbox_dead ON inbox (seq) WHERE state = 'dead';
CREATE INDEX inbox_raw ON inbox (finished) WHERE finished > 0 AND raw IS NOT NULL;
CREATE INDEX inbox_finished ON inbox (finished) WHERE finished > 0;

CREATE TABLE lane (
    session    TEXT    PRIMARY KEY,
    channel    TEXT    NOT NULL,
    bot        TEXT    NOT NULL,
    surface    TEXT    NOT NULL,
    chat       TEXT    NOT NULL,
    thread     TEXT    NOT NULL,
    grp        INTEGER NOT NULL,
    state      TEXT    NOT NULL,
    fence      INTEGER NOT NULL,
    owner      TEXT    NOT NULL,
    until      INTEGER NOT NULL,
    turn       TEXT    NOT NULL,
    arrival    INTEGER NOT NULL,
    since      INTEGER NOT NULL,
    not_before INTEGER NOT NULL,
    failing    INTEGER NOT NULL,
    stop       TEXT    NOT NULL,
    last       INTEGER NOT NULL,
    live       INTEGER NOT NULL,
    notice     TEXT    NOT NULL,
    caller     TEXT    NOT NULL
);
CREATE INDEX lane_place ON lane (channel, bot, session);
CREATE INDEX lane_busy ON lane (channel, bot) WHERE state <> 'idle';
CREATE INDEX lane_held ON lane (owner) WHERE owner <> '';

CREATE TABLE journal (
    session TEXT    NOT NULL,
    n       INTEGER NOT NULL,
    reset   INTEGER NOT NULL, -- 1: a reset entry; the conversation begins here
    body    TEXT    NOT NULL,
    PRIMARY KEY (session, n)
);
CREATE INDEX journal_reset ON journal (session, n) WHERE reset = 1;

CREATE TABLE approval (
    n       INTEGER PRIMARY KEY AUTOINCREMENT,
    id      TEXT    NOT NULL UNIQUE,
    short   TEXT    NOT NULL,
    session TEXT    NOT NULL,
    turn    TEXT    NOT NULL,
    call    TEXT    NOT NULL,
    channel TEXT    NOT NULL,
    bot     TEXT    NOT NULL,
    surface TEXT    NOT NULL,
    chat    TEXT    NOT NULL,
    thread  TEXT    NOT NULL,
    grp     INTEGER NOT NULL,
    caller  TEXT    NOT NULL,
    tool    TEXT    NOT NULL,
    hash    TEXT    NOT NULL,
    body    BLOB,
    state   TEXT    NOT NULL,
    scope   TEXT    NOT NULL,
    decider TEXT    NOT NULL,
    name    TEXT    NOT NULL,
    votes   TEXT    NOT NULL,
    needed  INTEGER NOT NULL,
    created INTEGER NOT NULL,
    expires INTEGER NOT NULL,
    decided INTEGER NOT NULL,
    card    INTEGER NOT NULL
);
CREATE INDEX approval_open ON approval (session, n) WHERE state = 'pending';
CREATE INDEX approval_pending ON approval (n) WHERE state = 'pending';
CREATE INDEX approval_call ON approval (session, call);
CREATE INDEX approval_granted ON approval (session, hash) WHERE state = 'approved' AND scope = 'session';
CREATE INDEX approval_chat ON approval (channel, bot, chat);

CREATE TABLE outbox (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    session    TEXT    NOT NULL,
    turn       TEXT    NOT NULL,
    channel    TEXT    NOT NULL,
    bot        TEXT    NOT NULL,
    surface    TEXT    NOT NULL,
    chat       TEXT    NOT NULL,
    thread     TEXT    NOT NULL,
    grp        INTEGER NOT NULL,
    purpose    TEXT    NOT NULL,
    content    TEXT,
    reply_to   TEXT    NOT NULL,
    edit       TEXT    NOT NULL,
    edit_row   INTEGER NOT NULL,
    query      TEXT    NOT NULL,
    alert      INTEGER NOT NULL,
    key        TEXT    NOT NULL,
    state      TEXT    NOT NULL,
    message    TEXT    NOT NULL,
    attempts   INTEGER NOT NULL,
    resent     INTEGER NOT NULL,
    not_before INTEGER NOT NULL,
    created    INTEGER NOT NULL,
    problem    TEXT    NOT NULL,
    finished   INTEGER NOT NULL
);
CREATE UNIQUE INDEX outbox_key ON outbox (key) WHERE key <> '';
-- Written with OR: SQLite uses a partial index for state = 'pending' only when that very term is one of its own.
CREATE INDEX outbox_open ON outbox (channel, bot, state, id) WHERE state = 'pending' OR state = 'sending' OR state = 'unknown';
CREATE INDEX outbox_session ON outbox (session, id);
CREATE INDEX outbox_chat ON outbox (channel, bot, chat);
CREATE INDEX outbox_content ON outbox (finished) WHERE finished > 0 AND content IS NOT NULL;

CREATE TABLE fact (
    bucket  TEXT    NOT NULL,
    key     TEXT    NOT NULL,
    value   TEXT    NOT NULL,
    expires INTEGER NOT NULL,
    PRIMARY KEY (bucket, key)
);
CREATE INDEX fact_expires ON fact (expires) WHERE expires > 0;

CREATE TABLE charge (
    key   TEXT    PRIMARY KEY,
    scope TEXT    NOT NULL,
    unit  TEXT    NOT NULL,
    day   TEXT    NOT NULL,
    n     INTEGER NOT NULL
);
CREATE INDEX charge_day ON charge (day, key);

CREATE TABLE meta (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
);

-- +goose Down
DROP TABLE meta;
DROP TABLE charge;
DROP TABLE fact;
DROP TABLE outbox;
DROP TABLE approval;
DROP TABLE journal;
DROP TABLE lane;
DROP TABLE inbox;
