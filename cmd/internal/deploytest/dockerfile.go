package deploytest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Stage is a stage of a Dockerfile, with the instructions of the stages that it is built on before its own.
type Stage struct {
	Name string // after AS; "" = none
	From string // the image, or the stage that it is built on
	All  []Instruction
}

// Instruction is one of a Dockerfile, its continued lines joined and its blanks made one.
type Instruction struct{ Name, Args string }

// Stages reads a Dockerfile. It knows no heredocs and no escape directive, and takes an instruction that is not in
// capitals for an unknown one.
func Stages(text string) ([]Stage, error) {
	var list []Stage
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", " ")) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, args, _ := strings.Cut(line, " ")
		words := strings.Fields(args)
		if name == "FROM" {
			list = append(list, begunStage(list, words))
			continue
		}
		if len(list) == 0 {
			return nil, fmt.Errorf("%s before FROM", name)
		}
		last := &list[len(list)-1]
		last.All = append(last.All, Instruction{name, strings.Join(words, " ")})
	}
	return list, nil
}

// begunStage returns the stage of a FROM with these words.
func begunStage(before []Stage, words []string) Stage {
	words = slices.DeleteFunc(slices.Clone(words), func(w string) bool { return strings.HasPrefix(w, "--") })
	s := Stage{From: words[0]}
	if len(words) == 3 && words[1] == "AS" {
		s.Name = words[2]
	}
	for _, other := range before {
		if other.Name == s.From && s.From != "" {
			s.All = slices.Clone(other.All)
		}
	}
	return s
}

// Last returns the arguments of the last such instruction, which is the one that counts for most of them; "" = none.
func (s *Stage) Last(name string) string {
	for _, i := range slices.Backward(s.All) {
		if i.Name == name {
			return i.Args
		}
	}
	return ""
}

// Env returns the variables that the stage sets.
func (s *Stage) Env() map[string]string {
	out := map[string]string{}
	for _, i := range s.All {
		if i.Name != "ENV" {
			continue
		}
		for field := range strings.FieldsSeq(i.Args) {
			k, v, _ := strings.Cut(field, "=")
			out[k] = v
		}
	}
	return out
}

// Words returns the words of an instruction in the form of a list, such as ["serve"]: the last one of this name. For a
// HEALTHCHECK it is the list behind its options and CMD.
func (s *Stage) Words(name string) ([]string, error) {
	_, raw, found := strings.Cut(s.Last(name), "[")
	if !found {
		return nil, fmt.Errorf("%s is no list of words: %q", name, s.Last(name))
	}
	var words []string
	err := json.Unmarshal([]byte("["+raw), &words)
	return words, err
}
