package app

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/command"
	"github.com/zephbot/zephbot/bot/terminal"
	"github.com/zephbot/zephbot/bot/terminal/paint"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/policy/act"
)

// historyName is the file of what the person has written, in the terminal's state directory.
const historyName = "history"

// sitting is one run of `zephbot chat`.
type sitting struct {
	chat    ChatOptions
	plain   *terminal.Terminal
	rich    *terminal.Rich // nil = line by line
	person  person         // one of both
	seen    *changes       // what calls change, for rich
	core    *Core
	service *service
	left    map[bot.SessionKey]bool // whose turns an earlier process left and this one ends
}

// face returns the terminal that draws. What it needs of the core is looked up when it is needed: the core is opened
// later.
func (s *sitting) face(o terminal.Options, opts Options) *terminal.Rich {
	words := texts.Words{}
	return terminal.NewRich(o, terminal.RichOptions{
		Open:    s.chat.Face.Open,
		Aside:   s.chat.Face.Aside,
		Painter: paint.Painter{Colour: s.chat.Face.Colour},
		Words:   words.Terminal(o.Language),
		Doing: func(does act.Verb, show string, done, total int, took time.Duration) string {
			return words.Line(o.Language, does, show, done, total, took)
		},
		Silent: func(lasting time.Duration) string { return words.Silent(o.Language, lasting) },
		History: terminal.OpenHistory(filepath.Join(opts.Home, historyName), func(text string) bool {
			return s.core == nil || s.core.redactor.String(text) != text
		}),
		Complete: func(prefix string) []string { return terminal.Paths(opts.WorkDir, prefix) },
		Proposed: func(ctx context.Context, press string) []terminal.Change { return s.core.proposed(ctx, press) },
		Changed:  s.seen.take,
		Status: func(ctx context.Context, session bot.SessionKey) string {
			used, err := s.core.consumptionOf(ctx, session)
			if err != nil {
				return "" // the next answer says what is wrong
			}
			return words.Consumption(o.Language, s.core.modelLineOf(session), used.tokens, used.room, used.usd)
		},
	})
}

// talkListed is how many conversations there are to choose from.
const talkListed = 20

// conversations are those of the terminal.
func (c *Core) conversations() *terminal.Conversations {
	return terminal.NewConversations(c.bucket(terminal.ConversationBucket), c.stores.Bot, c.opts.WorkDir)
}

// endLeft ends the turns that earlier processes left in other directories: what was meant for one must not be done in
// another.
func (s *sitting) endLeft(ctx context.Context) error {
	elsewhere, err := s.core.conversations().Elsewhere(ctx)
	if err != nil {
		return err
	}
	s.left, err = s.core.endTurns(ctx, terminal.Name, terminal.BotID, elsewhere)
	return err
}

// talk holds the conversation.
func (s *sitting) talk(ctx context.Context) error {
	s.core.awaitServers(ctx)
	s.core.awaitEnds(ctx, s.left)
	if s.chat.Interrupts != nil {
		pressed, give := s.chat.Interrupts()
		defer give()
		s.person.Interrupts(pressed)
	}
	if s.rich != nil {
		s.rich.SetCommands(s.commands())
		s.rich.Greet("zephbot "+s.core.opts.Version+" · "+s.core.opts.WorkDir, s.chat.Note)
	}
	if s.rich == nil && s.chat.Note != "" {
		_, _ = fmt.Fprintln(s.chat.Err, s.chat.Note) // who does not see it loses nothing
	}
	list := s.core.conversations()
	if s.chat.Once != "" {
		return s.person.Once(ctx, s.accept(nil), s.chat.Once)
	}
	if err := s.enter(ctx, list); err != nil {
		return err
	}
	return s.person.Talk(ctx, s.accept(list))
}

// enter goes on with an earlier conversation if that is wanted.
func (s *sitting) enter(ctx context.Context, list *terminal.Conversations) error {
	switch {
	case s.chat.Continue:
		found, err := list.List(ctx, false)
		if err != nil {
			return err
		}
		if len(found) == 0 {
			return fmt.Errorf("%w: %w; zephbot chat begins one", config.ErrInvalid, terminal.ErrNoConversation)
		}
		s.resume(ctx, list, found[0].Name)
	case s.chat.Resume == nil:
	case *s.chat.Resume != "":
		found, err := list.Find(ctx, *s.chat.Resume)
		if _, wrong := errors.AsType[terminal.NameError](err); wrong {
			err = fmt.Errorf("%w: %w", config.ErrInvalid, err)
		}
		if err != nil {
			return err
		}
		s.resume(ctx, list, found.Name)
	default:
		return s.choose(ctx, list)
	}
	return nil
}

// choose has the person choose a conversation. Where they cannot, the list is the error.
func (s *sitting) choose(ctx context.Context, list *terminal.Conversations) error {
	found, err := list.List(ctx, false)
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return fmt.Errorf("%w: %w; zephbot chat begins one", config.ErrInvalid, terminal.ErrNoConversation)
	}
	found = found[:min(len(found), talkListed)]
	words := texts.Words{}
	lines := terminal.Choices(found, s.core.now(), func(d time.Duration) string {
		return words.Duration(s.chat.Language, d)
	})
	if s.rich == nil {
		return fmt.Errorf(
			"%w: --resume needs the name of a conversation here:\n%s", config.ErrInvalid, strings.Join(lines, "\n"),
		)
	}
	s.rich.Choose(words.Terminal(s.chat.Language).Which, lines, func(ctx context.Context, choice int) {
		if choice >= 0 {
			s.resume(ctx, list, found[choice].Name)
		}
	})
	return nil
}

// resume goes on with a conversation, and shows what it was about: what was said last, and a recap if that is set.
func (s *sitting) resume(ctx context.Context, list *terminal.Conversations, name string) {
	s.person.Enter(name)
	if !s.chat.Ask && !s.chat.JSON { // nobody reads along
		return
	}
	if said, answer, _ := list.Last(ctx, name); said != "" {
		s.person.Recall(said, answer)
	}
	s.service.recap.Opened(ctx, s.person.Opening(), s.person.Session())
}

// unanswered reports whether the turn of a final row has ended without an answer.
func (s *sitting) unanswered(ctx context.Context, row *bot.Row) bool {
	tail, err := s.core.stores.Bot.Tail(ctx, row.Session, 0)
	if err != nil {
		return false // the text says what it is
	}
	for i := len(tail.Entries) - 1; i >= 0; i-- {
		if e := &tail.Entries[i]; e.Turn == row.Turn {
			switch e.Kind {
			case journal.AnswerEntry:
				return false
			case journal.EndEntry:
				return true
			}
		}
	}
	return false
}

// accept returns what takes messages, and notes in which conversation they are; list may be nil.
func (s *sitting) accept(list *terminal.Conversations) terminal.Accept {
	return func(ctx context.Context, raws []turn.Raw) error {
		if list == nil {
			return s.service.dispatcher.Accept(ctx, raws)
		}
		for _, raw := range raws { // first, because it says in which directory the turn may go on
			msg, err := bot.MessageDecoder{}.Decode(raw.Body)
			if err != nil || msg.Kind != bot.Text || msg.Command != "" {
				continue
			}
			if err := list.Note(ctx, msg.Place.Chat, msg.Text, s.core.now()); err != nil &&
				!errors.Is(err, context.Canceled) {
				s.core.log.Warn().Err(err).Msg("the conversation is not listed")
			}
		}
		return s.service.dispatcher.Accept(ctx, raws)
	}
}

// commands lists what can be completed after a slash.
func (s *sitting) commands() []terminal.Command {
	var list []terminal.Command
	for _, c := range s.service.ownerMenu(s.chat.Language) {
		list = append(list, terminal.Command(c))
	}
	return list
}

// listedCommand is a command with a line about it.
type listedCommand struct{ Name, About string }

// ownerMenu lists the commands of who runs the service, by name.
func (s *service) ownerMenu(language string) []listedCommand {
	var list []listedCommand
	for _, name := range s.commands.Menu(command.Reader{Admin: true, Decides: true}) {
		list = append(list, listedCommand{Name: name, About: texts.Words{}.Describe(language, name)})
	}
	slices.SortFunc(list, func(a, b listedCommand) int { return strings.Compare(a.Name, b.Name) })
	return list
}
