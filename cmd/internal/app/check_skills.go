package app

import (
	"fmt"

	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/policy/pathrule"
	"github.com/zephbot/zephbot/tools/skill"
)

// skills checks the folders of skills, and the names that chats may use.
func (k *inspector) skills() {
	s := k.c.Skills
	if !s.Enabled {
		return
	}
	var roots []string
	for i, path := range s.Paths {
		root := k.c.Path(path)
		roots = append(roots, root)
		for _, own := range k.c.Obeyed() {
			if pathrule.Inside(own, root) {
				k.fault(fmt.Sprintf("skills.paths[%d]", i), "%s is in %s, which commands cannot reach; put the skills elsewhere", path, own)
				break
			}
		}
	}
	found, problems := skill.Find(roots)
	for _, p := range problems {
		k.fault("skills.paths", "%s", p)
	}
	known := map[string]bool{}
	for _, s := range found {
		known[s.Name] = true
	}
	for id, chat := range k.c.Telegram.Chats {
		if chat.Skills == nil {
			continue
		}
		for _, name := range *chat.Skills {
			if !known[name] {
				k.warn(config.Entry("telegram.chats", id)+".skills", "there is no skill %.80q in skills.paths", name)
			}
		}
	}
}
