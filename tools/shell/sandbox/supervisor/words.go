package supervisor

// Package strings has these functions, but is initialised too late: see the package comment.

// splitFields splits s at blanks and line ends.
func splitFields(s string) []string {
	var list []string
	from := -1
	for i := range len(s) {
		blank := s[i] == ' ' || s[i] == '\t' || s[i] == '\n'
		if from >= 0 && blank {
			list, from = append(list, s[from:i]), -1
		} else if from < 0 && !blank {
			from = i
		}
	}
	if from >= 0 {
		list = append(list, s[from:])
	}
	return list
}

// textAfter returns the text after the first mark in s; "" when there is none.
func textAfter(s, mark string) string {
	for i := 0; i+len(mark) <= len(s); i++ {
		if s[i:i+len(mark)] == mark {
			return s[i+len(mark):]
		}
	}
	return ""
}

// afterLast returns the text after the last c in s; "" when there is none.
func afterLast(s string, c byte) string {
	for i := len(s) - 1; i >= 0; i-- {
		if s[i] == c {
			return s[i+1:]
		}
	}
	return ""
}

// untilNull returns s up to its first zero byte.
func untilNull(s string) string {
	for i := range len(s) {
		if s[i] == 0 {
			return s[:i]
		}
	}
	return s
}

func hasPrefix(b, prefix []byte) bool {
	return len(b) >= len(prefix) && string(b[:len(prefix)]) == string(prefix)
}
