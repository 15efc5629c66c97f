-- Rows whose content is forgotten may be deleted next.

-- +goose Up
CREATE INDEX outbox_finished ON outbox (finished) WHERE finished > 0 AND content IS NULL;
CREATE INDEX outbox_edits ON outbox (edit_row) WHERE edit_row > 0 AND finished = 0;

-- +goose Down
DROP INDEX outbox_edits;
DROP INDEX outbox_finished;
