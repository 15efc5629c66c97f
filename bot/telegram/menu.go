package telegram

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot"
)

// menuBucket has the private chats with a menu of their own, BOT/CHAT: the menu is deleted when its person is no longer
// an admin, even if that happened while no process ran.
const menuBucket = "menu"

// Scopes of menus (Bot API BotCommandScope). A client shows the narrowest one that has commands.
const (
	scopePrivate = "all_private_chats"
	scopeGroups  = "all_group_chats"
	scopeChat    = "chat"
)

// Scope says who sees a menu.
type Scope struct {
	Type string      `json:"type"`
	Chat json.Number `json:"chat_id,omitempty"` // of one chat; "" = all chats of the type
}

// AllPrivate is every private chat without a menu of its own.
func AllPrivate() Scope { return Scope{Type: scopePrivate} }

// AllGroups is every group.
func AllGroups() Scope { return Scope{Type: scopeGroups} }

// OneChat is one chat, by its id.
func OneChat(id string) Scope { return Scope{Type: scopeChat, Chat: json.Number(id)} }

// Command is a line of a menu (Bot API BotCommand).
type Command struct {
	Name        string `json:"command"`     // 1–32 of a–z, 0–9 and _
	Description string `json:"description"` // 1–256 characters
}

// Menu is the commands that are offered in one scope and language.
type Menu struct {
	Scope    Scope
	Language string    // two letters; "" = people for whose language there is no menu
	Commands []Command // at most 100; none = no menu
}

// readCommands returns the commands of exactly one scope and language; none when it has
// no menu (Bot API getMyCommands).
func (c *Client) readCommands(ctx context.Context, scope Scope, language string) (list []Command, err error) {
	err = c.callMethod(ctx, func(ctx context.Context) error {
		return c.invokeMethod(ctx, "getMyCommands", map[string]any{"scope": scope, "language_code": language}, &list)
	})
	return list, err
}

// setCommands replaces the commands of one scope and language; none deletes the menu (Bot API setMyCommands,
// deleteMyCommands).
func (c *Client) setCommands(ctx context.Context, menu Menu) error {
	method, params := "setMyCommands", map[string]any{"scope": menu.Scope, "language_code": menu.Language}
	if len(menu.Commands) == 0 {
		method = "deleteMyCommands"
	} else {
		params["commands"] = menu.Commands
	}
	return c.callMethod(ctx, func(ctx context.Context) error {
		var done bool
		return c.invokeMethod(ctx, method, params, &done)
	})
}

// MenuStore remembers which chats have a menu of their own.
type MenuStore interface {
	bot.Writer
	bot.Facts
}

// MenuOptions say which menus there are, and how often they are looked at. Zero durations mean defaults.
type MenuOptions struct {
	Wanted  func() []Menu // must not block; asked every Look
	Look    time.Duration // default 30 s
	Pause   time.Duration // after the first failure of a menu, then twice as long each time; default 1 s
	Longest time.Duration // of the pauses; default 10 min
}

// Menus keeps the command menus as they are wanted.
type Menus struct {
	client *Client
	store  MenuStore
	opts   MenuOptions
	log    zerolog.Logger
	now    func() time.Time
	states map[menuKey]*menuState // used by Run alone
}

type menuKey struct {
	scope    Scope
	language string
	none     bool // it is to be deleted
}

// menuState is what is known of a menu.
type menuState struct {
	set      bool
	failures int
	due      time.Time // of the next attempt
}

// NewMenus makes Menus; nothing is requested before Run.
func NewMenus(client *Client, store MenuStore, log zerolog.Logger, now func() time.Time, opts MenuOptions) *Menus {
	for value, usual := range map[*time.Duration]time.Duration{
		&opts.Look: 30 * time.Second, &opts.Pause: time.Second, &opts.Longest: 10 * time.Minute,
	} {
		if *value == 0 {
			*value = usual
		}
	}
	return &Menus{client: client, store: store, opts: opts, log: log, now: now, states: map[menuKey]*menuState{}}
}

// Run sets each menu that differs from what the Bot API has, again and again until it is set, deletes menus of chats
// that are no longer wanted, and follows changes of what is wanted. It returns when ctx ends.
func (m *Menus) Run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			timer.Reset(m.runDue(ctx))
		}
	}
}

// runDue does what is due, and returns how long to wait for the next pass.
func (m *Menus) runDue(ctx context.Context) time.Duration {
	wanted := m.opts.Wanted()
	unwanted, err := m.unwantedMenus(ctx, wanted)
	if err != nil {
		m.reportFailure(ctx, err, "menus to delete not read")
	}
	wait := m.opts.Look
	for _, menu := range slices.Concat(wanted, unwanted) {
		state := m.stateOf(menu)
		if state.set {
			continue
		}
		if left := state.due.Sub(m.now()); left > 0 {
			wait = min(wait, left)
			continue
		}
		err := m.keepMenu(ctx, menu)
		if err == nil {
			*state = menuState{set: true}
			continue
		}
		pause := m.handleFailure(ctx, state, menu, err)
		wait = min(wait, pause)
		if !aboutMenu(err) { // the others would fail for the same reason
			return max(wait, pause)
		}
	}
	if err := m.forgetMenus(ctx, unwanted); err != nil {
		m.reportFailure(ctx, err, "deleted menus not recorded")
	}
	return wait
}

// aboutMenu says whether an error is about one menu, and not about the Bot API or the way to it.
func aboutMenu(err error) bool {
	refused, ok := errors.AsType[*bot.SendError](err)
	return ok && (refused.Outcome == bot.Refused || refused.Outcome == bot.Gone)
}

func (m *Menus) stateOf(menu Menu) *menuState {
	key := menuKey{menu.Scope, menu.Language, len(menu.Commands) == 0}
	if m.states[key] == nil {
		m.states[key] = &menuState{}
	}
	return m.states[key]
}

// keepMenu makes one menu what it should be.
func (m *Menus) keepMenu(ctx context.Context, menu Menu) error {
	if menu.Scope.Chat != "" && len(menu.Commands) > 0 {
		// Recorded first: a menu that nobody knows of would never be deleted.
		fact := bot.Fact{Bucket: menuBucket, Key: m.factKey(menu.Scope.Chat.String()), Value: scopeChat}
		known, err := m.store.Fact(ctx, fact.Bucket, fact.Key, m.now())
		if err != nil {
			return fmt.Errorf("menu: %w", err)
		}
		if known == "" {
			if _, err := m.store.Apply(ctx, &bot.Change{Facts: []bot.Fact{fact}}); err != nil {
				return fmt.Errorf("menu: %w", err)
			}
		}
	}
	now, err := m.client.readCommands(ctx, menu.Scope, menu.Language)
	if err == nil && !slices.Equal(now, menu.Commands) {
		err = m.client.setCommands(ctx, menu)
	}
	refused, ok := errors.AsType[*bot.SendError](err)
	if len(menu.Commands) == 0 && ok && refused.Outcome == bot.Gone { // a chat that is gone shows no menu
		return nil
	}
	return err
}

// handleFailure notes a failure and returns the pause before the next attempt.
func (m *Menus) handleFailure(ctx context.Context, state *menuState, menu Menu, err error) time.Duration {
	pause := min(m.opts.Pause<<min(state.failures, 20), m.opts.Longest)
	if throttled, ok := errors.AsType[*bot.SendError](err); ok {
		pause = max(pause, throttled.RetryAfter)
	}
	state.failures++
	state.due = m.now().Add(pause)
	if n := state.failures; n&(n-1) == 0 { // the first, second, fourth …
		m.reportFailure(ctx, fmt.Errorf("%s %s %q: %w", menu.Scope.Type, menu.Scope.Chat, menu.Language, err),
			"command menu not set; it is tried again")
	}
	return pause
}

func (m *Menus) reportFailure(ctx context.Context, err error, what string) {
	if ctx.Err() == nil {
		m.log.Warn().Err(err).Msg(what)
	}
}

func (m *Menus) factKey(chat string) string { return m.client.ID() + "/" + chat }

// unwantedMenus returns the menus of chats that have one of their own and should not, without commands, in
// each language of what is wanted.
func (m *Menus) unwantedMenus(ctx context.Context, wanted []Menu) (list []Menu, err error) {
	known, err := m.store.FactsOf(ctx, menuBucket, m.factKey(""), m.now())
	if err != nil {
		return nil, err
	}
	chats := map[string]bool{}
	languages := []string{}
	for _, menu := range wanted {
		chats[menu.Scope.Chat.String()] = true
		if !slices.Contains(languages, menu.Language) {
			languages = append(languages, menu.Language)
		}
	}
	for _, fact := range known {
		chat := strings.TrimPrefix(fact.Key, m.factKey(""))
		if chats[chat] {
			continue
		}
		for _, language := range languages {
			delete(m.states, menuKey{OneChat(chat), language, false}) // whoever becomes an admin again gets it again
			list = append(list, Menu{Scope: OneChat(chat), Language: language})
		}
	}
	return list, nil
}

// forgetMenus drops the record of chats whose menus are deleted in every language.
func (m *Menus) forgetMenus(ctx context.Context, unwanted []Menu) error {
	open := map[Scope]bool{}
	for _, menu := range unwanted {
		open[menu.Scope] = open[menu.Scope] || !m.stateOf(menu).set
	}
	change := &bot.Change{}
	for _, menu := range unwanted {
		key := m.factKey(menu.Scope.Chat.String())
		if open[menu.Scope] || slices.ContainsFunc(change.Facts, func(f bot.Fact) bool { return f.Key == key }) {
			continue
		}
		change.Facts = append(change.Facts, bot.Fact{Bucket: menuBucket, Key: key})
	}
	if len(change.Facts) == 0 {
		return nil
	}
	if _, err := m.store.Apply(ctx, change); err != nil {
		return err
	}
	for _, menu := range unwanted {
		if !open[menu.Scope] {
			delete(m.states, menuKey{menu.Scope, menu.Language, true})
		}
	}
	return nil
}
