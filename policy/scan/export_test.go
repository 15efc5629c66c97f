package scan

// Fold returns the folded text and the way back, for tests.
func Fold(text string) (string, func(int) int) {
	f := fold(text, true)
	return f.text, f.at
}
