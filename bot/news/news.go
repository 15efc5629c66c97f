// Package news keeps what a session's model is told at its next turn: ends of background commands, news
// of MCP servers, files that moved. It remains in the store until the Change that begins the turn in which it is told.
package news

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/facts"
	"github.com/zephbot/zephbot/bot/moves"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/policy/source"
	"github.com/zephbot/zephbot/tools/mcp"
	"github.com/zephbot/zephbot/tools/shell"
)

// Buckets of what the model of a session has to be told at its next turn. Keys consist of the session, a time and an
// id; the Change that begins the turn deletes what is told.
const (
	newsBucket = "news"
	// Commands that were started; one of another process was interrupted by the end of that process.
	runBucket = "background"
)

// Limits of what one turn is told; older news are only counted.
const (
	maxRunNews    = 32
	maxServerNews = 8
)

// noteWithin limits how long a command waits until it is recorded.
const noteWithin = 10 * time.Second

// item is a piece of news as it is stored.
type item struct {
	Kind    string `json:"kind"`            // run: a command ended; other: a message of ours
	Text    string `json:"text,omitempty"`  // as the model sees it
	Owner   string `json:"owner,omitempty"` // of a command that was started: the process
	ID      string `json:"id,omitempty"`
	Command string `json:"command,omitempty"`
}

const (
	runItem   = "run"
	otherItem = "other"
)

// Deps are the dependencies of a Ledger. All but Lives and Look are needed.
type Deps struct {
	Store  facts.Store
	Keeper facts.Keeper
	Moves  *moves.Map
	// Name of this process: commands of a process that no longer lives were interrupted.
	Owner string
	// Reports whether a process lives; nil = only this one does.
	Lives func(owner string) bool
	// Look reads again which processes live: one that has just begun is taken for dead until then. nil = there are no
	// others.
	Look func(ctx context.Context) error
	// Reports whether a command of this process is running.
	Running func(run string) bool
	// marks what commands printed (mark.Marker)
	Wrap func(from source.Source, text string) (marked string, rules []string)
	Now  func() time.Time
	Log  zerolog.Logger
}

// Ledger keeps what the models of sessions have to be told, as facts. It implements shell.Ledger. It remembers which
// sessions may have news, so that a turn without news reads nothing. Safe for concurrent use; it starts no goroutines.
type Ledger struct {
	deps Deps

	mu     sync.Mutex
	loaded bool                   // may is complete
	may    map[bot.SessionKey]int // by session: the number of its newest item
	n      int
	others map[bot.SessionKey]bool // sessions with commands under way in other processes
}

// New returns a Ledger. It reads the store at its first use.
func New(deps Deps) *Ledger {
	if deps.Lives == nil {
		deps.Lives = func(owner string) bool { return owner == deps.Owner }
	}
	return &Ledger{deps: deps, may: map[bot.SessionKey]int{}}
}

// newsKey returns a key that sorts news of a session by time.
func newsKey(session bot.SessionKey, at time.Time, id string) string {
	return fmt.Sprintf("%s/%020d/%s", session, at.UnixNano(), id)
}

// sessionOf returns the session in a key.
func sessionOf(key string) bot.SessionKey {
	for range 2 { // the id and the time
		key = key[:max(0, strings.LastIndexByte(key, '/'))]
	}
	return bot.SessionKey(key)
}

func newsFact(bucket, key string, i item) bot.Fact {
	raw, _ := json.Marshal(i) // strings can always be marshalled
	return bot.Fact{Bucket: bucket, Key: key, Value: string(raw)}
}

func begunKey(run shell.BackgroundRun) string {
	return newsKey(bot.SessionKey(run.Origin.Session), run.Started, run.ID)
}

// Begun implements shell.Ledger.
func (n *Ledger) Begun(ctx context.Context, run shell.BackgroundRun) error {
	ctx, cancel := context.WithTimeout(ctx, noteWithin)
	defer cancel()
	return n.deps.Keeper.Keep(ctx, &bot.Change{Facts: []bot.Fact{
		newsFact(runBucket, begunKey(run), item{Kind: runItem, Owner: n.deps.Owner, ID: run.ID, Command: run.Command}),
	}})
}

// Ended implements shell.Ledger. Storing the news of a command's end also deletes its record as running.
func (n *Ledger) Ended(ctx context.Context, done shell.Completion) error {
	at, session := done.Started.Add(done.Elapsed), bot.SessionKey(done.Origin.Session)
	change := &bot.Change{
		Facts: []bot.Fact{
			newsFact(newsBucket, newsKey(session, at, done.ID), item{Kind: runItem, Text: done.Message()}),
		},
	}
	// The group may have got a new id in the meantime, and with it the fact.
	for _, name := range n.deps.Moves.Names(session) {
		run := done.BackgroundRun
		run.Origin.Session = string(name)
		change.Facts = append(change.Facts, bot.Fact{Bucket: runBucket, Key: begunKey(run)})
	}
	change.Facts = append(change.Facts, bot.Fact{Bucket: endBucket, Key: done.ID})
	err := n.deps.Keeper.Keep(ctx, change)
	n.Note(session)
	return err
}

// About returns what the model of a session is told about a server; false if that is only meant for people.
func About(session bot.SessionKey, at time.Time, n mcp.Notice) (bot.Fact, bool) {
	switch n.Kind {
	case mcp.Away, mcp.Back, mcp.Changed, mcp.Withdrawn:
		return newsFact(newsBucket, newsKey(session, at, n.Server+"-"+string(n.Kind)),
			item{Kind: otherItem, Text: n.Text}), true
	default:
		return bot.Fact{}, false
	}
}

// Told returns a fact with which the model of a session is told text at its next turn; id is unique at that time. Note
// must be called once it is stored.
func Told(session bot.SessionKey, at time.Time, id, text string) bot.Fact {
	return newsFact(newsBucket, newsKey(session, at, id), item{Kind: otherItem, Text: text})
}

// TellLater has the model of a session told text at its next turn. It returns once that is stored.
func (n *Ledger) TellLater(ctx context.Context, session bot.SessionKey, text string) error {
	ctx, cancel := context.WithTimeout(ctx, noteWithin)
	defer cancel()
	told := Told(session, n.deps.Now(), "files", text)
	if err := n.deps.Keeper.Keep(ctx, &bot.Change{Facts: []bot.Fact{told}}); err != nil {
		return err
	}
	n.Note(session)
	return nil
}

// Note records that a session may have news. It must be called after they were stored.
func (n *Ledger) Note(session bot.SessionKey) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.n++
	n.may[n.deps.Moves.Current(session)] = n.n
}

// Reload discards what is remembered; it is read from the store at the next use.
func (n *Ledger) Reload() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.loaded = false
}

// Follow finds news that other processes have stored.
func (n *Ledger) Follow(ctx context.Context) error {
	n.Reload()
	return n.loadSessions(ctx)
}

// loadSessions reads which sessions have news.
func (n *Ledger) loadSessions(ctx context.Context) error {
	n.mu.Lock()
	loaded := n.loaded
	n.loaded = true // what is noted from now on is kept
	n.mu.Unlock()
	if loaded {
		return nil
	}
	others := map[bot.SessionKey]bool{}
	for _, bucket := range []string{newsBucket, runBucket} {
		facts, err := n.deps.Store.FactsOf(ctx, bucket, "", n.deps.Now())
		if err != nil {
			n.Reload()
			return fmt.Errorf("read the news: %w", err)
		}
		for _, f := range facts {
			n.Note(sessionOf(f.Key))
			if bucket != runBucket {
				continue
			}
			if _, ok := n.readElsewhere(f); ok {
				others[n.deps.Moves.Current(sessionOf(f.Key))] = true
			}
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.others = others
	return nil
}

// Read gives what has happened since a session's last turn. It is told once the Change that deletes News.Told is in.
// moved says that the session may have been another process's a moment ago: then the store is read in any case.
func (n *Ledger) Read(ctx context.Context, session bot.SessionKey, moved bool) (turn.News, error) {
	if moved {
		n.Note(session)
	}
	if err := n.loadSessions(ctx); err != nil {
		return turn.News{}, err
	}
	n.mu.Lock()
	newest, may := n.may[session]
	n.mu.Unlock()
	if !may {
		return turn.News{}, nil
	}
	var found []bot.Fact
	for _, name := range n.deps.Moves.Names(session) {
		for _, bucket := range []string{newsBucket, runBucket} {
			facts, err := n.deps.Store.FactsOf(ctx, bucket, string(name)+"/", n.deps.Now())
			if err != nil {
				return turn.News{}, fmt.Errorf("read the news: %w", err)
			}
			found = append(found, facts...)
		}
	}
	if err := n.meetProcesses(ctx, found); err != nil {
		return turn.News{}, err
	}
	if len(found) == 0 {
		n.mu.Lock()
		if n.may[session] == newest {
			delete(n.may, session)
		}
		n.mu.Unlock()
	}
	return n.describeNews(found), nil
}

// meetProcesses looks for processes that run commands and are not known to live, as one that has just begun.
func (n *Ledger) meetProcesses(ctx context.Context, list []bot.Fact) error {
	if n.deps.Look == nil {
		return nil
	}
	for _, f := range list {
		var i item
		if f.Bucket == runBucket && json.Unmarshal([]byte(f.Value), &i) == nil &&
			i.Owner != n.deps.Owner && !n.deps.Lives(i.Owner) {
			return n.deps.Look(ctx)
		}
	}
	return nil
}

// describeNews describes news in words, sorted by time.
func (n *Ledger) describeNews(found []bot.Fact) turn.News {
	when := func(f bot.Fact) string { return strings.TrimPrefix(f.Key, string(sessionOf(f.Key))) }
	slices.SortStableFunc(found, func(a, b bot.Fact) int { return cmp.Compare(when(a), when(b)) })
	var out turn.News
	var runs, servers []string
	for _, f := range found {
		var i item
		if err := json.Unmarshal([]byte(f.Value), &i); err != nil {
			n.deps.Log.Error().Err(err).Str("news", f.Key).Msg("news not readable")
			i = item{}
		}
		switch {
		case f.Bucket == runBucket && i.Owner == n.deps.Owner && n.deps.Running(i.ID):
			continue
		// Its end is stored already; it was recorded under another id of the chat.
		case f.Bucket == runBucket && i.Owner == n.deps.Owner:
		case f.Bucket == runBucket && n.deps.Lives(i.Owner): // it is running in another process
			continue
		case f.Bucket == runBucket:
			runs = append(runs, describeInterrupted(i))
		case i.Kind == runItem:
			runs = append(runs, i.Text)
		case i.Kind == otherItem:
			servers = append(servers, i.Text)
		}
		out.Told = append(out.Told, bot.Fact{Bucket: f.Bucket, Key: f.Key})
	}
	if more := len(runs) - maxRunNews; more > 0 {
		runs = append([]string{
			fmt.Sprintf("[%d more background runs ended before these; what they printed is not shown]", more),
		}, runs[more:]...)
	}
	about := strings.Join(servers[max(0, len(servers)-maxServerNews):], "\n")
	if len(runs) == 0 {
		out.Text = about
		return out
	}
	text, rules := n.deps.Wrap(source.Background, strings.Join(runs, "\n"))
	out.Text, out.Flagged = strings.TrimSuffix(text+"\n"+about, "\n"), len(rules) > 0
	return out
}

// describeInterrupted describes a command that was running when its process ended.
func describeInterrupted(i item) string {
	return fmt.Sprintf("[background run %.8s was interrupted: the service was restarted while it ran. It may not "+
		"have finished, and what it printed is lost]\n$ %s", i.ID, i.Command)
}
