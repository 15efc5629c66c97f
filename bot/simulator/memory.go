package simulator

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/zephbot/zephbot/bot/telegram/telegramtest"
)

const (
	memoryVersion = 2
	memoryFile    = "simulator.json"
	filesDir      = "files"
	brokenSuffix  = ".broken"
)

var sumPattern = regexp.MustCompile(`^[0-9a-f]{64}$`)

// memory is the world as it is stored.
type memory struct {
	Version    int                           `json:"version"`
	NextUpdate int64                         `json:"next_update"`
	Topics     []telegramtest.Topic          `json:"topics"` // of the group
	Chats      map[int64][]telegramtest.Kept `json:"chats"`
	Files      []file                        `json:"files"`
	Presses    []press                       `json:"presses"`
	Reads      map[string]int                `json:"reads"`
	Reacts     map[string]string             `json:"reacts,omitempty"`
	Pending    []json.RawMessage             `json:"pending"` // updates the bot has not confirmed
	Calls      []telegramtest.Call           `json:"calls"`
}

// file is a file of the chats. Its content is stored beside the memory, once for all that have the same.
type file struct {
	telegramtest.KeptFile
	Sum string `json:"sum"` // SHA-256 of the bytes, name of the stored file
}

// store is the directory in which the world is kept. The zero store keeps nothing.
type store struct {
	dir  string
	last [sha256.Size]byte // of what was written, so that an unchanged world is not written again
}

// loadWorld reads the world; nil if there is none. A file that cannot be decoded is moved to aside.
func (s *store) loadWorld() (m *memory, aside string, err error) {
	if s.dir == "" {
		return nil, "", nil
	}
	if err := os.MkdirAll(filepath.Join(s.dir, filesDir), 0o700); err != nil {
		return nil, "", fmt.Errorf("simulator: make directory: %w", err)
	}
	raw, err := os.ReadFile(s.worldPath())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, "", nil
	case err != nil:
		return nil, "", fmt.Errorf("simulator: read state: %w", err)
	}
	m = &memory{}
	if err := json.Unmarshal(raw, m); err != nil {
		return nil, fmt.Sprintf("it is not the JSON it should be: %v", err), nil
	}
	if m.Version != memoryVersion {
		return nil, fmt.Sprintf("it has version %d, this program reads version %d", m.Version, memoryVersion), nil
	}
	return m, "", nil
}

func (s *store) worldPath() string { return filepath.Join(s.dir, memoryFile) }

// setAside renames a broken file and returns its new name.
func (s *store) setAside(now time.Time) (string, error) {
	to := s.worldPath() + "." + now.UTC().Format("20060102T150405.000") + brokenSuffix
	if err := os.Rename(s.worldPath(), to); err != nil {
		return "", fmt.Errorf("simulator: set broken state aside: %w", err)
	}
	return to, nil
}

// saveWorld writes the world in one step: either the old file or the new one exists, never a part.
func (s *store) saveWorld(m *memory) error {
	if s.dir == "" {
		return nil
	}
	raw, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("simulator: encode state: %w", err)
	}
	sum := sha256.Sum256(raw)
	if sum == s.last {
		return nil
	}
	if err := replaceFile(s.worldPath(), raw); err != nil {
		return fmt.Errorf("simulator: write state: %w", err)
	}
	s.last = sum
	return nil
}

// storeFile stores the content of a file and returns its checksum.
func (s *store) storeFile(data []byte) (string, error) {
	h := sha256.Sum256(data)
	sum := hex.EncodeToString(h[:])
	path := filepath.Join(s.dir, filesDir, sum)
	if _, err := os.Stat(path); err == nil {
		return sum, nil
	}
	if err := replaceFile(path, data); err != nil {
		return "", fmt.Errorf("simulator: write file: %w", err)
	}
	return sum, nil
}

// readFile reads a stored file.
func (s *store) readFile(sum string) ([]byte, error) {
	if !sumPattern.MatchString(sum) {
		return nil, fmt.Errorf("%q is not the name of a stored file", sum)
	}
	data, err := os.ReadFile(filepath.Join(s.dir, filesDir, sum))
	if err != nil {
		return nil, fmt.Errorf("read stored file: %w", err)
	}
	return data, nil
}

// replaceFile writes a temporary file next to the target and renames it.
func replaceFile(path string, data []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".tmp-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name()) // the first error counts
		}
	}()
	if _, err := f.Write(data); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := f.Sync(); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// takeSnapshot returns the current state of the world. People wait in the meantime; the bot does not, so undelivered
// updates are read first: an update may be stored that the bot has already answered, never the other way round.
func (w *world) takeSnapshot(pending []json.RawMessage, disk *store) (*memory, error) {
	m := &memory{
		Version: memoryVersion, NextUpdate: w.nextUpdate, Topics: w.fake.Topics(Team),
		Chats: map[int64][]telegramtest.Kept{}, Presses: append([]press{}, w.presses...),
		Reads: w.reads, Reacts: w.reacts, Pending: pending, Calls: w.keptCalls(),
	}
	for i := range m.Presses {
		if _, ok := w.fake.CallbackAnswered(m.Presses[i].ID); ok {
			m.Presses[i].Answered = true
		}
	}
	for _, p := range People() {
		m.Chats[p.ID] = w.fake.Keep(p.ID)
	}
	for _, g := range groupIDs() {
		m.Chats[g] = w.fake.Keep(g)
	}
	// After the messages: a file is known before the message that has it.
	var err error
	m.Files, err = w.keepFiles(disk)
	return m, err
}

// keepFiles stores the content of files that are new.
func (w *world) keepFiles(disk *store) ([]file, error) {
	out := []file{}
	for _, f := range w.fake.Files() {
		if w.sums[f.ID] == "" {
			data, ok := w.fake.FileData(f.ID)
			if !ok {
				continue
			}
			sum, err := disk.storeFile(data)
			if err != nil {
				return nil, err
			}
			w.sums[f.ID] = sum
		}
		out = append(out, file{KeptFile: f, Sum: w.sums[f.ID]})
	}
	return out, nil
}
