package filter

// Thorough is e without the first look at commands, for tests.
func (e *Engine) Thorough() *Engine {
	slow, all := *e, *e.compiled()
	all.commands, all.always = nil, ^uint64(0)
	slow.compiled = func() *compiled { return &all }
	return &slow
}

// Characters counts code points.
func Characters(s string) int { return countCharacters(s) }

// Quick decodes an event without the decoder; ok = it could.
func Quick(line string) (action, pkg, test string, ok bool) {
	var e event
	ok = e.decodeQuick(line)
	return e.Action, e.Package, e.Test, ok
}

// Judge reports whether a line looks like a failure, and whether it must be shown, using the one pass for all words.
func (e *Engine) Judge(body string) (failure, security bool) {
	l := line{text: body}
	return e.compiled().failures.isFailureLine(&l), e.compiled().security.isSecurityLine(e.compiled().failures, &l)
}

// JudgeApart tries each security pattern separately, and searches only for the words of a failure.
func (e *Engine) JudgeApart() func(body string) (failure, security bool) {
	alone := newFailures(nil)
	return func(body string) (failure, security bool) {
		for i := range e.compiled().security.patterns.list {
			security = security || e.compiled().security.patterns.list[i].re.MatchString(body)
		}
		return alone.isFailureText(body), security
	}
}

// SecurityPatterns returns how many patterns of security lines there are, and how many of them compile.
func SecurityPatterns() (all, compiled int) {
	return len(securityPatterns()), len(newSecurity().patterns.list)
}
