-- Outputs of tools that are too long for a model. The text stands last: what stands before it is read without it.

-- +goose Up
CREATE TABLE tool_overflow (
    id      TEXT    PRIMARY KEY,
    session TEXT    NOT NULL,
    turn    TEXT    NOT NULL,
    call    TEXT    NOT NULL,
    tool    TEXT    NOT NULL,
    source  TEXT    NOT NULL,
    bytes   INTEGER NOT NULL,
    created INTEGER NOT NULL,
    expires INTEGER NOT NULL,
    text    BLOB    NOT NULL
);
-- Not unique: two sessions that become one may have calls of the same name.
CREATE INDEX tool_overflow_call ON tool_overflow (session, turn, call);
CREATE INDEX tool_overflow_expires ON tool_overflow (expires) WHERE expires > 0;

-- +goose Down
DROP TABLE tool_overflow;
