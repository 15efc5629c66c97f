package texts

import (
	"fmt"
	"strings"
	"time"

	"github.com/zephbot/zephbot/bot/render"
)

// skillBook is about skills.
type skillBook struct {
	Head, Off, None, Help       string
	More                        string            // first, last, of how many
	Rest                        string            // how many more there are
	States                      map[string]string // by state
	By                          string            // name, time
	Details                     skillDetailBook
	Findings                    map[string]string // by kind: file with line
	Accept, Limit, Refuse, Back string            // buttons
	Told                        skillToldBook
	Done                        map[string]string // by verdict: name
	Already                     string            // name, state
	Unknown                     string            // name
	Outdated, Private           string
}

// skillToldBook is what admins are told of skills that wait.
type skillToldBook struct {
	Waiting string // names
	Show    string // button
}

// skillDetailBook is what is said about one skill.
type skillDetailBook struct {
	Files                                     count
	Size                                      string // files, size
	Program                                   string
	License, Compatibility, Allowed, Metadata string // what the skill says
	Begins                                    string
	Code                                      string // name, code of the content
}

// Skill is a skill as it is shown.
type Skill struct {
	Name, Description string
	State             string    // waiting, changed, accepted, limited, refused
	By                string    // who decided; "" = nobody
	At                time.Time // when

	// for details
	License, Compatibility, Allowed, Metadata string
	Files                                     []SkillFile
	Size                                      int64
	Body                                      string
	Findings                                  []SkillFinding
	Code                                      string // of the content
}

// SkillFile is a file of a skill.
type SkillFile struct {
	Path    string
	Size    int64
	Program bool
}

// SkillFinding is what a person who decides should look at.
type SkillFinding struct {
	Kind  string
	Where string // file, or file:line
	What  string // the rule or field; may be empty
}

// SkillList is a page of the list.
type SkillList struct {
	Page      []Skill
	From, All int // number of the first of the page, counted from 1, and of all
	Problems  []string
	Note      string // above the list
}

// Limits of what is shown, so that a message holds it. Lengths are in UTF-16 units.
const (
	skillSummary  = 200 // of a description in the list
	skillProblems = 5
	skillFiles    = 15
	skillFindings = 10
	skillLine     = 200 // of a line
	skillPath     = 60
	skillMessage  = 3900 // of the details; what is cut off is the end of the instructions
)

// Skills answers /skills.
func (w Words) Skills(language string, l SkillList) string {
	b := w.in(language).Skills
	var lines []string
	if l.Note != "" {
		lines = append(lines, l.Note, "")
	}
	lines = append(lines, b.Head)
	for i := range l.Page {
		s := &l.Page[i]
		lines = append(lines, fmt.Sprintf("%d. %s – %s", l.From+i, s.Name, w.skillState(language, s)))
		lines = append(lines, "   "+render.Cut(w.shown(language, s.Description), skillSummary))
	}
	if l.All == 0 {
		lines = append(lines, b.None)
	}
	if l.All > len(l.Page) {
		lines = append(lines, "", fmt.Sprintf(b.More, l.From, l.From+len(l.Page)-1, l.All))
	}
	for i, p := range l.Problems {
		if i == skillProblems {
			lines = append(lines, fmt.Sprintf(b.Rest, len(l.Problems)-skillProblems))
			break
		}
		lines = append(lines, "⚠ "+render.Cut(w.shown(language, p), skillLine))
	}
	return strings.Join(lines, "\n")
}

// skillState says what may be done with a skill, and who decided so.
func (w Words) skillState(language string, s *Skill) string {
	b := w.in(language).Skills
	text := b.States[s.State]
	if s.By != "" {
		text += ", " + fmt.Sprintf(b.By, named(s.By), w.Moment(language, s.At))
	}
	return text
}

// SkillDetails is what an admin sees before deciding about a skill. What deserves attention is above the words of the
// skill, so that none of these can push it out of the message.
func (w Words) SkillDetails(language string, s *Skill) string {
	b := w.in(language).Skills
	lines := []string{s.Name + " – " + w.skillState(language, s)}
	lines = append(lines, w.skillFindings(language, s.Findings)...)
	lines = append(lines, fmt.Sprintf(b.Details.Size, b.Details.Files.say(len(s.Files)), w.Bytes(language, s.Size)))
	for i, f := range s.Files {
		if i == skillFiles {
			lines = append(lines, fmt.Sprintf(b.Rest, len(s.Files)-skillFiles))
			break
		}
		line := "• " + render.Cut(w.shown(language, f.Path), skillPath) + " – " + w.Bytes(language, f.Size)
		if f.Program {
			line += ", " + b.Details.Program
		}
		lines = append(lines, line)
	}
	lines = append(lines, "", w.shown(language, s.Description))
	for _, said := range [][2]string{
		{b.Details.License, s.License},
		{b.Details.Compatibility, s.Compatibility},
		{b.Details.Allowed, s.Allowed},
		{b.Details.Metadata, s.Metadata},
	} {
		if said[1] != "" {
			lines = append(lines, fmt.Sprintf(said[0], render.Cut(w.shown(language, said[1]), skillLine)))
		}
	}
	body, _ := w.Visible(language).Text(render.Cut(s.Body, skillMessage))
	lines = append(lines, "", b.Details.Begins, body)
	return render.Cut(strings.Join(lines, "\n"), skillMessage) + "\n\n" + fmt.Sprintf(b.Details.Code, s.Name, s.Code)
}

// skillFindings lists what deserves attention.
func (w Words) skillFindings(language string, list []SkillFinding) []string {
	b := w.in(language).Skills
	var lines []string
	for i, f := range list {
		if i == skillFindings {
			return append(lines, fmt.Sprintf(b.Rest, len(list)-skillFindings))
		}
		line := "⚠ " + fmt.Sprintf(b.Findings[f.Kind], render.Cut(w.shown(language, f.Where), skillPath))
		if f.What != "" {
			line += " (" + render.Cut(w.shown(language, f.What), skillPath) + ")"
		}
		lines = append(lines, line)
	}
	return lines
}

// SkillButtons are the labels below SkillDetails.
func (w Words) SkillButtons(language string) (accept, limit, refuse, back string) {
	b := w.in(language).Skills
	return b.Accept, b.Limit, b.Refuse, b.Back
}

// SkillDecided says what was decided about a skill.
func (w Words) SkillDecided(language, verdict, name string) string {
	return fmt.Sprintf(w.in(language).Skills.Done[verdict], name)
}

// SkillAlready answers a decision that changes nothing.
func (w Words) SkillAlready(language string, s *Skill) string {
	return fmt.Sprintf(w.in(language).Skills.Already, s.Name, w.skillState(language, s))
}

// SkillUnknown says that there is no such skill.
func (w Words) SkillUnknown(language, name, nearest string) string {
	text := fmt.Sprintf(w.in(language).Skills.Unknown, named(name))
	if nearest != "" {
		text += " " + fmt.Sprintf(w.in(language).Models.Near, nearest)
	}
	return text
}

// SkillOutdated answers a decision about something that is not there any more in this form.
func (w Words) SkillOutdated(language string) string { return w.in(language).Skills.Outdated }

// SkillsOff answers /skills where there are none.
func (w Words) SkillsOff(language string) string { return w.in(language).Skills.Off }

// SkillsHelp says how /skills is used.
func (w Words) SkillsHelp(language string) string { return w.in(language).Skills.Help }

// SkillsInPrivate answers a request for details in a group.
func (w Words) SkillsInPrivate(language string) string { return w.in(language).Skills.Private }

// skillsNamed is how many skills SkillsWaiting names.
const skillsNamed = 10

// SkillsWaiting tells an admin which skills nobody has decided about, and labels the button that lists them.
func (w Words) SkillsWaiting(language string, names []string) (text, button string) {
	b := &w.in(language).Skills
	more := len(names) - skillsNamed
	list := strings.Join(names[:min(len(names), skillsNamed)], ", ")
	if more > 0 {
		list += " " + fmt.Sprintf(b.Rest, more)
	}
	return fmt.Sprintf(b.Told.Waiting, list), b.Told.Show
}
