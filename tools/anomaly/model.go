package anomaly

import "strings"

// Reasoning reports whether a model reasons before it answers: o1, o3, o4…, qwq, deepseek-r1, and Claude with thinking
// (seed 004).
func Reasoning(model string) bool {
	name := strings.ToLower(model)
	name = name[strings.LastIndexByte(name, '/')+1:] // "openai/o3-mini"
	for _, start := range []string{"o1", "o3", "o4"} {
		if strings.HasPrefix(name, start) {
			return true
		}
	}
	return strings.Contains(name, "qwq") || strings.Contains(name, "deepseek-r1") ||
		(strings.HasPrefix(name, "claude") && strings.Contains(name, "think"))
}
