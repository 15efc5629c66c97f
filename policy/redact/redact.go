// Package redact removes credentials from text, before it reaches an audit line, a log,
// an approval question or a model.
//
// It knows exact values (New) and forms (the rule table). One pass over the text searches for the keywords of all rules
// and for the values at once. Only where one occurs, a regular expression is tried on a limited window, so the work is
// linear in the length of any text. The package is pure, and a Redactor is safe for concurrent use.
package redact

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Mask replaces a credential.
const Mask = "[redacted]"

const (
	// minSecret is the minimum length in bytes of an exact value; shorter ones would match by chance.
	minSecret = 6
	// maxPasses limits how often String checks its own result.
	maxPasses = 8
)

// Finding is one credential in a text.
type Finding struct {
	// Rule is what found it: "github", "secret" for an exact value, "extra:2" for the second extra pattern.
	Rule string
	// Start and End are byte offsets: text[Start:End] is the credential.
	Start, End int
}

// Options configure NewWith.
type Options struct {
	// Secrets are exact values; those shorter than six bytes are ignored.
	Secrets []string
	// ExtraPatterns are RE2 expressions. The first group is masked, or the whole match if there is no group.
	ExtraPatterns []string
}

// Redactor finds and masks credentials.
type Redactor struct {
	index index
	extra []*regexp.Regexp
}

// New returns a Redactor that also masks the given exact values: as they are, or as URL, base64, hex or JSON text.
func New(secrets []string) *Redactor {
	r := &Redactor{}
	r.index.build(secrets)
	return r
}

// NewWith is New with further patterns. The error names every pattern that does not compile.
func NewWith(o Options) (*Redactor, error) {
	r := New(o.Secrets)
	var errs []error
	for i, pattern := range o.ExtraPatterns {
		if err := Check(pattern); err != nil {
			errs = append(errs, fmt.Errorf("extra pattern %d: %w", i+1, err))
			continue
		}
		r.extra = append(r.extra, regexp.MustCompile(pattern))
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return r, nil
}

// maxPattern is the maximum length of an extra pattern in bytes (seed 003: patterns of a filter file).
const maxPattern = 512

// Check returns an error if a text is not valid in Options.ExtraPatterns.
func Check(pattern string) error {
	if len(pattern) > maxPattern {
		return fmt.Errorf("it has %d bytes, at most %d are allowed", len(pattern), maxPattern)
	}
	if _, err := regexp.Compile(pattern); err != nil {
		return fmt.Errorf("%.80q: %w", pattern, err)
	}
	return nil
}

// Warning returns a sentence that tells a model that credentials were removed from what it reads; "" if there were
// none.
func Warning(hidden int) string {
	switch {
	case hidden <= 0:
		return ""
	case hidden == 1:
		return "[security] 1 credential in this output was hidden"
	default:
		return fmt.Sprintf("[security] %d credentials in this output were hidden", hidden)
	}
}

// String returns s with every credential replaced by Mask. It is idempotent and keeps the number of lines. The result
// has at most 11 bytes for each byte of s.
func (r *Redactor) String(s string) string {
	for pass := 0; ; pass++ {
		found := r.Scan(s)
		if len(found) == 0 {
			return s
		}
		if pass == maxPasses {
			// Every pass has uncovered a further credential, so nothing of the text is safe.
			return Mask + strings.Repeat("\n", strings.Count(s, "\n"))
		}
		s = mask(s, found)
	}
}

// mask replaces the findings, which must be in order and must not overlap. The number of lines stays the same.
func mask(s string, found []Finding) string {
	var out strings.Builder
	out.Grow(len(s))
	from := 0
	for _, f := range found {
		out.WriteString(s[from:f.Start])
		out.WriteString(Mask)
		for range strings.Count(s[f.Start:f.End], "\n") { // keep line numbers
			out.WriteByte('\n')
		}
		from = f.End
	}
	out.WriteString(s[from:])
	return out.String()
}

// Scan returns the credentials in s, in order and without overlap.
func (r *Redactor) Scan(s string) []Finding {
	found := r.index.scan(s)
	plain := len(found)
	if torn(s) {
		found = append(found, r.index.seen(s, maxLayers)...)
	}
	found = append(found, objects(s)...)
	for i, re := range r.extra {
		name := fmt.Sprintf("extra:%d", i+1)
		for _, at := range re.FindAllStringSubmatchIndex(s, -1) {
			start, end := at[0], at[1]
			if len(at) > 2 && at[2] >= 0 {
				start, end = at[2], at[3]
			}
			if start < end {
				found = append(found, Finding{Rule: name, Start: start, End: end})
			}
		}
	}
	if len(found) > plain {
		return settle(s, found)
	}
	return found
}
