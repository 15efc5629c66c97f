package filter

import "strings"

// takePython handles lines of pytest and unittest.
func (c *tally) takePython(t string) (kind, bool) {
	switch {
	case strings.HasPrefix(t, "=====") && strings.HasSuffix(t, "====="):
		return c.takeTitle(strings.Trim(t, "= "))
	case beginsWith(t, "platform ", "cachedir: ", "rootdir: ", "configfile: ", "plugins: ", "collecting ", "collected ",
		"asyncio: ", "testpaths: ",
		"hypothesis profile ", "Using --randomly-seed"):
		return isNoise, true
	case strings.HasPrefix(t, "Ran ") && strings.Contains(t, " test") && strings.Contains(t, " in "):
		c.recognised = true
		return isSummary, true
	case strings.HasPrefix(t, "OK (skipped="), t == "OK":
		return isSummary, true
	case strings.HasPrefix(t, "----------------"):
		return isNoise, true
	case isDigit(t[0]) && (strings.Contains(t, " passed in ") || strings.Contains(t, " failed in ") ||
		strings.Contains(t, " passed, ") && strings.Contains(t, " in ")):
		c.recognised = true // pytest -q
		return isSummary, true
	}
	return isLoose, false
}

// takeTitle handles a heading of pytest.
func (c *tally) takeTitle(title string) (kind, bool) {
	switch {
	case strings.HasPrefix(title, "test session starts"):
		c.recognised = true
		return isNoise, true
	case strings.Contains(title, " in ") &&
		containsAny(title, "passed", "failed", "error", "no tests ran", "deselected",
			"skipped"),
		title == "FAILURES", title == "ERRORS", title == "short test summary info", title == "warnings summary":
		c.recognised = true
		return isSummary, true
	case title == "" || title == "PASSES":
		return isNoise, true
	}
	return isLoose, false
}

func containsAny(s string, words ...string) bool {
	for _, w := range words {
		if strings.Contains(s, w) {
			return true
		}
	}
	return false
}

// takeScript handles lines of jest, mocha, vitest and TAP.
func (c *tally) takeScript(t string) kind {
	switch {
	case strings.HasPrefix(t, "Tests:  "), strings.HasPrefix(t, "Test Suites:  "),
		strings.HasPrefix(t, "Test Suites: "), strings.HasPrefix(t, "Test Files  "),
		strings.HasPrefix(t, "Tests  "), strings.HasPrefix(t, "ℹ tests "), strings.HasPrefix(t, "ℹ pass "),
		strings.HasPrefix(t, "ℹ fail "), strings.HasPrefix(t, "# tests "), strings.HasPrefix(t, "# pass "),
		strings.HasPrefix(t, "# fail "):
		c.recognised = true
		return isSummary
	case strings.HasPrefix(t, "Snapshots:  "), strings.HasPrefix(t, "Time:  "), strings.HasPrefix(t, "Duration  "):
		return isSummary
	case strings.HasPrefix(t, "ℹ ") && len(strings.Fields(t)) == 3, strings.HasPrefix(t, "Ran all test suites"),
		beginsWith(t, "TAP version", "# Subtest: ", "▶ ", "1.."), strings.HasPrefix(t, "Start at  "):
		return isNoise
	case isDigit(t[0]) && (strings.Contains(t, " passing (") || strings.HasSuffix(t, " failing") ||
		strings.HasSuffix(t, " pending")):
		c.recognised = true
		return isSummary
	}
	return isLoose
}

// yamlOfPassed marks the details that TAP prints below passed tests: a block from --- to ....
func yamlOfPassed(lines []line, kinds []kind) {
	inside := false
	for i := 1; i < len(lines); i++ {
		t := trimBlanks(lines[i].bodyText())
		if t == "---" && kinds[i-1] == isPass && tapOK(trimBlanks(lines[i-1].bodyText())) {
			inside = true
		}
		if inside && kinds[i] == isLoose {
			kinds[i] = isNoise
		}
		inside = inside && t != "..."
	}
}
