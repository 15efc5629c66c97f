package telegram_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot/bottest"
	"github.com/zephbot/zephbot/bot/telegram"
	"github.com/zephbot/zephbot/bot/telegram/telegramtest"
)

// wanting is what menus there should be.
type wanting struct {
	mu   sync.Mutex
	list []telegram.Menu
}

func (l *wanting) set(list ...telegram.Menu) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = list
}

func (l *wanting) get() []telegram.Menu {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.list)
}

func menu(scope telegram.Scope, language string, names ...string) telegram.Menu {
	m := telegram.Menu{Scope: scope, Language: language}
	for _, name := range names {
		m.Commands = append(m.Commands, telegram.Command{Name: name, Description: "what " + name + " does"})
	}
	return m
}

// keep runs Menus until the test or stop ends it.
func (w *world) keep(t *testing.T, store *bottest.Store, log *buffer, wanted *wanting) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	menus := telegram.NewMenus(w.client, store, zerolog.New(log), time.Now, telegram.MenuOptions{
		Wanted: wanted.get, Look: time.Millisecond, Pause: time.Millisecond, Longest: 4 * time.Millisecond,
	})
	var running sync.WaitGroup
	running.Go(func() { menus.Run(ctx) })
	stop = func() {
		cancel()
		running.Wait()
	}
	t.Cleanup(stop)
	return stop
}

// shown is the menus of the server, a line each.
func (w *world) shown() string {
	var lines []string
	for scope, list := range w.Commands() {
		names := make([]string, len(list))
		for i, c := range list {
			names[i] = c.Command
		}
		lines = append(lines, scope+": "+strings.Join(names, " "))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func (w *world) shows(t *testing.T, lines ...string) {
	t.Helper()
	want := strings.Join(lines, "\n")
	until(t, "menus\n"+want, func() bool { return w.shown() == want })
}

func TestMenusOfScopes(t *testing.T) {
	t.Parallel()
	w, store, log, wanted := setup(t, time.Minute), bottest.New(), &buffer{}, &wanting{}
	everyone := menu(telegram.AllPrivate(), "", "help", "stop")
	german := menu(telegram.AllPrivate(), "de", "help", "stop")
	groups := menu(telegram.AllGroups(), "", "help")
	admin := menu(telegram.OneChat("11"), "", "help", "policy", "stop")
	wanted.set(everyone, german, groups, admin)
	stop := w.keep(t, store, log, wanted)
	rest := []string{"all_group_chats: help", "all_private_chats/de: help stop", "all_private_chats: help stop"}
	w.shows(t, append(slices.Clone(rest), "chat:11: help policy stop")...)
	if sets := len(w.CallsOf("setMyCommands")); sets != 4 {
		t.Errorf("%d menus set", sets)
	}

	// No longer an admin, then one again, in a running process.
	wanted.set(everyone, german, groups)
	w.shows(t, rest...)
	wanted.set(everyone, german, groups, admin)
	w.shows(t, append(slices.Clone(rest), "chat:11: help policy stop")...)
	stop()

	// What is there already is not set again by the next process.
	before := len(w.CallsOf("setMyCommands"))
	asked := len(w.CallsOf("getMyCommands"))
	stop = w.keep(t, store, log, wanted)
	until(t, "the menus to be read", func() bool { return len(w.CallsOf("getMyCommands")) >= asked+4 })
	stop()
	if after := len(w.CallsOf("setMyCommands")); after != before {
		t.Errorf("%d menus set again", after-before)
	}

	// Somebody lost their rights while no process ran.
	wanted.set(everyone, german, groups)
	w.keep(t, store, log, wanted)
	w.shows(t, rest...)
	until(t, "the record to be dropped", func() bool {
		left, err := store.FactsOf(t.Context(), "menu", "", time.Now())
		return err == nil && len(left) == 0
	})
	if text := log.String(); text != "" {
		t.Errorf("log: %s", text)
	}
}

func TestMenusAfterFailures(t *testing.T) {
	t.Parallel()
	for _, fault := range []telegramtest.Fault{
		{Method: "setMyCommands", Kind: telegramtest.Fault500, Count: 3},
		{Method: "setMyCommands", Kind: telegramtest.Fault429, RetryAfter: 1, Count: 1},
		{Method: "getMyCommands", Kind: telegramtest.Fault502, Count: 2},
		{Method: "getMyCommands", Kind: telegramtest.FaultDrop, Count: 5},
		{Method: "setMyCommands", Kind: telegramtest.FaultCut, Count: 2},
		{Method: "setMyCommands", Kind: telegramtest.Fault400, Description: "Bad Request: chat not found", Count: 2},
	} {
		t.Run(fmt.Sprintf("%s %s", fault.Method, fault.Kind), func(t *testing.T) {
			t.Parallel()
			w, log, wanted := setup(t, time.Minute), &buffer{}, &wanting{}
			w.AddFault(fault)
			wanted.set(menu(telegram.AllPrivate(), "", "help"), menu(telegram.AllGroups(), "", "stop"))
			w.keep(t, bottest.New(), log, wanted)
			w.shows(t, "all_group_chats: stop", "all_private_chats: help")
			if text := log.String(); !strings.Contains(text, "command menu not set") {
				t.Errorf("log: %q", text)
			}
		})
	}
}

// An admin who never wrote to the bot has no chat with it: the others have their menus all the same, and theirs comes
// as soon as there is a chat.
func TestMenuOfAChatThatComesLater(t *testing.T) {
	t.Parallel()
	w, log, wanted := setup(t, time.Minute), &buffer{}, &wanting{}
	wanted.set(menu(telegram.OneChat("12"), "", "policy"), menu(telegram.AllPrivate(), "", "help"))
	w.keep(t, bottest.New(), log, wanted)
	w.shows(t, "all_private_chats: help")
	w.AddPrivate(bob)
	w.shows(t, "all_private_chats: help", "chat:12: policy")
}
