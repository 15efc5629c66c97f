package skill

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/zephbot/zephbot/policy/act"
	"github.com/zephbot/zephbot/policy/nearest"
	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/tools"
)

// ToolName is the tool that loads a skill.
const ToolName = "use_skill"

// Says returns the tool's statement for the policy. Loading a skill reads what an admin has accepted, and nothing else.
func Says() []act.Tool {
	return []act.Tool{{Name: ToolName, Statement: act.Statement{
		Act: act.Recalls, Verb: act.Read, Aliases: []string{"load_skill", "invoke_skill"},
	}}}
}

// maxShownFiles is how many files of a skill the model is told.
const maxShownFiles = 64

type useArgs struct {
	Name string `json:"name" jsonschema:"name of the skill, as listed"`
	File string `json:"file,omitempty" jsonschema:"a file of the skill to read instead of its instructions, such as references/forms.md"`
}

// Tool returns use_skill over a library.
func (l *Library) Tool() (tools.Tool, error) {
	tool, err := tools.New(tools.Typed[useArgs]{
		Definition: tools.Definition{
			Name: ToolName, ReadOnly: true,
			Description: "Loads a skill: instructions for a kind of work, written by people for you. " +
				"When a listed skill fits what you are asked, load it first and follow it. " +
				"Its scripts are files: run them with the tool for commands, by the path that is given to you. " +
				"With file it returns a file of the skill instead.",
		},
		Adjust: func(s *jsonschema.Schema) {
			s.Properties["name"].MinLength, s.Properties["name"].MaxLength = new(1), new(maxName)
			s.Properties["file"].MaxLength = new(512)
		},
		Describe: func(_ context.Context, _ *tools.Call, in useArgs) (tools.Subject, error) {
			show := in.Name
			if in.File != "" {
				show += "/" + in.File
			}
			return tools.Subject{Inputs: []string{show}, Show: show}, nil
		},
		Run: l.use,
	})
	if err != nil {
		return tool, err
	}
	stated, err := tools.State([]tools.Tool{tool}, Says())
	if err != nil {
		return tool, err
	}
	return stated[0], nil
}

// NameIn returns the name of the skill in the arguments of a call of use_skill; "" = there is none.
func NameIn(args json.RawMessage) string {
	var in useArgs
	if json.Unmarshal(args, &in) != nil {
		return ""
	}
	return strings.TrimSpace(in.Name)
}

// loadedSkill is Result.Raw of use_skill.
type loadedSkill struct {
	Name string `json:"name"`
	Hash string `json:"hash"`
	Dir  string `json:"dir"`
	File string `json:"file,omitempty"`
}

func (l *Library) use(_ context.Context, call *tools.Call, in useArgs) (*tools.Result, error) {
	e, err := l.find(call.Origin, strings.TrimSpace(in.Name))
	if err != nil {
		return nil, err
	}
	s, contents, changed := l.fresh(e)
	if changed != nil {
		refused := tools.Refused(
			reason.New(reason.SkillChanged, e.Name),
			"Do the work without it, or tell the user that an admin has to look at it again with /skills.",
		)
		refused.Err = changed
		return nil, refused
	}
	raw := loadedSkill{Name: s.Name, Hash: s.Hash, Dir: s.Dir, File: in.File}
	if in.File == "" {
		return &tools.Result{Text: s.instructions(e.State), Raw: raw}, nil
	}
	content, err := s.open(in.File, contents)
	if err != nil {
		return nil, err
	}
	return &tools.Result{Text: content, Raw: raw}, nil
}

// find finds a skill that a conversation may use.
func (l *Library) find(o tools.Origin, name string) (Entry, error) {
	usable := l.Usable(o)
	if i := slices.IndexFunc(usable, func(e Entry) bool { return e.Name == name }); i >= 0 {
		return usable[i], nil
	}
	e := &tools.Error{
		Category: tools.InvalidParameters,
		Mistake:  true,
		Message:  fmt.Sprintf("There is no skill %.80q here.", name),
	}
	all, _ := l.Entries()
	names := make([]string, len(usable))
	for i := range usable {
		names[i] = usable[i].Name
	}
	i := slices.IndexFunc(all, func(e Entry) bool { return e.Name == name })
	near, close := nearest.Nearest(name, names)
	switch {
	case i >= 0 && !all[i].State.Usable():
		e = tools.Refused(
			reason.New(reason.SkillUnaccepted, name),
			"Do the work without it, or tell the user that an admin can look at it with /skills.",
		)
	case close:
		e.Suggestion = fmt.Sprintf("Did you mean %s?", near)
	case len(usable) > 0:
		e.Suggestion = "The skills here are: " + brief(list(usable), 1000)
	default:
		e.Suggestion = "There are no skills here; do the work without one."
	}
	return Entry{}, e
}

// instructions is the body, with where the files are.
func (s *Skill) instructions(state State) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Skill %s, in the folder %s\n", s.Name, s.Dir)
	if state == ReadOnly {
		b.WriteString(
			"It was accepted for reading only: in this turn, tools that change or send anything are denied.\n",
		)
	}
	if len(s.Files) > 1 {
		b.WriteString("Commands can read and run its files there, and change none of them:\n")
	}
	shown := 0
	for _, f := range s.Files {
		if f.Path == Document {
			continue
		}
		if shown++; shown > maxShownFiles {
			fmt.Fprintf(&b, "… and %d more\n", len(s.Files)-1-maxShownFiles)
			break
		}
		fmt.Fprintf(&b, "- %s (%d bytes)\n", f.Path, f.Size)
	}
	b.WriteString("\n" + s.Body)
	return b.String()
}

// open returns a file of the skill. Only what was just read, and is what was accepted, is found.
func (s *Skill) open(name string, contents map[string][]byte) (string, error) {
	if filepath.IsAbs(name) || leaves(name) {
		return "", tools.Errorf(
			tools.InvalidParameters, "file %.80q is outside of the skill's folder; name a file in it", name,
		)
	}
	data, ok := contents[filepath.ToSlash(filepath.Clean(name))]
	switch {
	case !ok:
		return "", tools.Errorf(
			tools.InvalidParameters, "the skill %s has no file %.80q; load it without file to see which it has",
			s.Name, name,
		)
	case !utf8.Valid(data):
		return "", tools.Errorf(
			tools.InvalidParameters, "file %.80q is not a text; use a command that can read it", name,
		)
	}
	return string(data), nil
}
