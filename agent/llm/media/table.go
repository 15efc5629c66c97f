package media

import (
	"regexp"
	"strings"

	"github.com/zephbot/zephbot/agent/llm"
)

// families lists what well-known models take, as documented by their vendors in November 2026. The first match of the
// name counts. Other models are assumed to take text only unless the configuration says otherwise.
var families = []struct {
	name    *regexp.Regexp
	accepts llm.Accepts
}{
	// Members of multimodal families that take text only.
	{regexp.MustCompile(`^(?:gpt-.*(?:audio|realtime|transcribe|tts|search|image)|o1-mini|o1-preview|o3-mini|gpt-4-(?:0|32k)|claude-(?:2|instant))`), llm.Accepts{}},
	{regexp.MustCompile(`^gemma-?3[:-](?:270m|1b)`), llm.Accepts{}},
	// OpenAI: pictures, and PDF by its text and its pages.
	{regexp.MustCompile(`^(?:chatgpt-4o|gpt-(?:4o|4\.[1-9]|4-turbo|[5-9])|o[1-9])`), llm.Accepts{Image: true, File: true}},
	{regexp.MustCompile(`^claude-`), llm.Accepts{Image: true, File: true}},
	// Models behind OpenAI-compatible servers: pictures only, since no two of those servers take files in the same way.
	{regexp.MustCompile(`^(?:gemini-|llava|bakllava|moondream|minicpm-v|pixtral|gemma-?3|llama-?4|grok-4|internvl|mistral-(?:small-?3\.[1-9]|medium-?3))`), llm.Accepts{Image: true}},
	{regexp.MustCompile(`(?:vision|qwen[0-9.]*-?vl|qvq|multimodal|glm-4\.?[0-9]*v)`), llm.Accepts{Image: true}},
}

// OfModel returns what a model takes besides text, by its name, with or without a vendor prefix ("openai/gpt-5").
func OfModel(model string) llm.Accepts {
	name := strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
	for _, f := range families {
		if f.name.MatchString(name) {
			return f.accepts
		}
	}
	return llm.Accepts{}
}
