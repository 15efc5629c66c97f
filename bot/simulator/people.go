package simulator

import (
	"slices"

	"github.com/zephbot/zephbot/bot/telegram/telegramtest"
)

// Ids of the simulated people and of their groups. The simulated bot has to admit those that are on its lists.
const (
	Ann  int64 = 1001 // admin
	Ben  int64 = 1002
	Cy   int64 = 1003 // speaks German
	Dora int64 = 1004 // on no list: the bot should refuse her, and ask whether to admit her

	Team   int64 = -1001 // a forum with Ann, Ben and Cy
	Garden int64 = -1002 // a group with Ann and Dora, on no list: the bot should ask whether to admit it
)

// Topics of the group.
const (
	generalTopic = 1
	DeploysTopic = 7
)

// Person is one of the people on the page.
type Person struct {
	ID       int64  `json:"id"`
	Name     string `json:"name"`
	Username string `json:"username"` // without "@"
	Language string `json:"language"`
	Admin    bool   `json:"admin"`
	Listed   bool   `json:"listed"` // should be admitted
	Unread   int    `json:"unread"` // over all chats, set by the view

	Groups []int64 `json:"groups"` // that the person is in
}

// People returns the people of the simulator, the admin first.
func People() []Person {
	return []Person{
		{
			ID:       Ann,
			Name:     "Ann",
			Username: "ann",
			Language: "en",
			Admin:    true,
			Listed:   true,
			Groups:   []int64{Team, Garden},
		},
		{ID: Ben, Name: "Ben", Username: "ben", Language: "en", Listed: true, Groups: []int64{Team}},
		{ID: Cy, Name: "Cy", Username: "cy", Language: "de", Listed: true, Groups: []int64{Team}},
		{ID: Dora, Name: "Dora", Username: "dora", Language: "en", Groups: []int64{Garden}},
	}
}

// AllowedUsers returns the ids to admit (telegram.allowed_users).
func AllowedUsers() []int64 { return []int64{Ann, Ben, Cy} }

// Admins returns the ids of the admins (telegram.admins).
func Admins() []int64 { return []int64{Ann} }

// AllowedChats returns the ids of the groups to admit (telegram.allowed_chats).
func AllowedChats() []int64 { return []int64{Team} }

// groupIDs returns the ids of all groups.
func groupIDs() []int64 { return []int64{Team, Garden} }

// membersOf returns the people of a group.
func membersOf(group int64) []int64 {
	var out []int64
	for _, p := range People() {
		if slices.Contains(p.Groups, group) {
			out = append(out, p.ID)
		}
	}
	return out
}

// populateChats creates the people and chats.
func populateChats(fake *telegramtest.Server) {
	for _, p := range People() {
		fake.AddUser(telegramtest.User{ID: p.ID, FirstName: p.Name, Username: p.Username, Language: p.Language})
		fake.AddPrivate(p.ID)
	}
	fake.AddGroup(telegramtest.Group{
		ID: Team, Title: "Team", Forum: true, Members: membersOf(Team),
		// As an admin the bot can show a message to one person alone.
		Admins: []int64{Ann, fake.BotID()},
		Topics: []telegramtest.Topic{{ID: DeploysTopic, Name: "Deploys"}},
	})
	fake.AddGroup(telegramtest.Group{ID: Garden, Title: "Garden", Members: membersOf(Garden), Admins: []int64{Dora}})
}
