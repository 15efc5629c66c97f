package dialect_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/zephbot/zephbot/agent/llm/dialect"
)

func TestTable(t *testing.T) {
	t.Parallel()
	list, err := dialect.All()
	if err != nil || len(list) < 18 {
		t.Fatalf("%d rows, %v", len(list), err)
	}
	names := map[string]bool{}
	for _, d := range list {
		if names[d.Name] || d.Name == "" || d.Title == "" || len(d.Facts) == 0 {
			t.Errorf("row %q: a name that is used twice, or no title, or no source", d.Name)
		}
		names[d.Name] = true
		if (d.Port > 0) != (len(d.Signs) > 0) {
			t.Errorf("row %q: a local server cannot be told from others", d.Name)
		}
		if d.BaseURL == "" && d.Name != "azure" {
			t.Errorf("row %q has no address", d.Name)
		}
		if found, ok := dialect.OfAddress(d.BaseURL); len(d.Hosts) > 0 && d.BaseURL != "" && (!ok || found.Name != d.Name) {
			t.Errorf("%s is taken for %q, want %q", d.BaseURL, found.Name, d.Name)
		}
	}
}

// TestMeant: each name means one server, and those of presets their own.
func TestMeant(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"grok": "xai", "x.ai": "xai", "google": "gemini", "Google AI": "gemini", "claude": "anthropic", "kimi": "moonshot", "zhipu": "zai", "z-ai": "zai", "glm": "zai", "qwen": "dashscope", "alibaba": "dashscope",
		"LM Studio": "lmstudio", "lm-studio": "lmstudio", "llama.cpp": "llamacpp", "llama_cpp": "llamacpp", "OpenAI": "openai", "chatgpt": "openai", "azure-openai": "azure", "together.ai": "together", "groq": "groq",
		"hf": "", "bedrock": "", "Hugging Face": "", "vertex": "", "tgi": "",
	} {
		if d, ok := dialect.Meant(name); !ok || d.Name != want || d.Title == "" || d.Name == "" && d.BaseURL == "" {
			t.Errorf("%s: %q, %v; want %q", name, d.Name, ok, want)
		}
	}
	for _, name := range []string{"", "-", "gro", "something"} {
		if d, ok := dialect.Meant(name); ok {
			t.Errorf("%q is taken for %s", name, d.Title)
		}
	}
	list, err := dialect.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range list {
		for _, also := range append(d.Also, d.Name, d.Title) {
			if meant, ok := dialect.Meant(also); !ok || meant.Name != d.Name {
				t.Errorf("%s of %s means %s", also, d.Name, meant.Name)
			}
		}
	}
}

func TestOfAddress(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"https://api.openai.com/v1":            "openai",
		"https://API.OpenAI.com/v1/":           "openai",
		"https://mine.openai.azure.com/openai": "azure",
		"https://open.bigmodel.cn/api/paas/v4": "zai",
		"https://api.openai.com.evil.example":  "",
		"http://localhost:8000/v1":             "",
		"":                                     "",
	} {
		if d, _ := dialect.OfAddress(address); d.Name != want {
			t.Errorf("%s: %q, want %q", address, d.Name, want)
		}
	}
}

// What was learnt is added to a copy: rows are shared.
func TestWith(t *testing.T) {
	t.Parallel()
	d, _ := dialect.Named("mistral")
	before, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	more := d.With(&dialect.Learnt{
		Omit: []string{"temperature"}, Rename: map[string]string{"max_tokens": "max_completion_tokens"},
		Set: map[string]string{"reasoning_effort": `"none"`}, Safe: true, History: []string{"no_system", "no_reasoning"},
	})
	if !slices.Contains(more.Params.Omit, "temperature") || !slices.Contains(more.Params.Omit, "user") || more.Params.Rename["max_tokens"] == "" ||
		string(more.Params.Set["reasoning_effort"]) != `"none"` || len(more.Schema.Keywords) > 0 || !more.History.NoSystem || more.History.Reasoning != dialect.ReasoningNever || !more.History.Bridge {
		t.Errorf("%+v", more)
	}
	after, err := json.Marshal(d)
	if err != nil || string(after) != string(before) {
		t.Errorf("the row was changed: %s, %v", after, err)
	}
}

// What is recalled is not changed afterwards, and is forgotten after a week.
func TestLocal(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	m := &dialect.Local{Now: func() time.Time { return now }}
	if m.Recall("main", "x") != nil {
		t.Error("something is known before it was learnt")
	}
	m.Update("main", "x", func(l *dialect.Learnt) { l.Omit = append(l.Omit, "user") })
	first := m.Recall("main", "x")
	m.Update("main", "x", func(l *dialect.Learnt) { l.Omit[0], l.Safe = "store", true })
	second := m.Recall("main", "x")
	if first.Omit[0] != "user" || first.Safe || second.Omit[0] != "store" || !second.Safe || m.Recall("main", "y") != nil {
		t.Errorf("%+v, then %+v", first, second)
	}
	now = now.Add(dialect.Forgotten + time.Second)
	if m.Recall("main", "x") != nil {
		t.Error("it is still known after a week")
	}
	m.Update("main", "x", func(l *dialect.Learnt) { l.Window = 8192 })
	if got := m.Recall("main", "x"); got.Safe || got.Window != 8192 {
		t.Errorf("after a week: %+v", got)
	}
}

// Each request recalls what is known.
func TestRecallAllocatesNothing(t *testing.T) { //nolint:paralleltest // allocations are counted
	m := &dialect.Local{}
	m.Update("main", "x", func(l *dialect.Learnt) { l.Safe = true })
	if n := testing.AllocsPerRun(100, func() { m.Recall("main", "x") }); n > 0 {
		t.Errorf("Recall allocates %v times", n)
	}
}
