package texts

import (
	"fmt"
	"strings"
	"time"

	"github.com/zephbot/zephbot/bot/render"
)

// How much of a memory a list and a question show.
const (
	memoryInList = 300
	memoryAlone  = 1500
)

// Memory is something that is remembered, as people see it.
type Memory struct {
	N    int    // in a list, counted from 1
	Key  string // what it is about; "" = nothing in particular
	Text string
	Name string // of who had it remembered; "" = not known
	At   time.Time
}

// Memories is a page of what is remembered.
type Memories struct {
	Shared    bool // in a group
	Page      []Memory
	From, All int    // number of the first of the page, counted from 1, and of all
	Note      string // stands below
}

// MemoryLabels are the labels of the buttons of /memory.
type MemoryLabels struct{ Change, Delete, All, Yes, YesAll, Back string }

// memoryAsks are the questions before something is deleted.
type memoryAsks struct {
	One           string // text
	All, AllGroup count
}

// memoryBook is what /memory says.
type memoryBook struct {
	Head, HeadGroup, None, NoneGroup string
	From                             string // name, date
	FromSomebody                     string // date
	More                             string // from, to, of
	ElseWhere                        string
	Buttons                          MemoryLabels
	Asks                             memoryAsks
	How                              string // text, id
	Deleted, Gone, Nowhere, Help     string
	Cleared                          count
	Edited                           string // text
	Off                              string
	Refused                          map[string]string // why
	Size                             string            // bytes, limit
}

// said is a memory with what it is about, at most so many characters of it.
func (m *Memory) said(most int) string {
	text := m.Text
	if m.Key != "" {
		text = m.Key + ": " + text
	}
	return render.Cut(text, most)
}

// Memories answers /memory.
func (w Words) Memories(language string, list Memories) string {
	b := w.in(language).Memory
	head, none := b.Head, b.None
	if list.Shared {
		head, none = b.HeadGroup, b.NoneGroup
	}
	lines := []string{head}
	if list.All == 0 {
		lines[0] = none
	}
	for i := range list.Page {
		m := &list.Page[i]
		day := w.Day(language, m.At)
		from := fmt.Sprintf(b.FromSomebody, day)
		if name := named(m.Name); name != "" {
			from = fmt.Sprintf(b.From, name, day)
		}
		lines = append(lines, fmt.Sprintf("%d. %s (%s)", m.N, m.said(memoryInList), from))
	}
	if len(list.Page) < list.All {
		lines = append(lines, fmt.Sprintf(b.More, list.From, list.From+len(list.Page)-1, list.All))
	}
	if list.Shared {
		lines = append(lines, b.ElseWhere)
	}
	if list.Note != "" {
		lines = append(lines, "", list.Note)
	}
	return strings.Join(lines, "\n")
}

// MemoryLabels are the labels of its buttons.
func (w Words) MemoryLabels(language string) MemoryLabels {
	return w.in(language).Memory.Buttons
}

// MemoryAsk asks whether to delete a memory.
func (w Words) MemoryAsk(language string, m Memory) string {
	return fmt.Sprintf(w.in(language).Memory.Asks.One, m.said(memoryAlone))
}

// MemoryAskAll asks whether to delete all n.
func (w Words) MemoryAskAll(language string, n int, shared bool) string {
	b := w.in(language).Memory
	if shared {
		return b.Asks.AllGroup.say(n)
	}
	return b.Asks.All.say(n)
}

// MemoryHow says how to change a memory.
func (w Words) MemoryHow(language string, m Memory, id string) string {
	return fmt.Sprintf(w.in(language).Memory.How, m.said(memoryAlone), id)
}

// MemoryDeleted says that a memory was deleted.
func (w Words) MemoryDeleted(language string) string { return w.in(language).Memory.Deleted }

// MemoryCleared says that all n were deleted.
func (w Words) MemoryCleared(language string, n int) string {
	return w.in(language).Memory.Cleared.say(n)
}

// MemoryEdited says how a memory reads now.
func (w Words) MemoryEdited(language string, m Memory) string {
	return fmt.Sprintf(w.in(language).Memory.Edited, m.said(memoryAlone))
}

// MemoryGone says that there is no such memory, any more.
func (w Words) MemoryGone(language string) string { return w.in(language).Memory.Gone }

// MemoryNowhere says that nothing is remembered in this chat.
func (w Words) MemoryNowhere(language string) string { return w.in(language).Memory.Nowhere }

// MemoryHelp says what /memory can be followed by.
func (w Words) MemoryHelp(language string) string { return w.in(language).Memory.Help }

// MemoryOff says that nothing is ever remembered.
func (w Words) MemoryOff(language string) string { return w.in(language).Memory.Off }

// MemoryRefused says why a text of so many bytes is not remembered.
func (w Words) MemoryRefused(language, why string, size, limit int) string {
	b := w.in(language).Memory
	text := b.Refused[why]
	if why == "long" {
		text += " " + fmt.Sprintf(b.Size, size, limit)
	}
	return text
}
