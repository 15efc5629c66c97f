package app

import (
	"context"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/access"
	"github.com/zephbot/zephbot/bot/command"
	"github.com/zephbot/zephbot/bot/telegram"
	"github.com/zephbot/zephbot/bot/texts"
)

// menus keeps the command menus of everybody in private chats, of each admin, of each approver where not everybody may
// decide, and of groups, in every language there are texts for.
func (c *Core) menus(client *telegram.Client, s *service, guard *access.Guard) *telegram.Menus {
	log := c.log.With().Str("component", "menus").Logger()
	return telegram.NewMenus(client, c.stores.Bot, log, c.now, telegram.MenuOptions{Wanted: func() []telegram.Menu {
		all := guard.EverybodyDecides(bot.Place{})
		list := menuOf(telegram.AllPrivate(), s.commands.Menu(command.Reader{Decides: all}))
		list = append(list, menuOf(telegram.AllGroups(), s.commands.Menu(command.Reader{Decides: all, Group: true}))...)
		for _, id := range guard.Operators() {
			list = append(list, menuOf(
				telegram.OneChat(id), s.commands.Menu(command.Reader{Admin: true, Decides: true}),
			)...)
		}
		if !all {
			for _, id := range guard.Deciders() {
				list = append(list, menuOf(telegram.OneChat(id), s.commands.Menu(command.Reader{Decides: true}))...)
			}
		}
		return list
	}})
}

// profiles sets what the bot's profile says, in every language there are texts for.
func (c *Core) profiles(client *telegram.Client) *telegram.Profiles {
	words := texts.Words{}
	var list []telegram.Profile
	for i, language := range words.Languages() {
		p := telegram.Profile{
			Language: language, Description: words.ProfileDescription(language), Short: words.ProfileShort(language),
		}
		if i == 0 {
			p.Language = ""
		}
		list = append(list, p)
	}
	log := c.log.With().Str("component", "profile").Logger()
	return telegram.NewProfiles(client, c.stores.Bot, log, c.now, list)
}

// decides reports whether the sender of a message may decide questions.
func (ch *channel) decides(ctx context.Context, msg *bot.Message) (bool, error) {
	rights, err := ch.rights(ctx, msg.Place, msg.Caller)
	return rights.Decides(msg.Caller), err
}

// menuOf describes commands in each language; the first language is also that of people with another one.
func menuOf(scope telegram.Scope, names []string) []telegram.Menu {
	words := texts.Words{}
	var list []telegram.Menu
	for i, language := range words.Languages() {
		menu := telegram.Menu{Scope: scope, Language: language}
		for _, name := range names {
			menu.Commands = append(menu.Commands, telegram.Command{
				Name:        name,
				Description: words.Describe(language, name),
			})
		}
		if i == 0 {
			menu.Language = ""
		}
		list = append(list, menu)
	}
	return list
}
