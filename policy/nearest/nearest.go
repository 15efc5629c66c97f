// Package nearest finds the known word nearest to a mistyped one.
package nearest

import "strings"

// maxRunes limits the words that are compared, so that hostile input has no cost: longer words have no nearest word.
const maxRunes = 64

// Nearest returns the word of known that is closest to word, in the spelling of known, and true; or "" and false if no
// word is close enough to be suggested. Case is ignored. Close means a Damerau-Levenshtein distance (optimal string
// alignment: insert, delete, replace, swap neighbours) of at most a third of the length of word, at least 1 and at most
// 3. Among equally close words, the first wins. Words of more than 64 characters and the empty word have no nearest
// word. Nearest is safe for concurrent use.
func Nearest(word string, known []string) (string, bool) {
	if len(word) == 0 || len(word) > maxRunes*4 {
		return "", false
	}
	a := []rune(strings.ToLower(word))
	if len(a) > maxRunes {
		return "", false
	}
	limit := min(max(len(a)/3, 1), 3)
	best, found := "", false
	for _, k := range known {
		if len(k) == 0 || len(k) > maxRunes*4 {
			continue
		}
		b := []rune(strings.ToLower(k))
		if abs(len(a)-len(b)) > limit {
			continue
		}
		if d := distance(a, b); d <= limit {
			best, found, limit = k, true, d-1
			if d == 0 {
				break
			}
		}
	}
	return best, found
}

// distance returns the optimal string alignment distance of a and b.
func distance(a, b []rune) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}

func abs(n int) int {
	if n < 0 {
		return -n
	}
	return n
}
