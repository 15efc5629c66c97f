-- What is set aside of scopes that have limits, for calls of models that are under way: what a dead process had set aside is charged.
-- Old writers: they do not know the table; what they charge counts, what they set aside is with Redis.

-- +goose Up
CREATE TABLE hold (
    holder TEXT    NOT NULL, -- a run of a turn
    scope  TEXT    NOT NULL,
    unit   TEXT    NOT NULL,
    day    TEXT    NOT NULL,
    n      INTEGER NOT NULL,
    owner  TEXT    NOT NULL, -- the process that spends it
    turn   TEXT    NOT NULL,
    PRIMARY KEY (holder, scope, unit, day)
);
CREATE INDEX hold_scope ON hold (day, scope, unit, holder, n);
CREATE INDEX hold_owner ON hold (owner);

-- +goose Down
DROP TABLE hold;
