package upkeep

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/zephbot/zephbot/bot/access"
	"github.com/zephbot/zephbot/bot/telegram"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/tools/shell/sandbox"
)

// Found is a bot whose token Telegram accepts. It must be closed.
type Found struct {
	Username string
	Name     string
	client   *telegram.Client
}

// setupWithin limits one request to Telegram while somebody waits for the answer.
const setupWithin = 15 * time.Second

// ErrToken is the error of FindBot if the token is at fault, and not the connection.
var ErrToken = errors.New("token")

// FindBot asks Telegram which bot a token belongs to. Its errors are sentences without the token.
func FindBot(ctx context.Context, token config.Secret, apiURL string) (*Found, error) {
	client, err := telegram.NewClient(telegram.Options{Token: token.Reveal(), APIURL: apiURL, Timeout: setupWithin})
	if err != nil {
		return nil, sentence{"this is no bot token: it looks like 123456:ABC-DEF…, as @BotFather gives it", ErrToken}
	}
	me, err := client.Me(ctx)
	if err == nil {
		return &Found{Username: me.Username, Name: me.Name, client: client}, nil
	}
	client.Close()
	switch telegram.FaultOf(err) {
	case telegram.WrongToken:
		return nil, sentence{
			"Telegram does not accept this token; copy it once more from @BotFather (/mybots, API Token)",
			ErrToken,
		}
	case telegram.Busy:
		return nil, sentence{"Telegram is asked too often at the moment; wait a minute", err}
	default:
		return nil, sentence{
			fmt.Sprintf(
				"%s cannot be reached (%s); see that this machine reaches it: a firewall, HTTPS_PROXY",
				apiURL, telegram.Cause(err),
			),
			err,
		}
	}
}

// sentence is an error that a person reads.
type sentence struct {
	text  string
	cause error
}

// Error implements error.
func (s sentence) Error() string { return s.text }

// Unwrap returns the cause.
func (s sentence) Unwrap() error { return s.cause }

// Close ends what FindBot began.
func (f *Found) Close() { f.client.Close() }

// Person is somebody who has sent the code.
type Person = telegram.Visitor

// Obstacle says what prevents that messages of the bot are seen; Host is set if it is a webhook.
type Obstacle struct {
	Host string
	text string
}

// Error implements error.
func (o *Obstacle) Error() string { return o.text }

// Greet tells the admin whom Await has found that the bot answers once setup is done. That it cannot be sent now does
// not matter: they are greeted when the bot runs.
func (f *Found) Greet(ctx context.Context, who Person) {
	_ = f.client.Tell(ctx, who, texts.Words{}.SetupWaits(who.Language))
}

// Await waits until somebody sends /start with the code to the bot, and returns who. It confirms nothing:
// the service gets the message too. The error is an *Obstacle, that of ctx, or one of the connection,
// after which it can be called again. wrong is told of each message with another code, with every poll that brings it.
func (f *Found) Await(ctx context.Context, code string, wrong func(text string)) (Person, error) {
	who, err := f.client.Await(ctx, func(text string) bool {
		if access.Redeems(text, code) {
			return true
		}
		if strings.HasPrefix(text, "/start ") {
			wrong(text)
		}
		return false
	}, time.Second)
	switch {
	case err == nil || ctx.Err() != nil:
		return who, err
	case errors.Is(err, telegram.ErrBacklog):
		return who, &Obstacle{text: "more than 100 older messages wait for this bot, so a new one cannot be seen yet"}
	case telegram.FaultOf(err) != telegram.Conflict:
		return who, sentence{"Telegram does not answer at the moment (" + telegram.Cause(err) + "); trying again", err}
	}
	hook, hookErr := f.client.Registered(ctx, "")
	if hookErr == nil && hook.Host != "" {
		return who, &Obstacle{
			Host: hook.Host,
			text: "a webhook is set for this bot at " + hook.Host + ": that program gets its messages",
		}
	}
	return who, &Obstacle{
		text: "another program polls with this token (409); stop it, or make a second bot at @BotFather",
	}
}

// Release removes the webhook of the bot. Waiting messages are kept.
func (f *Found) Release(ctx context.Context) error {
	if err := f.client.Release(ctx); err != nil {
		return sentence{"the webhook could not be removed (" + telegram.Cause(err) + ")", err}
	}
	return nil
}

// Sandbox says in English what the kernel of this machine does not enforce for commands, and why, and whether the rest is
// enough to keep them away from other files; "" = it enforces everything.
func Sandbox(ctx context.Context) (lacks string, full bool) {
	level := sandbox.Probe(ctx, sandbox.Self)
	var missing []string
	for _, one := range append(level.Lacks(), level.Reason) {
		if one.Known() {
			missing = append(missing, one.String())
		}
	}
	return strings.Join(missing, "; "), level.Full()
}
