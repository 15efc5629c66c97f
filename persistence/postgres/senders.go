package postgres

import (
	"slices"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/persistence/reading"
)

// The process that sends the rows of a chat.
const (
	// noneSends checks that a chat has no open rows.
	noneSends = `SELECT must(NOT EXISTS (SELECT 1 FROM outbox WHERE state IN ('pending', 'sending')
	AND channel = $1 AND bot = $2 AND surface = $3 AND chat = $4), 'ZB001', 'the chat has open rows')`
	// keepProcess prevents another process from being buried; stillLives checks afterwards that it was not buried
	// before.
	keepProcess = `SELECT pg_advisory_xact_lock_shared(hashtextextended($1, 3))`
	stillLives  = `SELECT must(EXISTS (SELECT 1 FROM process WHERE id = $1), 'ZB001', 'a process was buried')`
	// sendersQuery finds the owner of the last open row of each chat. An owner that is not a registered process is
	// ignored.
	sendersQuery = `SELECT c.channel, c.bot, c.surface, c.chat, o.owner
	FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) AS c (channel, bot, surface, chat) CROSS JOIN LATERAL (
		SELECT owner FROM outbox WHERE state IN ('pending', 'sending') AND channel = c.channel AND bot = c.bot
		AND surface = c.surface AND chat = c.chat
		ORDER BY id DESC LIMIT 1) AS o JOIN process ON process.id = o.owner`
)

// loadSenders reads which processes have open rows of the chats that new rows go to.
func (l *loading) loadSenders() {
	var channels, bots, surfaces, chats []string
	writes := map[string][]*write{}
	for _, m := range l.group {
		for _, p := range m.write.needs.Chats {
			if chat := p.ChatKey(); writes[chat] == nil {
				channels, bots = append(channels, p.Channel), append(bots, p.Bot)
				surfaces, chats = append(surfaces, p.Surface), append(chats, p.Chat)
			}
			writes[p.ChatKey()] = append(writes[p.ChatKey()], m.write)
		}
	}
	if len(chats) == 0 {
		return
	}
	l.read(func(scan reading.Scan) error {
		var p bot.Place
		var owner string
		err := scan(append(chatDests(&p), &owner)...)
		for _, w := range writes[p.ChatKey()] {
			w.world.Senders[p.ChatKey()] = owner
		}
		return err
	}, sendersQuery, channels, bots, surfaces, chats)
}

// keepSenders prevents the processes that new rows are given to from being buried until the Change is made. After that,
// their heirs get the rows.
func (w *write) keepSenders() {
	var kept []string
	for i := range w.result.Send {
		if owner := w.result.Send[i].Owner; owner != w.me.id && !slices.Contains(kept, owner) {
			kept = append(kept, owner)
			w.do(keepProcess, owner)
			w.do(stillLives, owner)
		}
	}
}

// chatValues returns the columns that identify a chat.
func chatValues(p *bot.Place) []any { return []any{p.Channel, p.Bot, p.Surface, p.Chat} }

func chatDests(p *bot.Place) []any { return []any{&p.Channel, &p.Bot, &p.Surface, &p.Chat} }
