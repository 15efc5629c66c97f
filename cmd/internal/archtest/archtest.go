// Package archtest checks that a checkout keeps the rules of the architecture: which package may import which, how deep
// imports go, where third-party clients are used, and how packages are named. It parses files and builds nothing, so it
// also checks a tree that does not compile.
package archtest

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// Problem is one violation of a rule.
type Problem struct {
	File string // slash-separated, from the root of the module
	Line int    // from 1; 0 if the problem concerns the whole file or package
	Rule string // one word, such as "layer"
	Text string // what is wrong and what is allowed
}

// String returns "file:line: rule: text".
func (p Problem) String() string {
	if p.Line == 0 {
		return fmt.Sprintf("%s: %s: %s", p.File, p.Rule, p.Text)
	}
	return fmt.Sprintf("%s:%d: %s: %s", p.File, p.Line, p.Rule, p.Text)
}

// maxText is the size in bytes above which a file is treated as data and its words are not read.
const maxText = 4 << 20

// Check reads the named files of a tree whose root contains go.mod, and returns what is wrong, by file and line. A
// named file that does not exist is skipped: a list from git may contain one that was just deleted. The error is about
// reading, not about rules.
func Check(tree fs.FS, names []string) ([]Problem, error) {
	module, err := moduleOf(tree)
	if err != nil {
		return nil, err
	}
	var problems []Problem
	var files []goFile
	for _, name := range names {
		data, err := fs.ReadFile(tree, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read the tree: %w", err)
		}
		problems = append(problems, topLevel(name)...)
		if len(data) > maxText || bytes.IndexByte(data, 0) >= 0 {
			continue
		}
		problems = append(problems, words(name, data)...)
		if !isGo(name) {
			continue
		}
		file, err := parse(module, name, data)
		if err != nil {
			problems = append(problems, Problem{File: name, Rule: "syntax", Text: err.Error()})
			continue
		}
		files = append(files, file)
		problems = append(problems, file.shape()...)
		problems = append(problems, file.comments()...)
		problems = append(problems, file.sessionKeys()...)
	}
	problems = append(problems, checkPackages(files)...)
	problems = append(problems, checkImports(files)...)
	problems = append(problems, checkDepth(files)...)
	problems = append(problems, checkMoney(files)...)
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	return problems, nil
}

// moduleOf returns the module path in go.mod.
func moduleOf(tree fs.FS) (string, error) {
	data, err := fs.ReadFile(tree, "go.mod")
	if err != nil {
		return "", fmt.Errorf("find the module: %w", err)
	}
	for line := range strings.Lines(string(data)) {
		if path, ok := strings.CutPrefix(strings.TrimSpace(line), "module "); ok {
			return strings.TrimSpace(path), nil
		}
	}
	return "", errors.New("find the module: go.mod has no module line")
}

// isGo says whether the go command would compile the file as part of the module.
func isGo(name string) bool {
	if !strings.HasSuffix(name, ".go") {
		return false
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "testdata" || part == "vendor" || strings.HasPrefix(part, "_") || strings.HasPrefix(part, ".") {
			return false
		}
	}
	return true
}
