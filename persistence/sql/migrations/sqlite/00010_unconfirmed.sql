-- How many requests for a new message may have arrived, although their answers were lost.
-- Old writers: they count none of theirs, so a message that they pass on may be repeated more often.

-- +goose Up
ALTER TABLE outbox ADD COLUMN unconfirmed INTEGER NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE outbox DROP COLUMN unconfirmed;
