-- Answers, replies and questions that were given up, for the operator's page.
-- Old writers: an index changes nothing for them.

-- +goose Up
CREATE INDEX outbox_failed ON outbox (channel, bot, id)
    WHERE state = 'dead' AND problem <> '' AND purpose IN ('final', 'reply', 'question');

-- +goose Down
DROP INDEX outbox_failed;
