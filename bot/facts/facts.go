// Package facts keeps small durable values in a store, for packages that know neither the store nor each other: one
// Bucket instead of an adapter for each of them, and a Keeper for changes that must not be lost while the store fails.
package facts

import (
	"context"
	"time"

	"github.com/zephbot/zephbot/bot"
)

// Store is what a Bucket needs of a store (bot.Store).
type Store interface {
	bot.Writer
	bot.Facts
}

// Bucket is one bucket of facts; its owner defines what keys and values mean. Safe for concurrent use.
type Bucket struct {
	Name  string
	Store Store
	Now   func() time.Time
	For   time.Duration // how long a value is kept; 0 = until it is deleted
}

// Load returns the value of a key; "" if there is none.
func (b Bucket) Load(ctx context.Context, key string) (string, error) {
	return b.Store.Fact(ctx, b.Name, key, b.Now())
}

// List returns the facts whose keys begin with prefix, by key.
func (b Bucket) List(ctx context.Context, prefix string) ([]bot.Fact, error) {
	return b.Store.FactsOf(ctx, b.Name, prefix, b.Now())
}

// Save stores a value durably; "" deletes it.
func (b Bucket) Save(ctx context.Context, key, value string) error {
	return b.Apply(ctx, b.Fact(key, value))
}

// Fact returns a fact to be stored with a Change; a value of "" deletes it.
func (b Bucket) Fact(key, value string) bot.Fact {
	f := bot.Fact{Bucket: b.Name, Key: key, Value: value}
	if b.For > 0 && value != "" {
		f.Expires = b.Now().Add(b.For)
	}
	return f
}

// Apply stores facts in one commit.
func (b Bucket) Apply(ctx context.Context, facts ...bot.Fact) error {
	_, err := b.Store.Apply(ctx, &bot.Change{Facts: facts})
	return err
}

// Once returns the value of a key, and stores fresh if there is none. If several callers ask at the same time, in this
// process or others, only one of them stores its value.
func (b Bucket) Once(ctx context.Context, key, fresh string) (string, error) {
	if _, err := b.Store.Apply(ctx, &bot.Change{FactsIf: []bot.Fact{b.Fact(key, fresh)}}); err != nil {
		return "", err
	}
	return b.Load(ctx, key)
}

// Recall returns what Remember stored for a tool call of a session; "" if there is nothing.
func (b Bucket) Recall(ctx context.Context, session, call string) (string, error) {
	return b.Load(ctx, session+"/"+call)
}

// Remember stores a value for a tool call of a session.
func (b Bucket) Remember(ctx context.Context, session, call, value string) error {
	return b.Save(ctx, session+"/"+call, value)
}
