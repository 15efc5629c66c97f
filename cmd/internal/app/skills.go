package app

import (
	"context"
	"fmt"
	"slices"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/agent/catalog"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/skills"
	"github.com/zephbot/zephbot/policy"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/skill"
)

// skilling is the skills, and what people decide about them.
type skilling struct {
	library      *skill.Library  // nil = no skills are configured
	skillHandler *skills.Handler // nil = the same, or nothing is stored
	listing      *catalog.Skills
}

// skillTools reads the folders of skills and returns the tool that loads one; none if no skills are configured.
func (c *Core) skillTools(*kit) ([]tools.Tool, error) {
	roots := skillRoots(c)
	if len(roots) == 0 {
		return nil, nil
	}
	c.library = skill.NewLibrary(skill.Options{
		Roots:  roots,
		Allows: c.allowsSkill,
		Log:    c.log.With().Str("component", "skills").Logger(),
	})
	c.library.Sync()
	tool, err := c.library.Tool()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", skill.ToolName, err)
	}
	return []tools.Tool{tool}, nil
}

// skillRoots returns the configured folders as absolute paths.
func skillRoots(c *Core) []string {
	if !c.cfg.Skills.Enabled {
		return nil
	}
	var roots []string
	for _, path := range c.cfg.Skills.Paths {
		roots = append(roots, c.cfg.Path(path))
	}
	return roots
}

// allowsSkill reports whether a chat or topic may use a skill.
func (c *Core) allowsSkill(o tools.Origin, name string) bool {
	place, _, ok := bot.CutChat(o.Chat)
	if !ok || !place.Ordinary() {
		return true
	}
	chats := c.cfg.Telegram.Chats
	list := chats[place.Chat].Skills
	if topic := chats[place.Chat+"/"+bot.SessionKey(o.Session).Thread()].Skills; topic != nil {
		list = topic
	}
	return list == nil || slices.Contains(*list, name)
}

// openShelf builds what lists skills in the prompt, and what answers /skills.
func (c *Core) openShelf() error {
	if c.library == nil {
		return nil
	}
	tool, ok := c.registry.Lookup(skill.ToolName)
	if !ok {
		return fmt.Errorf("%s is not registered", skill.ToolName)
	}
	var err error
	c.listing, err = catalog.NewSkills(c.catalog, c.library.Usable, func() []skill.Entry {
		list, _ := c.library.Entries()
		return slices.DeleteFunc(list, func(e skill.Entry) bool { return !e.State.Usable() })
	}, tool.Definition)
	if err != nil || c.stores == nil {
		return err
	}
	c.skillHandler = skills.New(skills.Deps{
		Store: c.stores.Bot, Library: c.library, Words: c.words(), Now: c.now,
		Line:     func(call *tools.Call) []bot.Fact { return c.records.Due(call, nil) },
		Recorded: func(ctx context.Context) { c.records.Settle(ctx) },
		Log:      c.log.With().Str("component", "skills").Logger(),
	})
	return nil
}

// offering is the catalog of the tools, with skills if there are any.
func (c *Core) offering() agent.Catalog {
	if c.listing == nil {
		return c.catalog
	}
	return c.listing
}

// followSkills reads what was decided about skills.
func (c *Core) followSkills(ctx context.Context) error {
	if c.skillHandler == nil {
		return nil
	}
	return c.skillHandler.Follow(ctx)
}

// unskilled reports whether a tool loads skills and there are none to load.
func (c *Core) unskilled(d tools.Definition) bool {
	return d.Name == skill.ToolName && d.Server == "" && (c.library == nil || !c.library.Any())
}

// readable returns which folders commands may read besides their own; nil = none.
func (c *Core) readable() func(tools.Origin) []string {
	if c.library == nil {
		return nil
	}
	return c.library.Folders
}

// trust returns how far the skills that this turn has loaded are trusted, the least of them.
func (c *Core) trust(call *tools.Call) policy.Trust {
	least := policy.Trusted
	if c.library == nil {
		return least
	}
	for _, e := range call.Earlier {
		if c.policy.Canonical(e.Tool) != skill.ToolName {
			continue
		}
		if t := c.library.Trust(skill.NameIn(e.Args)); t.Severity() > least.Severity() {
			least = t
		}
	}
	return least
}
