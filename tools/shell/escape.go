package shell

import "strings"

// withoutEscapes removes terminal control sequences (ECMA-48: CSI, OSC and other strings, single escapes) from a line
// of progress. The libraries that do this build width tables at start, and every sandboxed command would pay for that
// because the program starts itself for each command. A string sequence without an end is removed up to the end of the
// line.
func withoutEscapes(line string) string {
	if strings.IndexByte(line, 0x1b) < 0 {
		return line
	}
	var b strings.Builder
	for i := 0; i < len(line); {
		if line[i] != 0x1b {
			b.WriteByte(line[i])
			i++
			continue
		}
		i += sequenceLength(line[i:])
	}
	return b.String()
}

// sequenceLength returns the length of the control sequence that s begins with.
func sequenceLength(s string) int {
	if len(s) < 2 {
		return len(s)
	}
	switch s[1] {
	case '[': // CSI: parameters and intermediates, then one final byte
		for i := 2; i < len(s); i++ {
			if s[i] >= 0x40 && s[i] <= 0x7e {
				return i + 1
			}
		}
		return len(s)
	case ']', 'P', 'X', '^', '_': // strings, up to BEL or ESC \\
		for i := 2; i < len(s); i++ {
			if s[i] == 0x07 {
				return i + 1
			}
			if s[i] == 0x1b && i+1 < len(s) && s[i+1] == '\\' {
				return i + 2
			}
		}
		return len(s)
	case '(', ')', '*', '+', '#', ' ': // charsets and similar: one more byte
		return min(3, len(s))
	default:
		return 2
	}
}
