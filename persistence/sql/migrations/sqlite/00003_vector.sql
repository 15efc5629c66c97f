-- Vectors of what can be searched by meaning, by collection. They can be made anew from what they stand for.

-- +goose Up
CREATE TABLE vector_point (
    collection TEXT NOT NULL,
    key        TEXT NOT NULL,
    hash       TEXT NOT NULL,
    payload    TEXT NOT NULL, -- JSON object of texts; empty = none
    vector     BLOB NOT NULL, -- float32, little endian
    PRIMARY KEY (collection, key)
);

-- +goose Down
DROP TABLE vector_point;
