-- Contents that are not text, each once, in pieces. Numbers are never used again: a reader asks for one piece after the other.

-- +goose Up
CREATE TABLE blob (
    id    INTEGER PRIMARY KEY AUTOINCREMENT,
    hash  TEXT    NOT NULL, -- SHA-256 in hex; '' while the content is coming in
    size  INTEGER NOT NULL, -- bytes that are here
    begun INTEGER NOT NULL
);
CREATE UNIQUE INDEX blob_hash ON blob (hash) WHERE hash <> '';
CREATE INDEX blob_unfinished ON blob (begun) WHERE hash = '';
CREATE TABLE blob_piece (
    blob INTEGER NOT NULL,
    n    INTEGER NOT NULL, -- from 0
    data BLOB    NOT NULL,
    PRIMARY KEY (blob, n)
);
CREATE TABLE blob_ref (
    session TEXT    NOT NULL,
    blob    INTEGER NOT NULL,
    used    INTEGER NOT NULL, -- when it was put for the session, the last time
    PRIMARY KEY (session, blob)
);
CREATE INDEX blob_ref_blob ON blob_ref (blob);
CREATE INDEX blob_ref_used ON blob_ref (used);

-- +goose Down
DROP TABLE blob_ref;
DROP TABLE blob_piece;
DROP TABLE blob;
