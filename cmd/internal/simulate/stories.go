package simulate

import (
	"context"
	"errors"
	"io/fs"
	"sync"
	"sync/atomic"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/simulator"
	"github.com/zephbot/zephbot/bot/story"
	"github.com/zephbot/zephbot/bot/telegram"
	"github.com/zephbot/zephbot/persistence/sql"
	"github.com/zephbot/zephbot/tools/chain"
)

// stories reads what the bot did from its database, which another process writes. It works while that process is dead.
type stories struct {
	path string
	bot  atomic.Value // string: id of the bot, known once it was started
	mu   sync.Mutex
	db   *sql.Reader
}

// reader opens the database as soon as it exists.
func (s *stories) reader(ctx context.Context) (*sql.Reader, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.db != nil {
		return s.db, nil
	}
	db, err := sql.OpenReader(ctx, s.path)
	if err != nil {
		return nil, err
	}
	s.db = db
	return db, nil
}

func (s *stories) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.db != nil {
		_ = s.db.Close() // read only: nothing can be lost
	}
}

// Story implements simulator.Inspector.
func (s *stories) Story(ctx context.Context, chat, thread, person string) (simulator.Story, error) {
	var told simulator.Story
	db, err := s.reader(ctx)
	if errors.Is(err, fs.ErrNotExist) {
		return told, nil
	}
	if err != nil {
		return told, err
	}
	botID, _ := s.bot.Load().(string)
	lane, ok, err := find(ctx, db, botID, bot.Place{Chat: chat, Thread: thread}, person)
	if err != nil || !ok {
		return told, err
	}
	entries, err := db.Journal(ctx, lane.Session, 0)
	if err != nil {
		return told, err
	}
	rows, err := db.Rows(ctx, lane.Session, 500)
	if err != nil {
		return told, err
	}
	return simulator.Story{Turns: story.Of(entries, rows, &lane, chain.StripMarks)}, nil
}

// find returns the session of a person in a chat: in a group it may be the person's own or the chat's.
func find(ctx context.Context, db *sql.Reader, botID string, place bot.Place, person string) (bot.Lane, bool, error) {
	lanes, err := db.Lanes(ctx, telegram.Name, botID, 10000)
	if err != nil {
		return bot.Lane{}, false, err
	}
	var shared *bot.Lane
	for i, l := range lanes {
		if l.Place.Chat != place.Chat || l.Place.Thread != place.Thread {
			continue
		}
		switch l.Session.Person() {
		case person:
			return l, true, nil
		case "":
			shared = &lanes[i]
		}
	}
	if shared == nil {
		return bot.Lane{}, false, nil
	}
	return *shared, true, nil
}
