package redact

// Patterns returns the expressions of the table of vendors, by name.
func Patterns() map[string][]string {
	list := map[string][]string{}
	for _, v := range vendors() {
		list[v.name] = append(list[v.name], v.pattern)
	}
	return list
}

// Compile compiles every expression of the package, which otherwise happens on first use.
func Compile() (compiled int) {
	for _, r := range rules() {
		if r.re != nil {
			r.re.get()
			compiled++
		}
	}
	single := []*pattern{
		tails, compounds, stopWords, wordParts, identifier, variable, pathLike, typeLike, constant, hexDigits, allDigits, prose, fixed,
		secretObject, secretData, dataLine,
	}
	for _, p := range single {
		p.get()
	}
	return compiled + len(single)
}
