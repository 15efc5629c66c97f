package texts_test

import (
	"strings"
	"testing"
	"time"

	"github.com/zephbot/zephbot/bot/texts"
)

// private is all that /export and /forget say in a language.
func private(l string) map[string][]string {
	w := texts.Words{}
	erase, keep := w.ForgetButtons(l)
	return map[string][]string{
		"ForgetAsk": {w.ForgetAsk(l, false), w.ForgetAsk(l, true)}, "ForgetButtons": {erase, keep}, "ForgetKept": {w.ForgetKept(l)}, "ForgetOld": {w.ForgetOld(l)},
		"ForgetBegun": {w.ForgetBegun(l)}, "ForgetPrivate": {w.ForgetPrivate(l)},
		"ForgetReceipt": {w.ForgetReceipt(l, texts.Erased{}), w.ForgetReceipt(l, texts.Erased{
			Gone: []texts.ErasedCount{{What: "lane", N: 2}}, Stays: []texts.ErasedCount{{What: "fact", N: 1, Why: "limit"}}, Beyond: []string{"backups"},
			Problems: []string{"vectors"}, Pseudonym: "erased-x",
		})},
		"ExportBegun": {w.ExportBegun(l)}, "ExportOften": {w.ExportOften(l)}, "ExportDone": {w.ExportDone(l, false), w.ExportDone(l, true)},
		"ExportLarge": {w.ExportLarge(l, 50<<20)}, "ExportFailed": {w.ExportFailed(l)}, "ExportNothing": {w.ExportNothing(l)},
		"Transcript": pageWords(w.Transcript(l)), "TranscriptSteps": {w.TranscriptSteps(l, 1), w.TranscriptSteps(l, 3), w.TranscriptSteps(l, 7)}, "TranscriptFoot": {w.TranscriptFoot(l, time.Unix(0, 0))},
		"TranscriptTime": {first(w.TranscriptTime(time.Unix(0, 0)))}, "TranscriptButton": {w.TranscriptButton(l)}, "TranscriptBegun": {w.TranscriptBegun(l, false), w.TranscriptBegun(l, true)},
		"TranscriptDone": {w.TranscriptDone(l, false), w.TranscriptDone(l, true)}, "TranscriptNothing": {w.TranscriptNothing(l)}, "TranscriptFirst": {w.TranscriptFirst(l)}, "TranscriptOften": {w.TranscriptOften(l)},
		"TranscriptUnknown": {w.TranscriptUnknown(l)}, "TranscriptFailed": {w.TranscriptFailed(l)}, "TranscriptLarge": {w.TranscriptLarge(l, 50<<20)},
		"ExportReadme": {w.ExportReadme(l, time.Unix(0, 0))},
	}
}

func first(text, _ string) string { return text }

func pageWords(p texts.Transcript) []string {
	return []string{
		p.Title, p.Bot, p.Somebody, p.Edited, p.Scheduled, p.Forwarded, p.Failed, p.Open, p.Cut, p.Others, p.Bare,
	}
}

func TestForgetReceipt(t *testing.T) {
	t.Parallel()
	got := texts.Words{}.ForgetReceipt("en", texts.Erased{
		Gone:  []texts.ErasedCount{{What: "lane", N: 2}, {What: "something new", N: 1}},
		Stays: []texts.ErasedCount{{What: "fact", N: 1, Why: "limit"}}, Beyond: []string{"backups"}, Pseudonym: "erased-x",
	})
	for _, want := range []string{
		"\n• conversations: 2\n• something new: 1\n", "\n• settings, tasks and notes: 1 (an admin has set it for you)\n",
		"\n• backups of the operator", " erased-x.",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in:\n%s", want, got)
		}
	}
}
