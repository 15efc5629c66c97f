package postgres_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/zephbot/zephbot/agent/blob"
	"github.com/zephbot/zephbot/agent/knn"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/persistence/postgres"
	"github.com/zephbot/zephbot/persistence/postgres/pgtest"
	"github.com/zephbot/zephbot/persistence/storetest"
	"github.com/zephbot/zephbot/persistence/upgradetest"
	"github.com/zephbot/zephbot/persistence/vector"
	"github.com/zephbot/zephbot/tools/overflow"
)

// TestRecord keeps what the store of this schema says, before another migration is added to a version that is released
// (ZEPH_RECORD=1).
func TestRecord(t *testing.T) { //nolint:paralleltest // its subtests are
	if os.Getenv("ZEPH_RECORD") == "" {
		t.Skip("ZEPH_RECORD is not set")
	}
	cluster, empty := template(t)
	var r upgradetest.Recorder
	t.Cleanup(func() {
		schema := newest(t)
		check(t, os.MkdirAll(traces, 0o750))
		check(t, r.Trace(schema).Save(filepath.Join(traces, fmt.Sprintf("%05d.jsonl.gz", schema))))
	})
	told := func(t *testing.T, options postgres.Options) *postgres.Store {
		t.Helper()
		proxy := pgtest.NewProxy(t, cluster)
		options.URL = proxy.URL(cluster.Database(t, empty))
		ear := &ear{conns: map[int]*speaker{}, tell: func(g upgradetest.Group) { r.Record(strings.TrimPrefix(t.Name(), "TestRecord/"), g) }}
		if !strings.Contains(t.Name(), "many_writers") { // what they do is in an order of chance
			proxy.Hear(ear.hear)
		}
		store := open(t, options)
		ear.begin()
		return store
	}
	t.Run("store", func(t *testing.T) {
		storetest.Run(t, func(t *testing.T) bot.Store { t.Helper(); return told(t, postgres.Options{}) })
	})
	t.Run("outputs", func(t *testing.T) {
		storetest.Overflow(t, func(t *testing.T) overflow.Store { t.Helper(); return told(t, postgres.Options{}) })
	})
	t.Run("files", func(t *testing.T) {
		storetest.Blobs(t, func(t *testing.T, limit int64) blob.Store {
			t.Helper()
			return told(t, postgres.Options{BlobBytes: limit})
		})
	})
	t.Run("vectors", func(t *testing.T) {
		storetest.Vectors(t, func(t *testing.T) knn.Index {
			t.Helper()
			store, err := vector.Open(vector.Options{Backend: vector.Embedded, Points: told(t, postgres.Options{})})
			check(t, err)
			return store.Collection(vector.Tools)
		})
	})
	t.Run("upkeep", func(t *testing.T) { storetest.Upkeep(t, told(t, postgres.Options{Owner: "alive"})) })
}

// owning begins the statement by which a store takes the database for itself: it comes while the store is opened, and
// belongs to what it says.
const owning = "INSERT INTO meta (name, value) VALUES ('owner'"

// ear understands what the connections of one store say.
type ear struct {
	mu    sync.Mutex
	on    bool
	conns map[int]*speaker
	tell  func(upgradetest.Group)
}

// speaker is one connection.
type speaker struct {
	rest     []byte // of a message that is not whole yet
	prepared map[string]string
	bound    upgradetest.Run
	group    upgradetest.Group
}

// begin has everything told from now on.
func (e *ear) begin() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.on = true
}

func (e *ear) hear(conn int, sent []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.conns[conn]
	if s == nil {
		s = &speaker{prepared: map[string]string{}}
		e.conns[conn] = s
	}
	s.rest = append(s.rest, sent...)
	for {
		head := 1
		if len(s.rest) > 0 && s.rest[0] == 0 { // the first message of a connection has no letter
			head = 0
		}
		if len(s.rest) < head+4 {
			return
		}
		size := head + int(binary.BigEndian.Uint32(s.rest[head:]))
		if len(s.rest) < size {
			return
		}
		if head == 1 {
			e.message(s, s.rest[0], s.rest[5:size])
		}
		s.rest = s.rest[size:]
	}
}

// message understands one message of the protocol.
func (e *ear) message(s *speaker, letter byte, body []byte) {
	var parse pgproto3.Parse
	var bind pgproto3.Bind
	var query pgproto3.Query
	switch letter {
	case 'P':
		if parse.Decode(body) == nil {
			s.prepared[parse.Name] = parse.Query
		}
	case 'B':
		if bind.Decode(body) == nil {
			s.bound = upgradetest.Run{Query: s.prepared[bind.PreparedStatement], Args: arguments(&bind)}
		}
	case 'E':
		s.group = append(s.group, s.bound)
		e.on = e.on || strings.HasPrefix(s.bound.Query, owning)
	case 'Q':
		if query.Decode(body) == nil {
			s.group = append(s.group, upgradetest.Run{Query: query.String})
			e.end(s)
		}
	case 'S':
		e.end(s)
	}
}

// end tells of what a connection said until it waits for answers.
func (e *ear) end(s *speaker) {
	if e.on && len(s.group) > 0 {
		e.tell(s.group)
	}
	s.group = nil
}

// arguments are texts where they are sent as such, and else the bytes of their binary form.
func arguments(bind *pgproto3.Bind) []any {
	var args []any
	for i, value := range bind.Parameters {
		format := int16(0)
		switch codes := bind.ParameterFormatCodes; {
		case len(codes) == 1:
			format = codes[0]
		case len(codes) > i:
			format = codes[i]
		}
		switch {
		case value == nil:
			args = append(args, nil)
		case format == 0:
			args = append(args, string(value))
		default:
			args = append(args, append([]byte{}, value...))
		}
	}
	return args
}
