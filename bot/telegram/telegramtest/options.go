package telegramtest

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// DefaultToken is the bot token used when Options.Token is empty. It opens nothing outside this package.
const DefaultToken = "7000000001:telegramtest-token-that-opens-nothing"

const (
	defaultUsername  = "zephbot"
	defaultName      = "Zeph"
	defaultFirstID   = 100_000
	defaultKeepCalls = 20_000
	// defaultPressLife is both the life of an undelivered callback query in Telegram's queue and our answer to the
	// undocumented question how late it may be answered.
	defaultPressLife = 150 * time.Second
)

// Options configures a Server. The zero value is a working private-by-default bot.
type Options struct {
	// Token is the only accepted bot token; its digits before the colon are the bot's user id. Default DefaultToken.
	Token string
	// Now is the clock of every lifetime and date. Default time.Now.
	Now func() time.Time
	// Username and Name of the bot as getMe tells them, without "@". Defaults "zephbot" and "Zeph".
	Username, Name string
	// FirstID is the id of the first update. Default 100000.
	FirstID int64
	// PrivacyOff makes the bot see every group message, as after /setprivacy Disable.
	PrivacyOff bool
	// PrivateTopics turns on topic mode in private chats (getMe.has_topics_enabled, Bot API 9.3).
	PrivateTopics bool
	// Local behaves like a Bot API server started with --local: webhooks of any scheme and port, and files of any size.
	Local bool
	// FilesDir is where a server with --local stores files: getFile gives their paths below it. "" = it gives links.
	FilesDir string
	// KeepCalls caps the call log and the store of past updates. Default 20000.
	KeepCalls int
	// CallbackDeadline is how long after the press a callback query can be answered. Default 150 s; Telegram names
	// none.
	CallbackDeadline time.Duration
	// ConflictDelay holds back the 409 of the losing poller; Telegram takes 3 s. Default 0.
	ConflictDelay time.Duration
	// Budgets are Telegram's flood limits; the zero value has none.
	Budgets Budgets
	// OnCall is called around the execution of every method with Call.Phase "before" and "after": before anything is
	// done, and after it is done but before the answer is written. A crash test blocks or kills in it. It runs on the
	// request's goroutine, outside the lock, and may use the Server. Its context ends with the request or with Close.
	OnCall func(context.Context, Call)
	// Log is called with every finished call, outside the lock.
	Log func(Call)
	// Unchecked accepts requests without holding them against the table of the Bot API, which takes time and memory
	// that a measurement of the bot must not count.
	Unchecked bool
	// WebhookClient delivers updates to a webhook. Default: a client of its own, 60 s per delivery.
	WebhookClient *http.Client
	// WebhookPause is the pause before delivery attempt n (n = 1 is the first repeat). Default Telegram's: none, then
	// 2, 4, 8 … up to 60 s.
	WebhookPause func(attempt int) time.Duration
	// WebhookAttempts bounds the deliveries of one update; 0 leaves only its life in the queue as the bound.
	WebhookAttempts int
}

// Budgets are flood limits. Sends, edits and createForumTopic count; typing, drafts, reactions and answers to presses
// do not. A refused call is not executed and answers 429 with retry_after; calling again before that time has passed
// makes it longer, as on Telegram.
type Budgets struct {
	Chat   Limit // each chat, Telegram guidance 1 a second with short bursts
	Group  Limit // each group besides, Telegram 20 a minute
	Global Limit // all chats together, Telegram about 30 a second
}

// Limit allows Count calls within any window of length Per. The zero Limit allows everything.
type Limit struct {
	Count int
	Per   time.Duration
}

func (o Options) withDefaults() Options {
	if o.Token == "" {
		o.Token = DefaultToken
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Username == "" {
		o.Username = defaultUsername
	}
	if o.Name == "" {
		o.Name = defaultName
	}
	if o.FirstID == 0 {
		o.FirstID = defaultFirstID
	}
	if o.KeepCalls <= 0 {
		o.KeepCalls = defaultKeepCalls
	}
	if o.CallbackDeadline <= 0 {
		o.CallbackDeadline = defaultPressLife
	}
	if o.WebhookClient == nil {
		o.WebhookClient = &http.Client{Timeout: 60 * time.Second}
	}
	if o.WebhookPause == nil {
		o.WebhookPause = telegramPause
	}
	return o
}

// telegramPause is the pause WebhookActor makes before a repeat: the first at once, then doubling up to a minute.
func telegramPause(attempt int) time.Duration {
	if attempt <= 1 {
		return 0
	}
	return min(time.Duration(1)<<min(attempt-1, 6)*time.Second, time.Minute)
}

// botID reads the user id out of a token; a token without digits in front belongs to bot 1.
func botID(token string) int64 {
	head, _, _ := strings.Cut(token, ":")
	id, err := strconv.ParseInt(head, 10, 64)
	if err != nil || id <= 0 {
		return 1
	}
	return id
}
