package catalog

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/skill"
)

// Limits of what a prompt says about skills.
const (
	allSkills   = 8   // with no more of them, all are listed, and the prompt is the same in every turn
	mostSkills  = 16  // that are listed at all
	skillLength = 400 // characters of a description
)

// Skills is a Catalog for conversations with skills: it passes on the tools that another one chooses, and has the
// prompt list the skills that may help. With more than eight of them, they are ranked like tools, by the same options.
type Skills struct {
	tools  *Catalog
	ranks  *Catalog
	usable func(o tools.Origin) []skill.Entry
	use    tools.Definition
}

// skillSchema is the schema of a skill where it is ranked like a tool.
var skillSchema = json.RawMessage(`{"type":"object"}`)

// NewSkills returns a catalog over another one. usable lists the skills of a conversation. use is the tool that loads
// one.
func NewSkills(
	below *Catalog, usable func(o tools.Origin) []skill.Entry, all func() []skill.Entry, use tools.Definition,
) (*Skills, error) {
	o := below.o
	o.Discovery, o.Pruning, o.Dependencies, o.TAFC = Discovery{Strategy: Embedding}, Pruning{}, Dependencies{}, TAFC{}
	o.Filter = Filter{Enabled: true, TopK: allSkills, MinSimilarity: o.Filter.MinSimilarity}
	o.Index, o.Budget, o.Observe = nil, 0, nil
	o.Log = zerolog.Nop() // the other catalog reports the embedder
	o.Source = func(_ tools.Origin, overlay *tools.Overlay) []tools.Definition {
		list := []tools.Definition{}
		for _, e := range all() {
			if !overlay.Takes(e.Name) {
				list = append(list, tools.Definition{Name: e.Name, Description: e.Description, Schema: skillSchema})
			}
		}
		return list
	}
	ranks, err := New(o)
	if err != nil {
		return nil, err
	}
	return &Skills{tools: below, ranks: ranks, usable: usable, use: use}, nil
}

// Tools implements agent.Catalog. It sets turn.Skills.
func (s *Skills) Tools(ctx context.Context, turn *agent.Turn, view agent.View) []agent.Offer {
	usable := s.usable(turn.Origin)
	if len(usable) > 0 { // it has a place among the tools that stays when others are added
		view.Found = append(slices.Clip(view.Found), s.use.Name)
	}
	offers := s.tools.Tools(ctx, turn, view)
	turn.Skills = nil
	at := slices.IndexFunc(offers, func(o agent.Offer) bool { return o.Name == s.use.Name })
	if len(usable) == 0 || turn.Tools.Takes(s.use.Name) {
		if at >= 0 {
			offers = slices.Concat(offers[:at], offers[at+1:]) // the list is shared
		}
		return offers
	}
	if at < 0 && len(offers) > 0 && !s.loaderHidden(turn) {
		offers = append(slices.Clip(offers), agent.Plain(s.use))
		at = len(offers) - 1
	}
	if at >= 0 {
		turn.Skills = s.skillLines(ctx, turn, view, usable)
	}
	return offers
}

// loaderHidden reports whether the tool that loads skills may not be used in a conversation at all.
func (s *Skills) loaderHidden(turn *agent.Turn) bool {
	return !slices.ContainsFunc(s.tools.o.Source(turn.Origin, turn.Tools), func(d tools.Definition) bool {
		return d.Name == s.use.Name
	})
}

// skillLines describes the skills that may help.
func (s *Skills) skillLines(ctx context.Context, turn *agent.Turn, view agent.View, usable []skill.Entry) []string {
	line := func(e *skill.Entry) string { return e.Name + ": " + cleanLine(e.Description, skillLength) }
	var list []string
	if len(usable) <= allSkills {
		for i := range usable {
			list = append(list, line(&usable[i]))
		}
		return list
	}
	named := func(name string) int {
		return slices.IndexFunc(usable, func(e skill.Entry) bool { return e.Name == name })
	}
	own := *turn
	own.Tools = tools.Only(func(name string) bool { return named(name) >= 0 })
	view.Succeeded, view.Found, view.Shown, view.Before = nil, nil, nil, nil
	for _, o := range s.ranks.Tools(ctx, &own, view) {
		if i := named(o.Name); i >= 0 && len(list) < mostSkills {
			list = append(list, line(&usable[i]))
		}
	}
	return list
}
