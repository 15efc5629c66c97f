package approval

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/policy"
	"github.com/zephbot/zephbot/policy/grant"
	"github.com/zephbot/zephbot/tools"
)

// GrantBucket holds standing approvals as facts: the key begins with the chat's, the value is a Grant.
const GrantBucket = "grant"

// allowedBucket holds, by conversation and call, the state of the files when somebody last approved the call.
const allowedBucket = "allowed"

// allowedFor is how long that state is kept.
const allowedFor = 30 * 24 * time.Hour

// Grant is a standing approval as it is stored.
type Grant struct {
	policy.Grant
	// Working directory of the conversation that it was stored in, from which its paths are shown.
	Root string    `json:"root,omitempty"`
	By   string    `json:"by"`
	Name string    `json:"name,omitempty"` // of the person who stored it
	At   time.Time `json:"at"`
	// Pattern is a glob over the text, which old versions stored instead of words. It is too imprecise to cover
	// anything now; the rule is listed, and the calls need approval.
	Pattern string `json:"pattern,omitempty"`
}

// held is a Grant with its key.
type held struct {
	Grant
	key string
}

// id returns the id of a stored grant in callback data.
func (h *held) id() string { return shortHash(h.key) }

// chat returns the chat that it was stored in.
func (h *held) chat() bot.Place {
	place, _, _ := bot.CutChat(h.key)
	return place
}

func shortHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// Grants lists the standing approvals that are valid for a conversation of a chat.
func Grants(
	ctx context.Context, facts bot.Facts, chat string, session bot.SessionKey, now time.Time,
) ([]policy.Grant, error) {
	list, err := grantsOf(ctx, facts, chat+"/", now)
	if err != nil {
		return nil, err
	}
	var out []policy.Grant
	for i := range list {
		if g := &list[i]; g.Session == "" || g.Session == string(session) {
			out = append(out, g.Grant.Grant)
		}
	}
	return out, nil
}

// grantsOf lists what is stored under a key. An approval for a conversation is only valid until its next reset.
func grantsOf(ctx context.Context, facts bot.Facts, prefix string, now time.Time) ([]held, error) {
	list, err := facts.FactsOf(ctx, GrantBucket, prefix, now)
	if err != nil {
		return nil, fmt.Errorf("read standing approvals: %w", err)
	}
	grants := make([]held, 0, len(list))
	for _, f := range list {
		h := held{key: f.Key}
		if err := json.Unmarshal([]byte(f.Value), &h.Grant); err != nil {
			return nil, fmt.Errorf("standing approval %s: %w", f.Key, err)
		}
		if h.Session != "" {
			over, err := beganSince(ctx, facts, bot.SessionKey(h.Session), h.At, now)
			if err != nil {
				return nil, err
			}
			if over {
				continue
			}
		}
		grants = append(grants, h)
	}
	return grants, nil
}

// beganSince reports whether a conversation was reset at or after a time.
func beganSince(ctx context.Context, facts bot.Facts, session bot.SessionKey, at, now time.Time) (bool, error) {
	began, err := facts.Fact(ctx, bot.ResetBucket, string(session), now)
	if err != nil {
		return false, fmt.Errorf("read the beginning of the conversation: %w", err)
	}
	t, err := time.Parse(time.RFC3339Nano, began)
	return err == nil && !at.After(t), nil //nolint:nilerr // it was never reset
}

// grantFact returns a standing approval of a chat as it is stored. The same rule has the same key.
func grantFact(chat string, g Grant) (bot.Fact, error) {
	rule, err := json.Marshal(g.Grant)
	if err != nil {
		return bot.Fact{}, fmt.Errorf("standing approval: %w", err)
	}
	value, err := json.Marshal(g)
	if err != nil {
		return bot.Fact{}, fmt.Errorf("standing approval: %w", err)
	}
	return bot.Fact{
		Bucket: GrantBucket, Key: chat + "/" + g.Tool + "/" + shortHash(string(rule)), Value: string(value),
	}, nil
}

// EndServer returns the facts that end the standing approvals of a server's tools, in every chat.
func EndServer(ctx context.Context, facts bot.Facts, server string, now time.Time) ([]bot.Fact, error) {
	list, err := grantsOf(ctx, facts, "", now)
	if err != nil {
		return nil, err
	}
	var out []bot.Fact
	for _, h := range list {
		if strings.HasPrefix(h.Tool, server+":") {
			out = append(out, bot.Fact{Bucket: GrantBucket, Key: h.key})
		}
	}
	return out, nil
}

// sortNewest sorts standing approvals, the newest first.
func sortNewest(list []held) {
	slices.SortStableFunc(list, func(a, b held) int { return cmp.Or(b.At.Compare(a.At), cmp.Compare(a.key, b.key)) })
}

// allowedKey identifies a call, whatever the content of its files.
func allowedKey(session bot.SessionKey, q *tools.Question) string {
	return string(session) + "/" + shortHash(fmt.Sprintf("%d:%s%d:%s%s", len(q.Tool), q.Tool, len(q.Caller), q.Caller,
		q.Args))
}

// rememberFiles records the files of an approved call, so that the next question can say which of them changed.
func rememberFiles(session bot.SessionKey, q *tools.Question, now time.Time, change *bot.Change) error {
	if len(q.Files) == 0 {
		return nil
	}
	value, err := json.Marshal(grant.Relative(q.Files))
	if err != nil {
		return fmt.Errorf("files of an approved call: %w", err)
	}
	change.Facts = append(change.Facts, bot.Fact{
		Bucket: allowedBucket, Key: allowedKey(session, q), Value: string(value), Expires: now.Add(allowedFor),
	})
	return nil
}

// changedSince returns the files of a call that have changed since it was last approved in this conversation.
func (b *Broker) changedSince(ctx context.Context, session bot.SessionKey, q *tools.Question) ([]string, error) {
	if len(q.Files) == 0 || len(q.Changed) > 0 {
		return q.Changed, nil
	}
	value, err := b.deps.Store.Fact(ctx, allowedBucket, allowedKey(session, q), b.deps.Now())
	if err != nil || value == "" {
		return nil, err
	}
	var before []policy.File
	if err := json.Unmarshal([]byte(value), &before); err != nil {
		return nil, fmt.Errorf("files of an approved call: %w", err)
	}
	return grant.ChangedFiles(before, grant.Relative(q.Files)), nil
}
