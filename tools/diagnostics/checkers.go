package diagnostics

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
)

// checker is a program that checks code.
type checker struct {
	name    string
	program string
	files   []string // in a directory of its project
	local   bool     // a project may bring it in node_modules
	install string   // what an operator installs to have the program
	command func(program, kind string) string
	parse   func(stdout, stderr string) []Finding
}

// checkers lists the checkers in the order in which they are tried.
func checkers() []checker {
	plain := func(rest string) func(string, string) string {
		return func(program, _ string) string { return program + " " + rest }
	}
	return []checker{
		{
			name:    "cargo",
			program: "cargo",
			install: "Rust (rustup.rs)",
			files:   []string{"Cargo.toml"},
			parse:   parseCargo,
			command: func(program, kind string) string {
				if kind == "clippy" {
					return program + " clippy --message-format=json"
				}
				return program + " check --message-format=json"
			},
		},
		// -o /dev/null: a single main package would leave a binary. vet runs after a failed build too, for the packages
		// that compile.
		{
			name:    "go",
			program: "go",
			install: "Go (go.dev/dl)",
			files:   []string{"go.mod", "go.work"},
			parse:   parseGo,
			command: func(program, _ string) string {
				return program + " build -o /dev/null ./...; a=$?; " + program + " vet -json ./... && (exit $a)"
			},
		},
		{
			name:    "tsc",
			program: "tsc",
			install: "TypeScript (npm install typescript, in the project or globally)",
			files:   []string{"tsconfig.json"},
			local:   true,
			parse:   parseTSC,
			command: plain("--noEmit --pretty false"),
		},
		{
			name:    "pyright",
			program: "pyright",
			install: "Pyright (npm or pip install pyright)",
			files:   []string{"pyrightconfig.json"},
			local:   true,
			parse:   parsePyright,
			command: plain("--outputjson"),
		},
		{
			name:    "ruff",
			program: "ruff",
			install: "Ruff (pip install ruff)",
			files:   []string{"pyproject.toml", "ruff.toml", ".ruff.toml", "setup.py", "requirements.txt"},
			parse:   parseRuff,
			command: plain("check --output-format=json ."),
		},
	}
}

// severity converts what checkers call a level.
func severity(level string) string {
	switch {
	case strings.HasPrefix(level, "error"), strings.HasPrefix(level, "fatal"):
		return "error"
	case strings.HasPrefix(level, "warn"):
		return "warning"
	default:
		return "note"
	}
}

// parseCargo reads the messages of cargo, one JSON object a line (The Cargo Book, External tools).
func parseCargo(stdout, _ string) (list []Finding) {
	for line := range strings.Lines(stdout) {
		var m struct {
			Reason  string `json:"reason"`
			Message struct {
				Level   string `json:"level"`
				Message string `json:"message"`
				Spans   []struct {
					File    string `json:"file_name"`
					Line    int    `json:"line_start"`
					Column  int    `json:"column_start"`
					Primary bool   `json:"is_primary"`
				} `json:"spans"`
			} `json:"message"`
		}
		if json.Unmarshal([]byte(line), &m) != nil || m.Reason != "compiler-message" {
			continue
		}
		f := Finding{Severity: severity(m.Message.Level), Message: m.Message.Message}
		for _, s := range m.Message.Spans {
			if s.Primary {
				f.File, f.Line, f.Column = s.File, s.Line, s.Column
				break
			}
		}
		if f.File == "" && strings.Contains(f.Message, "aborting due to") {
			continue // it counts the errors
		}
		list = append(list, f)
	}
	return list
}

// goLine is a message of the compiler of Go.
var goLine = regexp.MustCompile(`^(?:vet: )?(\S[^:]*\.(?:go|mod|s)):(\d+)(?::(\d+))?: (.+)$`)

// parseGo reads the lines of go build, and the JSON of go vet.
func parseGo(stdout, stderr string) (list []Finding) {
	for _, text := range []string{stdout, stderr} {
		var object strings.Builder
		open := false
		for line := range strings.Lines(text) {
			line = strings.TrimRight(line, "\r\n")
			switch {
			case line == "{":
				open = true
				object.Reset()
				object.WriteString(line)
			case open:
				object.WriteString(line)
				if line == "}" {
					open = false
					list = append(list, vetted(object.String())...)
				}
			default:
				if m := goLine.FindStringSubmatch(line); m != nil && m[4] != "too many errors" {
					list = append(list, Finding{
						Severity: "error",
						Message:  m[4],
						File:     m[1],
						Line:     number(m[2]),
						Column:   number(m[3]),
					})
				}
			}
		}
	}
	return list
}

// vetted reads a report of go vet -json: findings by package and analyzer.
func vetted(text string) (list []Finding) {
	var report map[string]map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &report) != nil {
		return nil
	}
	for _, analyzers := range report {
		for name, raw := range analyzers {
			var found []struct{ Posn, Message string }
			if json.Unmarshal(raw, &found) != nil {
				continue // an analyzer that failed
			}
			for _, d := range found {
				f := Finding{Severity: "warning", Message: d.Message + " (" + name + ")"}
				parts := strings.Split(d.Posn, ":")
				if n := len(parts); n >= 3 {
					f.File, f.Line, f.Column = strings.Join(parts[:n-2], ":"), number(parts[n-2]), number(parts[n-1])
				}
				list = append(list, f)
			}
		}
	}
	return list
}

// tscLine is a message of the compiler of TypeScript without colours.
var tscLine = regexp.MustCompile(`^(.+)\((\d+),(\d+)\): (error|warning|message) (TS\d+: .+)$`)

// tscBare is a message that belongs to no file.
var tscBare = regexp.MustCompile(`^(error|warning) (TS\d+: .+)$`)

func parseTSC(stdout, _ string) (list []Finding) {
	for line := range strings.Lines(stdout) {
		line = strings.TrimRight(line, "\r\n")
		if m := tscLine.FindStringSubmatch(line); m != nil {
			list = append(list, Finding{
				Severity: severity(m[4]),
				Message:  m[5],
				File:     m[1],
				Line:     number(m[2]),
				Column:   number(m[3]),
			})
		} else if m := tscBare.FindStringSubmatch(line); m != nil {
			list = append(list, Finding{Severity: severity(m[1]), Message: m[2]})
		}
	}
	return list
}

// parsePyright reads the JSON of pyright. Its lines and columns begin at 0.
func parsePyright(stdout, _ string) (list []Finding) {
	var report struct {
		Diagnostics []struct {
			File     string `json:"file"`
			Severity string `json:"severity"`
			Message  string `json:"message"`
			Rule     string `json:"rule"`
			Range    struct {
				Start struct{ Line, Character int } `json:"start"`
			} `json:"range"`
		} `json:"generalDiagnostics"`
	}
	if json.Unmarshal([]byte(stdout), &report) != nil {
		return nil
	}
	for _, d := range report.Diagnostics {
		list = append(list, Finding{
			Severity: severity(d.Severity),
			Message:  ruled(d.Message, d.Rule),
			File:     d.File,
			Line:     d.Range.Start.Line + 1,
			Column:   d.Range.Start.Character + 1,
		})
	}
	return list
}

// parseRuff reads the JSON of ruff. A finding without a code is a syntax error.
func parseRuff(stdout, _ string) (list []Finding) {
	var report []struct {
		Code     *string `json:"code"`
		Message  string  `json:"message"`
		File     string  `json:"filename"`
		Location struct{ Row, Column int }
	}
	if json.Unmarshal([]byte(stdout), &report) != nil {
		return nil
	}
	for _, d := range report {
		f := Finding{
			Severity: "error",
			Message:  d.Message,
			File:     d.File,
			Line:     d.Location.Row,
			Column:   d.Location.Column,
		}
		if d.Code != nil && *d.Code != "invalid-syntax" {
			f.Severity, f.Message = "warning", ruled(d.Message, *d.Code)
		}
		list = append(list, f)
	}
	return list
}

func ruled(message, rule string) string {
	if rule == "" {
		return message
	}
	return message + " (" + rule + ")"
}

// number parses digits; what is none is 0.
func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	return n
}

// Programs returns the programs that the tool can use, in the order in which it tries them.
func Programs() []string {
	var names []string
	for _, c := range checkers() {
		names = append(names, c.program)
	}
	return names
}
