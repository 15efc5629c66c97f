package command

// ParseWithoutFinder parses text for a walker that panics at the first command.
func ParseWithoutFinder(text string) (problem string) { return (*finder)(nil).parse(text, place{}) }

// ReadPlain reads text by the plain grammar alone and says why it is not plain, or "".
func ReadPlain(text string) string {
	reason, _ := readPlain(text, nil).differs(nil)
	return reason
}
