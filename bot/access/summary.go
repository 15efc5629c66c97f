package access

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/zephbot/zephbot/bot"
)

// Summary returns a line about who may talk, for the start of the program: whom the configuration lists, and whom
// admins have admitted in the chat.
func (g *Guard) Summary(ctx context.Context) (string, error) {
	place := bot.Place{Channel: g.opts.Channel, Bot: g.opts.Bot}
	entries, err := g.People(ctx, place)
	if err != nil {
		return "", err
	}
	chats, err := g.groupEntries(ctx, place)
	if err != nil {
		return "", err
	}
	blocked := func(e Entry) bool { return e.Role == Blocked }
	admitted := joinParts(
		", ", countInWords(len(slices.DeleteFunc(entries, blocked)), "person", "people"),
		countInWords(len(slices.DeleteFunc(chats, blocked)), "group", "groups"),
	)
	users := countInWords(len(g.opts.Users), "person", "people")
	if slices.Contains(g.opts.Users, Everyone) {
		users = "EVERYONE (all people)"
	}
	people := joinParts(" and ", users, countInWords(len(g.opts.Admins), "admin", "admins"))
	groups := countInWords(len(g.opts.Chats), "group", "groups")
	if slices.Contains(g.opts.Chats, Everyone) {
		groups = "ALL GROUPS"
	}
	if admitted == "" && people == "" {
		people = "nobody"
	}
	if groups == "" && !strings.Contains(admitted, "group") {
		groups = "no group"
	}
	text := joinParts(", ", people, groups)
	if admitted != "" {
		admitted = "admitted in the chat: " + admitted
	}
	return joinParts("; ", text, admitted), nil
}

// joinParts returns the parts that are not empty, with a separator between them.
func joinParts(separator string, parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), separator)
}

// countInWords returns a number in words; "" of none.
func countInWords(n int, one, many string) string {
	switch n {
	case 0:
		return ""
	case 1:
		return "1 " + one
	default:
		return fmt.Sprintf("%d %s", n, many)
	}
}
