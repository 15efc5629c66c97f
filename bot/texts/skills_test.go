package texts_test

import (
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/zephbot/zephbot/bot/texts"
)

// skill says the sentences about skills.
func skill(l string) map[string][]string {
	s := texts.Skill{
		Name: "pdf", Description: "X", State: "waiting", License: "MIT", Compatibility: "X", Allowed: "X", Metadata: "X", Size: 3000, Body: "X", Code: "0123",
		Files: make([]texts.SkillFile, 30), Findings: make([]texts.SkillFinding, 0, 12),
	}
	for i := range s.Files {
		s.Files[i] = texts.SkillFile{Path: "x", Size: 1, Program: true}
	}
	for _, kind := range []string{"orders", "credential", "unseen", "unknown", "binary"} {
		s.Findings = append(s.Findings, texts.SkillFinding{Kind: kind, Where: "x:1", What: "y"}, texts.SkillFinding{Kind: kind, Where: "x"}, texts.SkillFinding{Kind: kind, Where: "z"})
	}
	m := map[string][]string{
		"SkillDetails":  {w.SkillDetails(l, &s)},
		"SkillButtons":  {},
		"ToolsUnset":    {strings.TrimSpace(w.ToolsUnset(l, []texts.Unset{{Tool: "x", Key: "y.z"}}))},
		"SkillAlready":  {w.SkillAlready(l, &s)},
		"SkillUnknown":  {w.SkillUnknown(l, "x", ""), w.SkillUnknown(l, "x", "y")},
		"SkillOutdated": {w.SkillOutdated(l)}, "SkillsOff": {w.SkillsOff(l)}, "SkillsHelp": {w.SkillsHelp(l)}, "SkillsInPrivate": {w.SkillsInPrivate(l)},
		"Skills": {w.Skills(l, texts.SkillList{From: 1})},
	}
	text, show := w.SkillsWaiting(l, []string{"pdf"})
	many, _ := w.SkillsWaiting(l, strings.Split(strings.Repeat("pdf ", 11)+"pdf", " "))
	m["SkillsWaiting"] = []string{text, show, many}
	accept, limit, refuse, back := w.SkillButtons(l)
	m["SkillButtons"] = []string{accept, limit, refuse, back}
	for _, state := range []string{"waiting", "changed", "accepted", "limited", "refused"} {
		// the lines below a name are indented, which no other sentence is
		list := w.Skills(l, texts.SkillList{Page: []texts.Skill{{Name: "x", Description: "y", State: state, By: "Ann", At: at}}, From: 1, All: 3, Problems: make([]string, 9), Note: "X"})
		m["Skills"] = append(m["Skills"], strings.ReplaceAll(list, "\n   ", "\n"))
	}
	for _, verdict := range []string{"accepted", "limited", "refused"} {
		m["SkillDecided"] = append(m["SkillDecided"], w.SkillDecided(l, verdict, "x"))
	}
	return m
}

// TestSkillFits: what an admin sees of a skill fits into one message, whatever it holds, and hides nothing.
func TestSkillFits(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ж ", 2000)
	s := texts.Skill{
		Name: strings.Repeat("a", 64), Description: strings.Repeat("ж", 1024), State: "waiting", License: long, Compatibility: long, Allowed: long, Metadata: long, Body: "one\n\u202etwo\n" + long, Code: "0123",
	}
	for range 256 {
		s.Files = append(s.Files, texts.SkillFile{Path: long})
		s.Findings = append(s.Findings, texts.SkillFinding{Kind: "unknown", Where: long, What: long})
	}
	for _, l := range w.Languages() {
		text := w.SkillDetails(l, &s)
		if n := len(utf16.Encode([]rune(text))); n > 4096 {
			t.Errorf("%s: %d characters", l, n)
		}
		if !strings.HasSuffix(text, "0123") || strings.Count(text, "⚠") != 10 {
			t.Errorf("%s: what matters is cut off: %s", l, text)
		}
		if strings.Contains(text, "\u202e") {
			t.Errorf("%s: an invisible character is not shown", l)
		}
	}
}
