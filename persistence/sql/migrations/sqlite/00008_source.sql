-- Where an arrival came from, and where a conversation keeps its files. '' = as before there were these columns: from its channel, in the directory that the
-- key of the session names.
-- Old writers: what they store comes from their channel, as the default says. They work where the key of the session says, which is the workspace of every lane
-- that has none; a lane that they move loses its own, and the next claim gives it the same again.

-- +goose Up
ALTER TABLE inbox ADD COLUMN source TEXT NOT NULL DEFAULT '';
ALTER TABLE lane ADD COLUMN workspace TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE lane DROP COLUMN workspace;
ALTER TABLE inbox DROP COLUMN source;
