package adapter

import (
	"regexp"
	"strconv"
	"strings"
)

// windows match the sizes of windows in what vendors say about a conversation that is too long: OpenAI and vLLM,
// Anthropic, llama.cpp, Gemini, and others that name the window before the number.
var windows = []*regexp.Regexp{
	regexp.MustCompile(`maximum context length (?:is|of) ([0-9][0-9,]*)`),
	regexp.MustCompile(`> ([0-9][0-9,]*) maximum`),
	regexp.MustCompile(`exceed context limit: [0-9, +]* > ([0-9][0-9,]*)`),
	regexp.MustCompile(`context size \(([0-9][0-9,]*)`),
	regexp.MustCompile(`tokens allowed \(([0-9][0-9,]*)`),
	regexp.MustCompile(`context (?:window|limit)[^0-9]{0,24} ([0-9][0-9,]*)`),
}

// Window returns how many tokens a provider takes according to its message about a conversation that is too long; 0 =
// the message does not say.
func Window(message string) int {
	lower := strings.ToLower(message)
	for _, window := range windows {
		m := window.FindStringSubmatch(lower)
		if m == nil {
			continue
		}
		if n, err := strconv.Atoi(strings.ReplaceAll(m[1], ",", "")); err == nil && n > 0 && n < 1<<30 {
			return n
		}
	}
	return 0
}
