package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/zephbot/zephbot/bot/access"
	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/cmd/internal/providers"
	"github.com/zephbot/zephbot/cmd/internal/upkeep"
)

// askToken asks for the token, until Telegram knows it.
func (s *setup) askToken(ctx context.Context) error {
	token, from := s.env.Telegram.Token, "ZEPH_TELEGRAM_TOKEN"
	if s.f.tokenFile != "" {
		var err error
		if token, err = s.c.secretFile("--token-file", s.f.tokenFile); err != nil {
			return err
		}
		s.out.Token, from = token, "--token-file"
	}
	s.in.explain("\n1 of 5: the bot")
	if token != "" {
		err := s.checkToken(ctx, token)
		if err == nil || !s.in.person {
			return refused(err)
		}
		s.in.sentence(fmt.Sprintf("the token of %s: %v", from, err), "")
		if s.f.tokenFile == "" {
			return usageError{errors.New("correct or unset ZEPH_TELEGRAM_TOKEN, which wins over the file")}
		}
	} else if !s.in.person {
		return need("the token with --token-file or ZEPH_TELEGRAM_TOKEN")
	} else {
		s.in.say("In Telegram, write /newbot to @BotFather (or /mybots, if you have one). It gives you a token like " +
			"123456:ABC-DEF…")
	}
	for {
		token, err := s.in.secret("Token")
		if err != nil {
			return err
		}
		if token == "" {
			continue
		}
		err = s.checkToken(ctx, token)
		if err == nil {
			s.out.Token = token
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		s.in.sentence(err.Error(), "Please try again.")
	}
}

// refused makes a failed check of a given answer an error of usage if the answer is at fault.
func refused(err error) error {
	trouble, ok := errors.AsType[*providers.Trouble](err)
	if errors.Is(err, upkeep.ErrToken) || ok && trouble.Kind != providers.NotReached && trouble.Kind != providers.Busy {
		return usageError{err}
	}
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w; --unchecked goes on without trying", err)
}

// checkToken asks Telegram whose token it is.
func (s *setup) checkToken(ctx context.Context, token config.Secret) error {
	if s.f.unchecked {
		return nil
	}
	found, err := upkeep.FindBot(ctx, token, s.env.Telegram.APIURL)
	if err != nil {
		return err
	}
	s.bot = found
	s.in.say("ok: @%s answers.", found.Username)
	return nil
}

// askAdmin waits until somebody sends the code to the bot.
func (s *setup) askAdmin(ctx context.Context) error {
	s.out.Admins = s.f.admins
	for _, id := range s.f.admins {
		if id <= 0 {
			return usageError{
				fmt.Errorf("--admin %d: want the numeric id of a person", id),
			}
		}
	}
	if len(s.f.admins) > 0 || len(s.env.Telegram.Admins) > 0 {
		return nil
	}
	if !s.in.person || s.bot == nil {
		s.in.say(noAdmin)
		return nil
	}
	code := access.NewCode()
	link := access.Link(s.bot.Username, code)
	s.in.say("\n2 of 5: you\nOpen this link and press Start:\n\n%s\n", link)
	if picture := s.picture(link); picture != "" {
		s.in.show(picture)
		s.in.say("Your phone's camera opens it too.")
	}
	s.in.say("Or send the bot this message:\n\n/start %s\n", code)
	s.in.say("Whoever does that is the admin. Waiting … (Enter goes on without; a numeric id is taken too)")
	err := s.meet(ctx, code)
	if len(s.out.Admins) == 0 {
		s.code = code
	}
	return err
}

// laterAdmin says how somebody becomes the admin later, after a code was shown.
const laterAdmin = "Nobody is admin yet. The link stays good: whoever follows it once the bot runs is the first. When " +
	"the bot is started later, it shows a code, too."

// noAdmin says how somebody becomes the admin later.
const noAdmin = "Nobody is admin yet: at its start the bot shows a code, and whoever sends it to the bot is the first."

// meet waits for the person who sends the code, or for a line that is typed instead.
func (s *setup) meet(ctx context.Context, code string) error {
	waiting, end := context.WithCancel(ctx)
	defer end()
	came := make(chan upkeep.Person, 1)
	stuck, other := make(chan error), make(chan struct{})
	go s.await(waiting, code, came, stuck, other) // ends with waiting
	for {
		select {
		case who := <-came:
			s.in.say("ok: %s (id %d) is the admin.", who.Name, who.ID)
			s.out.Admins = []int64{who.ID}
			s.bot.Greet(ctx, who)
			return nil
		case err := <-stuck:
			if over, err := s.unstick(ctx, err); over || err != nil {
				return err
			}
		case <-other:
			s.in.say("Somebody sent the bot another code than this one; it makes nobody admin. Waiting …")
		case text, ok := <-s.in.lines:
			if !ok {
				return errEnded
			}
			if s.admitted(text) {
				return nil
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// admitted takes an id that was typed instead; an empty line goes on without.
func (s *setup) admitted(text string) (over bool) {
	if text == "" {
		s.in.say(laterAdmin)
		return true
	}
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id <= 0 {
		s.in.say("That is no id. Send the code to the bot, or press Enter.")
		return false
	}
	s.out.Admins = []int64{id}
	s.in.say("ok: id %d is the admin.", id)
	return true
}

// again is the pause after messages of the bot could not be read.
const again = 3 * time.Second

// await waits for whoever sends the code, and tells what is in the way; it goes on after the reader has taken that.
func (s *setup) await(
	ctx context.Context, code string, came chan<- upkeep.Person, stuck chan<- error, other chan<- struct{},
) {
	told, seen := "", map[string]bool{}
	wrong := func(text string) {
		if seen[text] { // a message that is not confirmed comes with each poll
			return
		}
		seen[text] = true
		select {
		case other <- struct{}{}:
		case <-ctx.Done():
		}
	}
	for ctx.Err() == nil {
		who, err := s.bot.Await(ctx, code, wrong)
		if err == nil {
			came <- who
			return
		}
		if text := err.Error(); ctx.Err() == nil && text != told {
			told = text
			select {
			case stuck <- err:
			case <-ctx.Done():
			}
			continue
		}
		timer := time.NewTimer(again)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
}

// unstick says what is in the way of the messages of the bot, and removes a webhook if the person wants that.
func (s *setup) unstick(ctx context.Context, err error) (over bool, _ error) {
	obstacle, ok := errors.AsType[*upkeep.Obstacle](err)
	if !ok || obstacle.Host == "" {
		s.in.sentence(err.Error(), "Waiting …")
		return false, nil
	}
	s.in.sentence(err.Error(), "")
	yes, err := s.in.yes("Take the webhook away, so that this bot gets its messages?", false)
	if err != nil {
		return true, err
	}
	if !yes {
		s.in.say("Then make a second bot at @BotFather for zephbot.")
		return true, errors.New("the bot belongs to another program; nothing was written")
	}
	if err := s.bot.Release(ctx); err != nil {
		s.in.sentence(err.Error(), "")
		return false, nil
	}
	s.in.say("It is gone. Waiting …")
	return false, nil
}
