package apptest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/zephbot/zephbot/persistence"
)

// idle waits until nothing is in progress: no update unconfirmed, no arrival waiting, no turn running, no row
// undelivered. A parked turn is idle.
func (s *scene) idle() error {
	if s.db == nil {
		db, err := s.database()
		if err != nil {
			return err
		}
		s.db = db
	}
	return s.wait(func() (bool, error) { return s.still(s.db) })
}

// still checks in the order in which work proceeds, and checks what waits again at the end: otherwise something that
// moves from one place to the next between two checks would be missed by both.
func (s *scene) still(db persistence.Reader) (bool, error) {
	if s.fake.PendingUpdates() > 0 {
		return false, nil
	}
	ctx, id := context.Background(), strconv.FormatInt(s.fake.BotID(), 10)
	if express, err := db.Express(ctx, "telegram", id, 1); err != nil || len(express) > 0 {
		return false, err
	}
	if ready, err := db.Ready(ctx, "telegram", id, s.clock.now(), 1); err != nil || len(ready) > 0 {
		return false, err
	}
	if counts, err := db.Counts(ctx, "telegram", id); err != nil || counts.Running > 0 || counts.Undelivered > 0 {
		return false, err
	}
	ready, err := db.Ready(ctx, "telegram", id, s.clock.now(), 1)
	return err == nil && len(ready) == 0, err
}

// database opens the service's database for reading, once the service has created it.
func (s *scene) database() (persistence.Reader, error) {
	var db persistence.Reader
	err := s.wait(func() (bool, error) {
		if !s.fake.Polling() && len(s.fake.CallsOf("getUpdates")) == 0 && len(s.fake.CallsOf("getWebhookInfo")) == 0 {
			return false, nil
		}
		var err error
		db, err = persistence.OpenReader(context.Background(), filepath.Join(s.dir, s.processes[0].name), s.databaseURL)
		return err == nil, nil
	})
	return db, err
}

func (s *scene) silent(chat int64) error {
	if err := s.idle(); err != nil {
		return err
	}
	if m, ok := s.next(chat); ok {
		return fmt.Errorf("it says %q", m.Text)
	}
	return nil
}

// file checks, or creates, a file in the workspace of a person in a chat.
func (s *scene) file(verb, person string, chat int64, name, text string) error {
	group := "0"
	if chat < 0 {
		group = strconv.FormatInt(s.chats[person], 10)
	}
	if first, ok := s.first[chat]; ok && verb != "stray" {
		chat = first
	}
	dir := filepath.Join(s.files(), fmt.Sprintf("telegram_%d_bot_%d_0_%s", s.fake.BotID(), chat, group))
	path := filepath.Join(dir, name)
	switch verb {
	case "put", "stray":
		mode := os.FileMode(0o600)
		if strings.HasPrefix(text, "#!") {
			mode = 0o700
		}
		return errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), mode))
	case "no file":
		if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("it is there: %w", err)
		}
		return nil
	default:
		return s.wait(func() (bool, error) {
			raw, err := os.ReadFile(path)
			if err != nil {
				return false, nil //nolint:nilerr // not there yet
			}
			return matches(string(raw), text)
		})
	}
}

// previews waits until so many layers of previewed commands are kept.
func (s *scene) previews(number string) error {
	want, err := strconv.Atoi(number)
	if err != nil {
		return err
	}
	return s.wait(func() (bool, error) {
		kept, err := filepath.Glob(filepath.Join(s.dir, "data", "previews", "*", "*", "record"))
		return len(kept) == want, err
	})
}
