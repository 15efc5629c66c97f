package media

import (
	"slices"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/dialect"
)

// OfModel returns what a model takes besides text, by its name, with or without a vendor prefix
// ("openai/gpt-5"). Models that no row of the table in package dialect knows are assumed to take text only
// unless the configuration says otherwise.
func OfModel(model string) llm.Accepts {
	kinds, _ := dialect.AcceptedBy(model)
	return llm.Accepts{
		Image: slices.Contains(kinds, string(llm.ImagePart)), File: slices.Contains(kinds, string(llm.FilePart)),
	}
}
