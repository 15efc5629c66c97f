-- What a table holds for years must not slow down what is asked of it every second. An index here covers the rows that its queries want and no others,
-- and nothing else leads to them.

-- +goose Up
DROP INDEX inbox_lane;
CREATE INDEX inbox_lane ON inbox (session, seq, channel, bot) WHERE state = 'waiting' AND express = 0 AND session <> '';
DROP INDEX inbox_express;
CREATE INDEX inbox_express ON inbox (seq, channel, bot) WHERE state = 'waiting' AND (express = 1 OR session = '');
-- A finished arrival is in one of these two: first with its body, then without.
DROP INDEX inbox_finished;
CREATE INDEX inbox_finished ON inbox (finished) WHERE finished > 0 AND raw IS NULL;

CREATE INDEX approval_asked ON approval (channel, bot, tool, created, n);

-- Charges of days that are over, added up.
CREATE TABLE usage (
    day   TEXT    NOT NULL,
    scope TEXT    NOT NULL,
    unit  TEXT    NOT NULL,
    n     INTEGER NOT NULL,
    PRIMARY KEY (day, scope, unit)
);
DROP INDEX charge_day;
CREATE INDEX charge_scope ON charge (day, scope, unit, n);

-- +goose Down
DROP INDEX charge_scope;
CREATE INDEX charge_day ON charge (day, key);
DROP TABLE usage;
DROP INDEX approval_asked;
DROP INDEX inbox_finished;
CREATE INDEX inbox_finished ON inbox (finished) WHERE finished > 0;
DROP INDEX inbox_express;
CREATE INDEX inbox_express ON inbox (channel, bot, seq) WHERE state = 'waiting' AND (express = 1 OR session = '');
DROP INDEX inbox_lane;
CREATE INDEX inbox_lane ON inbox (session, seq) WHERE state = 'waiting' AND express = 0 AND session <> '';
