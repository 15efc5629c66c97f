-- Where an arrival came from, and where a conversation keeps its files. '' = as before there were these columns: from its channel, in the directory that the
-- key of the session names.
-- Old writers: what they store comes from their channel, as the default says. They work where the key of the session says, which is the workspace of every lane
-- that has none; a lane that they move loses its own, and the next claim gives it the same again.

ALTER TABLE inbox ADD COLUMN source text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE lane ADD COLUMN workspace text COLLATE "C" NOT NULL DEFAULT '';
