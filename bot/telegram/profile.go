package telegram

import (
	"context"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot"
)

// profileBucket holds which texts of the bot's profile are ours, BOT/KIND/LANGUAGE: what somebody else has written there,
// or removed, stays as it is.
const profileBucket = "profile"

// profileKinds are the texts of a profile: what a chat shows that nobody has written in yet, and what is shown with links
// to the bot (Bot API, setMyDescription and setMyShortDescription).
var profileKinds = []struct {
	param, get, set string
	text            func(p *Profile) string
}{
	{"description", "getMyDescription", "setMyDescription", func(p *Profile) string { return p.Description }},
	{"short_description", "getMyShortDescription", "setMyShortDescription", func(p *Profile) string { return p.Short }},
}

// Profile is what the profile of the bot says in a language.
type Profile struct {
	Language    string // two letters; "" = people for whose language there is none
	Description string // at most 512 characters
	Short       string // at most 120 characters
}

// Profiles sets the texts of the bot's profile where nobody has written their own.
type Profiles struct {
	client *Client
	store  MenuStore
	log    zerolog.Logger
	now    func() time.Time
	wanted []Profile
}

// NewProfiles makes Profiles; the first of wanted is for people for whose language there is none. Nothing is requested
// before Run.
func NewProfiles(
	client *Client, store MenuStore, log zerolog.Logger, now func() time.Time, wanted []Profile,
) *Profiles {
	return &Profiles{client: client, store: store, log: log, now: now, wanted: wanted}
}

// The pauses after a failure: each is twice as long as the one before.
const profilePause, longestProfilePause = time.Second, 10 * time.Minute

// Run sets the texts once, again after a failure, and returns then or when ctx ends.
func (p *Profiles) Run(ctx context.Context) {
	for pause := profilePause; ; pause = min(2*pause, longestProfilePause) {
		err := p.setAll(ctx)
		if err == nil || ctx.Err() != nil {
			return
		}
		if pause == profilePause || pause == longestProfilePause {
			p.log.Warn().Err(err).Msg("profile of the bot not set; it is tried again")
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

func (p *Profiles) setAll(ctx context.Context) error {
	for kind := range profileKinds {
		if err := p.setKind(ctx, kind); err != nil {
			return err
		}
	}
	return nil
}

// setKind sets one kind of text in all languages. A language without one of its own reads the text for all others: where
// that is somebody else's, nothing is set.
func (p *Profiles) setKind(ctx context.Context, kind int) error {
	k, common := &profileKinds[kind], ""
	for i := range p.wanted {
		want := &p.wanted[i]
		now, err := p.read(ctx, kind, want.Language)
		if err != nil {
			return err
		}
		key := p.client.ID() + "/" + k.param + "/" + want.Language
		ours, err := p.store.Fact(ctx, profileBucket, key, p.now())
		if err != nil {
			return fmt.Errorf("profile: %w", err)
		}
		text := k.text(want)
		known := now == ours || ours == "" && (now == "" || now == common) || now == text
		switch {
		case !known && want.Language == "":
			return nil
		case !known:
			continue
		case want.Language == "":
			common = text
		}
		if now == text && ours == text {
			continue
		}
		if now != text {
			if err := p.write(ctx, kind, want.Language, text); err != nil {
				return err
			}
		}
		fact := bot.Fact{Bucket: profileBucket, Key: key, Value: text}
		if _, err := p.store.Apply(ctx, &bot.Change{Facts: []bot.Fact{fact}}); err != nil {
			return fmt.Errorf("profile: %w", err)
		}
	}
	return nil
}

// read returns a text for people of a language.
func (p *Profiles) read(ctx context.Context, kind int, language string) (string, error) {
	k, found := &profileKinds[kind], map[string]string{}
	err := p.client.callMethod(ctx, func(ctx context.Context) error {
		return p.client.invokeMethod(ctx, k.get, map[string]any{"language_code": language}, &found)
	})
	return found[k.param], err
}

func (p *Profiles) write(ctx context.Context, kind int, language, text string) error {
	k := &profileKinds[kind]
	return p.client.callMethod(ctx, func(ctx context.Context) error {
		var done bool
		return p.client.invokeMethod(ctx, k.set, map[string]any{"language_code": language, k.param: text}, &done)
	})
}
