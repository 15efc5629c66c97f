package filter

import "fmt"

// maxSecurity is how many different security lines are restored.
const maxSecurity = 100

const securityHeading = "Security lines:"

// securityPatterns match lines that must be shown regardless of the rules (seed 003 and the newest list of it).
func securityPatterns() []string {
	return []string{
		`warning: unused .*Result`, `warning:.*must be used`, `thread '.*' panicked at`, `warning:.*unsafe`,
		`(?i)dereference of raw pointer|raw pointer dereference`,
		`(?i)authentication failed`, `(?i)unauthorized`, `(?i)permission denied`,
		`(?i)\b(401|403)\s+(Unauthorized|Forbidden)`, `(?i)weak cipher`,
		`(?i)deprecated algorithm`, `(?i)insecure hash`, `(?i)SQL injection`, `(?i)unsafe query`, `RUSTSEC-\d{4}-\d{4}`,
		`(?i)security advisory`,
		`(?i)vulnerability detected`,
	}
}

type security struct{ patterns *patterns }

// newSecurity compiles the patterns. They are constant, and a test checks that all of them are present.
func newSecurity() *security {
	p, err := newPatterns(securityPatterns())
	if err != nil {
		return &security{patterns: &patterns{}}
	}
	return &security{patterns: p}
}

// patternWords returns the words by which the patterns are found in the same pass as the words of a failure.
func (s *security) patternWords() [][]string {
	words := make([][]string, len(s.patterns.list))
	for i := range s.patterns.list {
		words[i] = s.patterns.list[i].need
	}
	return words
}

// isSecurityLine reports whether a line must be shown.
func (s *security) isSecurityLine(f *failures, l *line) bool {
	hits := f.scanLine(l)>>wordKinds | s.patterns.loose
	return hits != 0 && s.patterns.matchAmong(hits, l.bodyText())
}

// restoreMissing appends the security lines of in that are missing in the result, each once, below a heading.
func (s *security) restoreMissing(f *failures, in, lines []line, there []bool) []line {
	seen := map[string]bool{}
	more := 0
	for i := range in {
		if there[i] || !s.isSecurityLine(f, &in[i]) {
			continue
		}
		body := in[i].bodyText()
		if seen[body] {
			continue
		}
		if len(seen) == maxSecurity {
			more++
			continue
		}
		if len(seen) == 0 {
			lines = append(lines, writtenLine(securityHeading))
		}
		seen[body] = true
		lines = append(lines, in[i])
	}
	if more > 0 {
		lines = append(lines, writtenLine(fmt.Sprintf("(%d more security lines)", more)))
	}
	return lines
}
