package price

// What is not paid by a model's input and output: speech that is written down, and embeddings. The lists are as of AsOf:
//
//   - OpenAI: https://developers.openai.com/api/docs/pricing
//   - Groq: https://groq.com/pricing (an hour there)
//   - Google: https://ai.google.dev/gemini-api/docs/pricing
//   - Mistral: https://mistral.ai/pricing

// single is a model with one price, and those of its family whose names only add a date.
type single struct {
	model string
	usd   float64
}

// transcriptions are prices of a minute of a recording.
func transcriptions() []single {
	return []single{
		{"whisper-1", 0.006},
		{"gpt-4o-transcribe", 0.006},
		{"gpt-4o-transcribe-diarize", 0.006},
		{"gpt-4o-mini-transcribe", 0.003},
		{"whisper-large-v3-turbo", 0.04 / 60},
		{"whisper-large-v3", 0.111 / 60},
	}
}

// embeddings are prices of a million tokens.
func embeddings() []single {
	return []single{
		{"text-embedding-3-small", 0.02},
		{"text-embedding-3-large", 0.13},
		{"text-embedding-ada-002", 0.1},
		{"gemini-embedding-001", 0.15},
		{"mistral-embed", 0.1},
	}
}

// OfTranscription is the price of a minute of a recording, by the name that the model's API knows; ok is false when
// nobody knows it.
func OfTranscription(model string) (usd float64, ok bool) { return singleOf(transcriptions(), model) }

// OfEmbedding is the price of a million tokens of texts that are embedded; ok is false when nobody knows it.
func OfEmbedding(model string) (usd float64, ok bool) { return singleOf(embeddings(), model) }

// HighestTranscription is the highest price of a minute that the table has.
func HighestTranscription() float64 { return highest(transcriptions()) }

// HighestEmbedding is the highest price of a million tokens that the table has.
func HighestEmbedding() float64 { return highest(embeddings()) }

func singleOf(list []single, model string) (float64, bool) {
	name := plain(model)
	for _, s := range list {
		if named(name, s.model) {
			return s.usd, true
		}
	}
	return 0, false
}

func highest(list []single) (most float64) {
	for _, s := range list {
		most = max(most, s.usd)
	}
	return most
}
