package access

import (
	"fmt"
	"slices"
)

// Summary returns a line about who may talk, for the start of the program.
func (g *Guard) Summary() string {
	people := countInWords(g.opts.Users, "person", "people")
	if slices.Contains(g.opts.Users, Everyone) {
		people = "EVERYONE (all people)"
	}
	admins := countInWords(g.opts.Admins, "admin", "admins")
	switch {
	case people == "" && admins == "":
		people = "nobody"
	case people == "":
		people = admins
	case admins != "":
		people += " and " + admins
	}
	if admitted := g.admittedIDs(); len(admitted) > 0 {
		people += ", " + countInWords(admitted, "person", "people") + " by the chat"
	}
	groups := countInWords(g.opts.Chats, "group", "groups")
	switch {
	case slices.Contains(g.opts.Chats, Everyone):
		groups = "ALL GROUPS"
	case groups == "":
		groups = "no group"
	}
	return people + ", " + groups
}

// countInWords returns the length of a list in words; "" if it is empty.
func countInWords(list []string, one, many string) string {
	switch len(list) {
	case 0:
		return ""
	case 1:
		return "1 " + one
	default:
		return fmt.Sprintf("%d %s", len(list), many)
	}
}

// admittedIDs lists the people who were admitted in the chat, as remembered.
func (g *Guard) admittedIDs() []string {
	var ids []string
	if known := g.known.Load(); known != nil {
		for id, e := range *known {
			if e.Role.rank() > 0 {
				ids = append(ids, id)
			}
		}
	}
	return ids
}
