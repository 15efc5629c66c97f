package filter

import "fmt"

// maxSecurity is how many different security lines are put back.
const maxSecurity = 100

const securityHeading = "Security lines:"

// securityPatterns name lines that have to be seen whatever a rule drops (seed 003 and the newest list of it).
func securityPatterns() []string {
	return []string{
		`warning: unused .*Result`, `warning:.*must be used`, `thread '.*' panicked at`, `warning:.*unsafe`, `(?i)dereference of raw pointer|raw pointer dereference`,
		`(?i)authentication failed`, `(?i)unauthorized`, `(?i)permission denied`, `(?i)\b(401|403)\s+(Unauthorized|Forbidden)`, `(?i)weak cipher`,
		`(?i)deprecated algorithm`, `(?i)insecure hash`, `(?i)SQL injection`, `(?i)unsafe query`, `RUSTSEC-\d{4}-\d{4}`, `(?i)security advisory`,
		`(?i)vulnerability detected`,
	}
}

type security struct{ patterns *patterns }

func newSecurity() (*security, error) {
	p, err := newPatterns(securityPatterns())
	if err != nil {
		return nil, fmt.Errorf("security patterns: %w", err)
	}
	return &security{patterns: p}, nil
}

// restore appends the security lines of in that are not there, each once, under a heading.
func (s *security) restore(in, lines []line, there []bool) []line {
	seen := map[string]bool{}
	more := 0
	for i := range in {
		body := in[i].body()
		if there[i] || !s.patterns.match(body) || seen[body] {
			continue
		}
		if len(seen) == maxSecurity {
			more++
			continue
		}
		if len(seen) == 0 {
			lines = append(lines, written(securityHeading))
		}
		seen[body] = true
		lines = append(lines, in[i])
	}
	if more > 0 {
		lines = append(lines, written(fmt.Sprintf("(%d more security lines)", more)))
	}
	return lines
}
