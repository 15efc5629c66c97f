package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/dispatch"
	"github.com/zephbot/zephbot/bot/turn"
)

// away is a model that does not answer before a time.
func away(till time.Time) runner {
	return func(ctx context.Context, turn *agent.Turn, log agent.Journal, sink agent.Sink) (agent.Outcome, error) {
		if errors.Is(context.Cause(ctx), agent.ErrStopped) {
			return ended(turn, journal.ReasonStopped), nil
		}
		if time.Now().Before(till) {
			return agent.Outcome{Kind: agent.Later, Err: errors.New("overloaded")}, nil
		}
		return echo(ctx, turn, log, sink)
	}
}

func TestModelAway(t *testing.T) {
	notices := func(w *world) int { return len(w.texts(bot.Notice)) }
	t.Run("and back", func(t *testing.T) {
		in(t, func(t *testing.T, w *world) {
			w.runner = away(time.Now().Add(5 * time.Minute))
			w.accept(w.start(), w.private("ann", "hi"))
			pass(3 * time.Minute)
			if w.lane(session("ann")).State != bot.Waiting || notices(w) != 1 {
				t.Errorf("lane %+v, rows %q", w.lane(session("ann")), w.rows())
			}
			pass(4 * time.Minute)
			w.want(bot.Final, "re: hi")
		})
	})
	t.Run("for good", func(t *testing.T) {
		in(t, func(t *testing.T, w *world) {
			w.runner = away(time.Now().Add(time.Hour))
			p := w.start()
			w.accept(p, w.private("ann", "hi"))
			pass(9 * time.Minute)
			w.want(bot.Final)
			pass(3 * time.Minute)
			if got := w.texts(bot.Final); len(got) != 1 || !strings.Contains(got[0], "gave up") || notices(w) != 1 {
				t.Errorf("rows %q", w.rows())
			}
		})
	})
	t.Run("a server without a connection", func(t *testing.T) {
		in(t, func(t *testing.T, w *world) {
			w.opts.GiveUpUnreached = 8 * time.Second
			w.parts = func(p *dispatch.Parts) { p.Words.Owner = true }
			w.runner = func(context.Context, *agent.Turn, agent.Journal, agent.Sink) (agent.Outcome, error) {
				return agent.Outcome{Kind: agent.Later, Err: &llm.Error{
					Kind: llm.Unavailable, Server: "api.acme.example", Unreached: llm.UnreachedName, Err: errors.New("no such host"),
				}}, nil
			}
			w.accept(w.start(), w.private("ann", "hi"))
			pass(10 * time.Second)
			told := append(w.texts(bot.Notice), w.texts(bot.Final)...)
			if len(told) != 2 || !strings.Contains(told[0], "api.acme.example") || !strings.Contains(told[1], "api.acme.example") {
				t.Errorf("rows %q", w.rows())
			}
		})
	})
	t.Run("and stopped", func(t *testing.T) {
		in(t, func(t *testing.T, w *world) {
			w.runner = away(time.Now().Add(time.Hour))
			p := w.start()
			w.accept(p, w.private("ann", "hi"))
			w.accept(p, w.private("ann", "/stop"))
			w.want(bot.Final, "Stopped before anything was said.")
		})
	})
	t.Run("again after progress", func(t *testing.T) {
		in(t, func(t *testing.T, w *world) {
			runs := 0
			began := time.Now()
			w.runner = func(ctx context.Context, turn *agent.Turn, log agent.Journal, sink agent.Sink) (agent.Outcome, error) {
				runs++
				if _, err := log.Load(ctx, room); err != nil {
					return agent.Outcome{}, err
				}
				if time.Since(began) < 20*time.Minute { // it says something each time, and is away again
					_, err := log.Append(ctx, journal.Entry{Turn: turn.ID, Kind: journal.AssistantEntry, Text: "step"})
					return agent.Outcome{Kind: agent.Later, RetryAfter: time.Minute}, err
				}
				return answered(turn, "done"), nil
			}
			w.accept(w.start(), w.private("ann", "hi"))
			pass(25 * time.Minute)
			w.want(bot.Final, "done")
		})
	})
}

// unwilling is a store that refuses the beginnings of turns.
type unwilling struct {
	bot.Store
	left int
}

func (u *unwilling) Apply(ctx context.Context, change *bot.Change) (*bot.Applied, error) {
	if change.Claim != nil && change.Append != nil && u.left > 0 {
		u.left--
		return nil, errors.New("disk is busy")
	}
	return u.Store.Apply(ctx, change)
}

// TestNews: news are consumed by the Change that begins the turn which tells them: told once, and not lost when that
// Change, or reading them, fails.
func TestNews(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		const bucket = "news"
		if _, err := w.store.Apply(t.Context(), &bot.Change{Facts: []bot.Fact{{Bucket: bucket, Key: string(session("ann")) + "/1", Value: "it ended"}}}); err != nil {
			t.Fatal(err)
		}
		asked := 0
		w.parts = func(p *dispatch.Parts) {
			p.Store = &unwilling{Store: w.store, left: 2}
			p.News = func(ctx context.Context, session bot.SessionKey, _ bool) (turn.News, error) {
				if asked++; asked == 2 {
					return turn.News{}, errors.New("disk is busy")
				}
				var news turn.News
				facts, err := w.store.FactsOf(ctx, bucket, string(session+"/"), time.Now())
				for _, f := range facts {
					news.Text += f.Value
					news.Told = append(news.Told, bot.Fact{Bucket: f.Bucket, Key: f.Key})
				}
				return news, err
			}
		}
		p := w.start()
		w.accept(p, w.private("ann", "one"), w.private("ann", "two"))
		pass(5 * time.Minute)
		w.want(bot.Final, "re: one", "re: two")
		entries, err := w.store.Journal(t.Context(), session("ann"), 0)
		if err != nil {
			t.Fatal(err)
		}
		var told []string
		for _, e := range entries {
			if e.Kind == journal.UserEntry {
				told = append(told, e.Text+": "+e.News)
			}
		}
		if want := []string{"one: it ended", "two: "}; !slices.Equal(told, want) || len(w.meter.turns) != 2 || asked < 4 {
			t.Errorf("told %q, want %q; %d turns charged, asked %d times", told, want, len(w.meter.turns), asked)
		}
	})
}

func TestPanics(t *testing.T) {
	t.Run("once", func(t *testing.T) {
		in(t, func(t *testing.T, w *world) {
			runs := 0
			w.runner = func(ctx context.Context, turn *agent.Turn, log agent.Journal, sink agent.Sink) (agent.Outcome, error) {
				if runs++; runs == 1 {
					panic("once")
				}
				return echo(ctx, turn, log, sink)
			}
			w.accept(w.start(), w.private("ann", "hi"))
			w.want(bot.Final, "re: hi")
			if len(w.meter.turns) != 1 {
				t.Errorf("charged %v", w.meter.turns)
			}
		})
	})
	t.Run("always", func(t *testing.T) {
		in(t, func(t *testing.T, w *world) {
			runs := 0
			w.runner = func(ctx context.Context, turn *agent.Turn, log agent.Journal, sink agent.Sink) (agent.Outcome, error) {
				if text, _ := asked(ctx, turn, log); text == "bad" {
					runs++
					panic("always")
				}
				return echo(ctx, turn, log, sink)
			}
			w.accept(w.start(), w.private("ann", "bad"), w.private("ann", "good"))
			w.want(bot.Final, "re: good")
			if got := w.texts(bot.Reply); len(got) != 1 || !strings.Contains(got[0], "error on my side") || runs != 3 {
				t.Errorf("replies %q after %d runs", got, runs)
			}
			if c := w.counts(); c.DeadLetters != 1 || c.Queued != 0 {
				t.Errorf("counts %+v", c)
			}
		})
	})
	for _, command := range []string{"/panic", "/bad"} {
		t.Run(command, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				w.commands.fails = bot.ErrInvalid
				p := w.start()
				w.accept(p, w.private("ann", command), w.private("ann", "good"))
				pass(time.Minute)
				w.want(bot.Final, "re: good")
				if c := w.counts(); c.DeadLetters != 1 {
					t.Errorf("counts %+v", c)
				}
			})
		})
	}
	t.Run("guard of express arrivals", func(t *testing.T) {
		in(t, func(t *testing.T, w *world) {
			p := w.start()
			w.guard.set(func(g *guard) { g.panic = true })
			press := w.private("ann", "")
			press.Kind, press.Data, press.Query = bot.Press, "x", "q1"
			w.accept(p, press, w.private("ann", "/status"))
			pass(10 * time.Second)
			w.guard.set(func(g *guard) { g.panic = false })
			if c := w.counts(); c.DeadLetters != 2 || len(w.texts(bot.Toast)) != 1 || len(w.texts(bot.Reply)) != 1 {
				t.Errorf("counts %+v, rows %q", c, w.rows())
			}
		})
	})
}

// An outage burns no tries: what arrived in it is answered after it.
func TestOutages(t *testing.T) {
	t.Run("guard", func(t *testing.T) {
		in(t, func(t *testing.T, w *world) {
			p := w.start()
			w.guard.set(func(g *guard) { g.fails = errors.New("away") })
			press := w.private("ann", "")
			press.Kind, press.Query, press.Data = bot.Press, "q", "old"
			w.accept(p, w.private("ann", "hi"), w.private("ann", "/status"), press)
			pass(5 * time.Minute)
			w.guard.set(func(g *guard) { g.fails = nil })
			pass(5 * time.Second)
			w.want(bot.Final, "re: hi")
			w.want(bot.Toast, "This question is no longer open.")
			if c := w.counts(); c.DeadLetters != 0 || c.Queued != 0 {
				t.Errorf("counts %+v", c)
			}
		})
	})
	t.Run("meter, for ever", func(t *testing.T) {
		in(t, func(t *testing.T, w *world) {
			w.meter.fails = errors.New("away")
			w.accept(w.start(), w.private("ann", "hi"))
			pass(11 * time.Minute)
			if got := w.texts(bot.Reply); len(got) != 1 || w.counts().DeadLetters != 1 {
				t.Errorf("rows %q, %+v", w.rows(), w.counts())
			}
		})
	})
	t.Run("charge that cannot be stored", func(t *testing.T) {
		in(t, func(t *testing.T, w *world) {
			w.meter.invalid = true
			w.accept(w.start(), w.private("ann", "hi"))
			pass(time.Minute)
			if got := w.texts(bot.Reply); len(got) != 1 || w.meter.undone != 3 {
				t.Errorf("rows %q, undone %d", w.rows(), w.meter.undone)
			}
		})
	})
	t.Run("runner, for ever", func(t *testing.T) {
		in(t, func(t *testing.T, w *world) {
			w.runner = func(context.Context, *agent.Turn, agent.Journal, agent.Sink) (agent.Outcome, error) {
				return agent.Outcome{}, errors.New("redis is away")
			}
			w.accept(w.start(), w.private("ann", "hi"))
			pass(15 * time.Minute)
			if got := w.texts(bot.Final); len(got) != 1 || !strings.Contains(got[0], "went wrong") {
				t.Errorf("rows %q", w.rows())
			}
		})
	})
	t.Run("an outcome that means nothing", func(t *testing.T) {
		in(t, func(t *testing.T, w *world) {
			w.runner = func(context.Context, *agent.Turn, agent.Journal, agent.Sink) (agent.Outcome, error) {
				return agent.Outcome{Kind: "odd"}, nil
			}
			w.accept(w.start(), w.private("ann", "hi"))
			pass(time.Second)
			if got := w.texts(bot.Final); len(got) != 1 {
				t.Errorf("rows %q", w.rows())
			}
		})
	})
}

func TestPoison(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		p := w.start()
		list := []turn.Raw{
			{ID: "a", Body: []byte("panic")}, raw(t, w.private("ann", "one")), {ID: "b", Body: []byte("{{")}, raw(t, w.private("ben", "/status")),
		}
		if err := p.Accept(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		pass(10 * time.Second)
		w.want(bot.Final, "re: one")
		w.want(bot.Reply, "/status running=false admin=false")
		letters, err := w.store.DeadLetters(t.Context(), 10)
		if err != nil || len(letters) != 2 || letters[0].Problem == "" {
			t.Errorf("%+v %v", letters, err)
		}
	})
}

// takeover makes another owner claim the lane after its lease ended.
func takeover(w *world, s bot.SessionKey) {
	lane := w.lane(s)
	_, err := w.store.Apply(w.t.Context(), &bot.Change{Claim: &bot.Claim{
		Session: s, Fence: lane.Fence, Owner: "other", Now: lane.Until, Until: lane.Until.Add(time.Hour),
	}})
	if err != nil {
		w.t.Fatal(err)
	}
}

func TestLeaseLost(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var cause error
		w.runner = func(ctx context.Context, turn *agent.Turn, log agent.Journal, _ agent.Sink) (agent.Outcome, error) {
			<-ctx.Done()
			cause = context.Cause(ctx)
			_, err := log.Append(context.WithoutCancel(ctx), journal.Entry{Turn: turn.ID, Kind: journal.AnswerEntry, Text: "late"})
			return agent.Outcome{}, err
		}
		w.accept(w.start(), w.private("ann", "hi"))
		pass(5 * time.Minute) // the lease is extended for as long as the turn takes
		if lane := w.lane(session("ann")); !lane.Until.After(time.Now()) || cause != nil {
			t.Fatalf("lease until %v, cause %v", lane.Until, cause)
		}
		takeover(w, session("ann"))
		pass(time.Minute)
		if !errors.Is(cause, bot.ErrLost) {
			t.Errorf("cause %v", cause)
		}
		entries, _ := w.store.Journal(t.Context(), session("ann"), 0)
		if len(entries) != 1 || w.lane(session("ann")).Owner != "other" || len(w.rows()) != 0 {
			t.Errorf("written without the lane: %+v %q", entries, w.rows())
		}
	})
}

func TestShutdown(t *testing.T) {
	t.Run("drains", func(t *testing.T) {
		in(t, func(t *testing.T, w *world) {
			open := make(chan struct{})
			w.runner = func(ctx context.Context, turn *agent.Turn, log agent.Journal, sink agent.Sink) (agent.Outcome, error) {
				if out, err, ok := until(ctx, open, turn); !ok {
					return out, err
				}
				return echo(ctx, turn, log, sink)
			}
			p := w.start()
			w.accept(p, w.private("ann", "hi"), w.private("ann", "left to the next"))
			p.cancel()
			pass(5 * time.Second)
			close(open)
			<-p.done
			w.want(bot.Final, "re: hi")
			w.start()
			pass(time.Second)
			w.want(bot.Final, "re: hi", "re: left to the next")
		})
	})
	t.Run("interrupts", func(t *testing.T) {
		in(t, func(t *testing.T, w *world) {
			w.runner = func(ctx context.Context, turn *agent.Turn, _ agent.Journal, _ agent.Sink) (agent.Outcome, error) {
				out, err, _ := until(ctx, make(chan struct{}), turn)
				return out, err
			}
			p := w.start()
			w.accept(p, w.private("ann", "hi"))
			began := time.Now()
			p.stop()
			if took := time.Since(began); took != 20*time.Second {
				t.Errorf("took %v", took)
			}
			if lane := w.lane(session("ann")); lane.Owner != "" || lane.State != bot.Running || len(w.rows()) != 0 {
				t.Errorf("lane %+v", lane)
			}
			w.runner = echo
			w.start()
			pass(time.Second)
			w.want(bot.Final, "re: hi")
		})
	})
}

// A process with the same name takes its own leases over at once; another one waits for their end.
func TestLeaseOfADeadProcess(t *testing.T) {
	for name, wait := range map[string]time.Duration{"same": 0, "": 58 * time.Second} {
		t.Run("owner "+name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				p := w.start()
				p.stop()
				w.opts.Owner = name
				m := w.private("ann", "hi")
				r := raw(t, m)
				now, turn := time.Now(), "test-7-"+m.ID
				running := bot.Running
				change := &bot.Change{
					Arrive: []bot.Arrival{{Channel: "test", Bot: "7", ID: m.ID, Session: session("ann"), Raw: r.Body, At: now}},
					Claim:  &bot.Claim{Session: session("ann"), Place: m.Place, Owner: "same", Now: now, Until: now.Add(time.Minute)},
					Append: &bot.Append{Session: session("ann"), Entries: []journal.Entry{{Turn: turn, Kind: journal.UserEntry, Text: "hi"}}},
				}
				applied, err := w.store.Apply(t.Context(), change)
				if err != nil {
					t.Fatal(err)
				}
				seq := applied.Seqs[0]
				_, err = w.store.Apply(t.Context(), &bot.Change{Lanes: []bot.LaneUpdate{{Session: session("ann"), State: &running, Turn: &turn, Arrival: &seq}}})
				if err != nil {
					t.Fatal(err)
				}
				w.start()
				pass(wait)
				if name == "" {
					w.want(bot.Final)
				}
				pass(4 * time.Second)
				w.want(bot.Final, "re: hi")
			})
		})
	}
}

// TestRefusalIsComputedAgain: a refusal that was computed from what has changed since is computed again, and if its sender
// may talk now, the message is handled.
func TestRefusalIsComputedAgain(t *testing.T) {
	for _, admitted := range []bool{false, true} {
		t.Run(fmt.Sprint("admitted=", admitted), func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				p := w.start()
				asked := 0
				w.guard.out = map[string]bool{"ann": true}
				w.guard.with = func() bot.Change {
					asked++
					was := ""
					if asked == 1 { // there is no such fact
						was = "before"
					}
					if admitted {
						w.guard.out = nil
					}
					return bot.Change{Facts: []bot.Fact{{Bucket: "told", Key: "all", Value: "now", Was: &was}}}
				}
				w.accept(p, w.private("ann", "hi"))
				pass(time.Minute)
				if admitted {
					w.want(bot.Final, "re: hi")
				} else {
					w.want(bot.Reply, "I do not know you")
				}
				if want := map[bool]int{false: 2, true: 1}[admitted]; asked != want {
					t.Errorf("computed %d times, want %d", asked, want)
				}
			})
		})
	}
}

func TestStrangersAndGroups(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		p := w.start()
		silent := w.group("g", "ann", "not for the bot")
		silent.Addressed = false
		heard := w.group("g-all", "ann", "for whoever reads")
		heard.Addressed = false
		nobody := w.group("g", "", "channel")
		nobody.Caller = ""
		edited, joined, old, left := w.private("ann", "x"), w.group("unlisted", "ann", ""), w.group("listed", "ann", ""), w.group("g", "ann", "")
		edited.Kind, joined.Kind, old.Kind, left.Kind = bot.Edited, bot.Member, bot.Member, bot.Member
		joined.Status, old.Status, left.Status = "joined", "joined", "left"
		joined2 := joined
		joined2.ID = "joined2"
		press := w.private("stranger", "")
		press.Kind, press.Query = bot.Press, "q"
		status := w.group("g", "ann", "/status")
		status.Addressed = false
		w.accept(p, silent, heard, nobody, edited, joined, joined2, old, left, press, status, w.private("stranger", "hi"), w.private("stranger", "hi"),
			w.private("stranger", "/status"), w.private("ann", "  "), w.private("admin", "/lane"))
		pass(time.Second)
		w.want(bot.Final, "re: for whoever reads")
		w.want(bot.Toast, "I do not know you")
		got := w.texts(bot.Reply)
		slices.Sort(got)
		want := []string{
			"/lane running=false admin=true", "I do not know you", "There is nothing in this message that I can work with. Send me text, please.", "not set up here",
		}
		if !slices.Equal(got, want) {
			t.Errorf("replies %q", got)
		}
		if c := w.counts(); c.Queued != 0 || c.DeadLetters != 0 {
			t.Errorf("counts %+v", c)
		}
	})
}

// Somebody who was taken off the list in mid-turn is stopped.
func TestRemovedPerson(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var runs []string
		w.runner = parker(w, &runs)
		p := w.start()
		w.accept(p, w.private("ann", "park"))
		w.guard.set(func(g *guard) { g.out["ann"] = true })
		p.Wake(session("ann"))
		pass(11 * time.Minute)
		w.want(bot.Final, "Stopped before anything was said.")
	})
}

func TestQuota(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		p := w.start()
		w.meter.notice = "18 of 20"
		w.accept(p, w.private("ann", "one"))
		w.meter.refuse = "used up"
		w.accept(p, w.private("ann", "two"), w.private("ann", "three"))
		w.want(bot.Final, "re: one")
		w.want(bot.Notice, "18 of 20")
		w.want(bot.Reply, "used up")
		if c := w.counts(); c.Queued != 0 {
			t.Errorf("counts %+v", c)
		}
	})
}

func TestMigration(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		open := make(chan struct{})
		runs := 0
		w.runner = func(ctx context.Context, turn *agent.Turn, log agent.Journal, sink agent.Sink) (agent.Outcome, error) {
			runs++
			if out, err, ok := until(ctx, open, turn); !ok {
				return out, err
			}
			return echo(ctx, turn, log, sink)
		}
		p := w.start()
		w.accept(p, w.group("-5", "ann", "one"), w.group("-5", "ann", "two"))
		move := w.group("-5", "ann", "")
		move.Kind, move.Target = bot.Migrated, "-1005"
		odd := move
		odd.ID, odd.Target = "odd", ""
		w.accept(p, move, odd)
		pass(2 * time.Second)
		if runs != 2 || p.Working() != 1 {
			t.Fatalf("%d runs, %d working", runs, p.Working())
		}
		close(open)
		pass(2 * time.Second)
		w.want(bot.Final, "re: one", "re: two")
		due, _ := w.store.Due(t.Context(), "test", "7", time.Now(), 0)
		for _, r := range due {
			if r.Place.Chat != "-1005" || r.ReplyTo != "" || r.Session != "test/7/bot/-1005/0/ann" {
				t.Errorf("row %+v", r)
			}
		}
		if c := w.counts(); c.Queued != 0 {
			t.Errorf("counts %+v", c)
		}
	})
}
