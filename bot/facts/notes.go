package facts

import (
	"context"
	"crypto/rand"

	"github.com/zephbot/zephbot/bot"
)

// Notes are notes about things, any number about each (cache.Notes). Safe for concurrent use by many processes: a note
// that is added while others are deleted stays.
type Notes struct{ Bucket Bucket }

// Note adds a note about a thing.
func (n Notes) Note(ctx context.Context, about string) error {
	return n.Bucket.Save(ctx, about+"/"+rand.Text(), "1")
}

// Noted lists the ids of the notes about a thing.
func (n Notes) Noted(ctx context.Context, about string) ([]string, error) {
	list, err := n.Bucket.List(ctx, about+"/")
	ids := make([]string, len(list))
	for i, f := range list {
		ids[i] = f.Key
	}
	return ids, err
}

// Forget deletes notes.
func (n Notes) Forget(ctx context.Context, ids []string) error {
	list := make([]bot.Fact, len(ids))
	for i, id := range ids {
		list[i] = n.Bucket.Fact(id, "")
	}
	return n.Bucket.Apply(ctx, list...)
}
