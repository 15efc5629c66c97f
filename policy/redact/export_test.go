package redact

// Patterns are the expressions of the table of vendors, by name.
func Patterns() map[string][]string {
	list := map[string][]string{}
	for _, v := range vendors() {
		list[v.name] = append(list[v.name], v.pattern)
	}
	return list
}
