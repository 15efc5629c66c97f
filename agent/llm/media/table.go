package media

import (
	"regexp"
	"strings"

	"github.com/zephbot/zephbot/agent/llm"
)

// families say what well-known models take, as their vendors document it in November 2026; the first that matches the
// name counts. A model that is in none of them takes text only, until the configuration says otherwise.
var families = []struct {
	name    *regexp.Regexp
	accepts llm.Accepts
}{
	// Of families that see: the members that do not.
	{regexp.MustCompile(`^(?:gpt-.*(?:audio|realtime|transcribe|tts|search|image)|o1-mini|o1-preview|o3-mini|gpt-4-(?:0|32k)|claude-(?:2|instant))`), llm.Accepts{}},
	{regexp.MustCompile(`^gemma-?3[:-](?:270m|1b)`), llm.Accepts{}},
	// OpenAI: pictures, and PDF by its text and its pages.
	{regexp.MustCompile(`^(?:chatgpt-4o|gpt-(?:4o|4\.[1-9]|4-turbo|[5-9])|o[1-9])`), llm.Accepts{Image: true, File: true}},
	{regexp.MustCompile(`^claude-`), llm.Accepts{Image: true, File: true}},
	// Others behind OpenAI-compatible servers: pictures only, since no two of those servers take files alike.
	{regexp.MustCompile(`^(?:gemini-|llava|bakllava|moondream|minicpm-v|pixtral|gemma-?3|llama-?4|grok-4|internvl|mistral-(?:small-?3\.[1-9]|medium-?3))`), llm.Accepts{Image: true}},
	{regexp.MustCompile(`(?:vision|qwen[0-9.]*-?vl|qvq|multimodal|glm-4\.?[0-9]*v)`), llm.Accepts{Image: true}},
}

// OfModel is what a model takes besides text by its name, with or without a vendor before it ("openai/gpt-5").
func OfModel(model string) llm.Accepts {
	name := strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
	for _, f := range families {
		if f.name.MatchString(name) {
			return f.accepts
		}
	}
	return llm.Accepts{}
}
