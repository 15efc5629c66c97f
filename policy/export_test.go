package policy

// ReadStartup reads a table of files that programs obey when they start.
func ReadStartup(text string) (files int, err error) {
	list, err := readStartup(text)
	return len(list), err
}
