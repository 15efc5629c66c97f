-- How many requests for a new message may have arrived, although their answers were lost.
-- Old writers: they count none of theirs, so a message that they pass on may be repeated more often.

ALTER TABLE outbox ADD COLUMN unconfirmed bigint NOT NULL DEFAULT 0;
