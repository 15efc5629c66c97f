package command

// ParseWithoutFinder parses text for a walker that panics at the first command.
func ParseWithoutFinder(text string) (problem string) { return (*finder)(nil).parse(text, place{}) }
