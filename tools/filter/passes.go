package filter

import "strings"

// isPassing reports whether a line says that a test or a step passed, whatever its name.
// hints are the words in the line.
func isPassing(hints uint64, s string) bool {
	t := trimBlanks(s)
	if t == "" {
		return false
	}
	switch t[0] {
	case '-':
		return beginsWith(t, "--- PASS: ", "--- SKIP: ")
	case '=':
		return beginsWith(t, "=== RUN ", "=== PAUSE ", "=== CONT ", "=== NAME ")
	case 'o':
		return goOK(t) || tapOK(t)
	case '?':
		return strings.HasPrefix(t, "?   \t") && strings.HasSuffix(t, "[no test files]")
	case '{':
		return eventOK(t)
	case 'P', 'S':
		return t == "PASS" || nextestOK(t) || jestOK(t)
	case 'C', 'D', 'F', 'U', 'L', 'A', 'B':
		return s != t && cargoNoise(t)
	case '\xe2': // ✓ ✔ √
		return beginsWith(t, "✓ ", "✔ ", "√ ")
	}
	return namedOK(hints, t)
}

// namedOK reports whether a line is about a passed test of cargo, unittest or pytest.
func namedOK(hints uint64, t string) bool {
	return hints&namedHint != 0 && (cargoOK(t) || unittestOK(t) || pytestOK(t))
}

// eventOK reports whether a line is an event of go test -json about success, whatever the name of the test.
func eventOK(t string) bool {
	if !looksEvent(t) {
		return false
	}
	const action = `"Action":"`
	for i := strings.Index(t, action); i >= 0; {
		rest := t[i+len(action):]
		if beginsWith(rest, `run"`, `start"`, `pass"`, `skip"`, `pause"`, `cont"`) {
			return true
		}
		// its closing quote may be the opening quote of the next match
		next := strings.Index(t[i+len(action)-1:], action)
		if next < 0 {
			break
		}
		i += len(action) - 1 + next
	}
	_, output, ok := strings.Cut(t, `"Output":"`)
	output = strings.TrimLeft(output, " ")
	return ok && (strings.HasPrefix(output, "=== RUN ") || strings.HasPrefix(output, "=== PAUSE ") ||
		strings.HasPrefix(output, "=== CONT ") ||
		strings.HasPrefix(output, "=== NAME ") || strings.HasPrefix(output, "--- PASS: ") ||
		strings.HasPrefix(output, "--- SKIP: ") || strings.HasPrefix(output, `ok  \t`))
}

// goOK reports whether a line is about a package that passed: "ok \tpath\t0.01s".
func goOK(t string) bool {
	return strings.HasPrefix(t, "ok  \t")
}

// cargoOK matches "test a::b ... ok".
func cargoOK(t string) bool {
	return strings.HasPrefix(t, "test ") && (strings.HasSuffix(t, " ... ok") || strings.Contains(t, " ... ignored"))
}

// jestOK matches "PASS src/a.test.js (5.1 s)".
func jestOK(t string) bool {
	return strings.HasPrefix(t, "PASS ") && !strings.ContainsAny(t, "✕✗") && len(strings.Fields(t)) <= 4
}

// beginsWith reports whether s begins with one of the texts.
func beginsWith(s string, heads ...string) bool {
	for _, h := range heads {
		if strings.HasPrefix(s, h) {
			return true
		}
	}
	return false
}

// tapOK matches "ok 12 - name" and "ok 12 name".
func tapOK(t string) bool {
	return strings.HasPrefix(t, "ok ") && len(t) > 3 && t[3] >= '0' && t[3] <= '9' && !strings.Contains(t, "# TODO")
}

// nextestOK is "PASS [   0.003s] crate test" and its kin.
func nextestOK(t string) bool {
	return strings.HasPrefix(t, "PASS [ ") || strings.HasPrefix(t, "SKIP [ ") ||
		strings.HasPrefix(t, "START ") && strings.Contains(t, "::")
}

// unittestOK matches "test_x (pkg.Class) ... ok".
func unittestOK(t string) bool {
	return strings.HasSuffix(t, " ... ok") && strings.Contains(t, "(") || strings.Contains(t, ") ... skipped ")
}

// pytestOK reports whether a line is progress without a failure: "tests/test_a.py ..s. [ 10%]" and
// "tests/test_a.py::test_x PASSED [ 3%]".
func pytestOK(t string) bool {
	head := t
	if strings.HasSuffix(t, "%]") {
		i := strings.LastIndexByte(t, '[')
		if i < 0 {
			return false
		}
		head = strings.TrimRight(t[:i], " ")
	} else if !strings.Contains(t, ".py") {
		return false
	}
	if at := strings.Index(head, "::"); at > 0 {
		for _, word := range []string{" PASSED", " SKIPPED", " XFAIL"} {
			if strings.HasSuffix(head, word) || strings.Contains(head[at:], word+" (") {
				return true
			}
		}
		return false
	}
	name, dots, ok := strings.Cut(head, " ")
	if !ok {
		name, dots = "x.py", head
	}
	return strings.HasSuffix(name, ".py") && dots != "" && strings.Trim(dots, ".sx") == ""
}

// cargoNoise reports whether a line is a step of a build: "Compiling thiserror v1.0".
func cargoNoise(t string) bool {
	word, rest, ok := strings.Cut(t, " ")
	if !ok || rest == "" {
		return false
	}
	switch word {
	case "Compiling", "Checking", "Downloading", "Downloaded", "Updating", "Fetching", "Fresh", "Locking", "Adding",
		"Unpacking", "Blocking", "Documenting":
		return !strings.Contains(rest, "rror:")
	}
	return false
}
