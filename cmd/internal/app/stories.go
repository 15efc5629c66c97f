package app

import (
	"context"
	"errors"
	"io/fs"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/agent/prompt"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/simulator"
	"github.com/zephbot/zephbot/bot/telegram"
	"github.com/zephbot/zephbot/persistence/sql"
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
	var story simulator.Story
	db, err := s.reader(ctx)
	if errors.Is(err, fs.ErrNotExist) {
		return story, nil
	}
	if err != nil {
		return story, err
	}
	botID, _ := s.bot.Load().(string)
	lane, ok, err := find(ctx, db, botID, bot.Place{Chat: chat, Thread: thread}, person)
	if err != nil || !ok {
		return story, err
	}
	entries, err := db.Journal(ctx, lane.Session, 0)
	if err != nil {
		return story, err
	}
	rows, err := db.Rows(ctx, lane.Session, 500)
	if err != nil {
		return story, err
	}
	return simulator.Story{Turns: turns(entries, rows, lane)}, nil
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

// turns groups a journal into turns with their steps.
func turns(entries []journal.Entry, rows []bot.Row, lane bot.Lane) []simulator.StoryTurn {
	var list []simulator.StoryTurn
	at, agents := map[string]int{}, map[string]string{}
	for _, e := range entries {
		if e.Begins() {
			continue
		}
		i, ok := at[e.Turn]
		if !ok {
			i = len(list)
			at[e.Turn] = i
			list = append(list, simulator.StoryTurn{ID: e.Turn, State: "running", Began: e.At})
		}
		if e.Child != "" {
			if e.Kind == journal.UserEntry {
				agents[e.Turn+"/"+e.Child] = e.Speaker
			}
			list[i].Steps = append(list[i].Steps, stepsOf(agents[e.Turn+"/"+e.Child], e)...)
			continue
		}
		addEntry(&list[i], e)
	}
	for _, r := range rows {
		i, ok := at[r.Turn]
		if !ok {
			continue
		}
		if n, err := strconv.Atoi(r.Message); err == nil {
			list[i].Messages = append(list[i].Messages, n)
		}
		if r.Purpose == bot.Question {
			list[i].Steps = append(list[i].Steps, simulator.Step{Kind: "approval", Name: "asked", Text: string(r.State)})
		}
	}
	if i, ok := at[lane.Turn]; ok && lane.Turn != "" {
		list[i].State = map[bot.LaneState]string{bot.Parked: "waiting for a decision", bot.Waiting: "waiting for the model"}[lane.State]
		if list[i].State == "" {
			list[i].State = "running"
		}
	}
	return list
}

// addEntry adds an entry to its turn.
func addEntry(t *simulator.StoryTurn, e journal.Entry) {
	switch e.Kind {
	case journal.UserEntry:
		switch text := prompt.Said(e.Text, e.Parts); e.Joins {
		case journal.Edited:
			t.Text = text
		case journal.Meanwhile:
			t.Text += "\n" + text
		default:
			t.Text, t.Began = text, e.At
		}
	case journal.AssistantEntry:
		var names []string
		for _, u := range e.Uses {
			names = append(names, u.Name+" "+string(u.Args))
		}
		t.Steps = append(t.Steps, simulator.Step{Kind: "model", Name: e.Model, Text: strings.Join(names, "\n"), Millis: e.Millis, Tokens: int64(e.Usage.Total()), USD: e.USD})
	case journal.ResultEntry:
		t.Steps = append(t.Steps, simulator.Step{
			Kind: "tool", Name: e.Tool, Text: e.Text, Rule: e.Rule, By: e.By, Millis: e.Millis, Failed: e.Failed,
		})
	case journal.AnswerEntry:
		t.State = "done"
		t.Steps = append(t.Steps, simulator.Step{Kind: "answer", Name: e.Model, Text: e.Text, Millis: e.Millis, Tokens: int64(e.Usage.Total()), USD: e.USD})
	case journal.EndEntry:
		t.State = "ended: " + e.Reason
		t.Steps = append(t.Steps, simulator.Step{Kind: "end", Name: e.Reason, Text: e.Text, Failed: true})
	case journal.StartedEntry, journal.SummaryEntry, journal.ResetEntry:
	}
}
