package ask_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/policy/act"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/ask"
	"github.com/zephbot/zephbot/tools/toolstest"
)

func tool(t *testing.T) tools.Tool {
	t.Helper()
	list, err := ask.New()
	if err != nil {
		t.Fatal(err)
	}
	return list[0]
}

func TestSays(t *testing.T) {
	t.Parallel()
	toolstest.CheckSays(t, ask.Says(), map[string]toolstest.Said{ask.Name: {Act: act.Asks}})
}

// TestForm: what is asked is what the model wrote, or it reads what is wrong with that.
func TestForm(t *testing.T) {
	t.Parallel()
	form := func(list ...tools.FormQuestion) *tools.Form { return &tools.Form{Questions: list} }
	words := tools.FormQuestion{Text: "Why?", Kind: tools.TextQuestion}
	for args, want := range map[string]any{
		`{"questions":[{"question":" Why? "}]}`:                                         form(words),
		`{"questions":[{"question":"Why?"},{"question":"When?","date":true}]}`:          form(words, tools.FormQuestion{Text: "When?", Kind: tools.DateQuestion}),
		`{"questions":[{"question":"Which?","choices":["A","B \n b"],"several":true}]}`: form(tools.FormQuestion{Text: "Which?", Kind: tools.ChoiceQuestion, Choices: []string{"A", "B b"}, Several: true}),
		`{"questions":[]}`: "questions: there are 0; ask 1 to 3 at once",
		`{"questions":[{"question":"1"},{"question":"2"},{"question":"3"},{"question":"4"}]}`:             "questions: there are 4",
		`{"questions":[{"question":" \u200b"}]}`:                                                          "questions[0].question: it is empty",
		`{"questions":[{"question":"` + strings.Repeat("ä", ask.MaxQuestion+1) + `"}]}`:                   "questions[0].question: it has more than 500 characters",
		`{"questions":[{"question":"Why?"},{"question":"Q","choices":["one"]}]}`:                          "questions[1].choices: there are 1; give 2 to 8",
		`{"questions":[{"question":"Q","choices":["1","2","3","4","5","6","7","8","9"]}]}`:                "choices: there are 9",
		`{"questions":[{"question":"Q","choices":["yes","Yes"]}]}`:                                        `questions[0].choices[1]: "Yes" is there twice`,
		`{"questions":[{"question":"Q","choices":["yes"," "]}]}`:                                          "questions[0].choices[1]: it is empty",
		`{"questions":[{"question":"Q","choices":["a","` + strings.Repeat("b", ask.MaxChoice+1) + `"]}]}`: "it has to fit on a button",
		`{"questions":[{"question":"Q","choices":["a","b"],"date":true}]}`:                                "leave out choices or date",
		`{"questions":[{"question":"Q","several":true}]}`:                                                 "there are no choices to take several of",
	} {
		got, err := tool(t).Describe(t.Context(), &tools.Call{Args: json.RawMessage(args)})
		if problem, ok := want.(string); ok {
			if err == nil || !strings.Contains(err.Error(), problem) {
				t.Errorf("%s: %v, want %q", args, err, problem)
			}
			continue
		}
		if diff := cmp.Diff(want, got.Form); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", args, err, diff)
		}
	}
}

// TestReport: the model reads each answer with its question. Nothing in the person's words can look like another answer.
func TestReport(t *testing.T) {
	t.Parallel()
	const args = `{"questions":[{"question":"Which?","choices":["A","B"]},{"question":"When?","date":true},{"question":"Why?"}]}`
	answers := []tools.FormAnswer{{Chosen: []string{"B"}}, {}, {Text: "\"}]\n<b>& all"}}
	for _, tc := range []struct {
		reply *tools.FormReply
		want  string
		said  []string
	}{
		{&tools.FormReply{State: tools.FormAnswered, Answers: answers}, "The person has answered:\n" +
			`[{"question":"Which?","chosen":["B"]},{"question":"When?","skipped":true},{"question":"Why?","said":"\"}]\n<b>& all"}]`, []string{"\"}]\n<b>& all"}},
		{&tools.FormReply{State: tools.FormAnswered, Answers: []tools.FormAnswer{{}, {Day: "2026-12-01", Until: "2026-12-06"}}}, "The person has answered:\n" +
			`[{"question":"Which?","skipped":true},{"question":"When?","date":"2026-12-01","until":"2026-12-06"}]`, nil},
		{&tools.FormReply{State: tools.FormDeclined}, "The person does not want to answer. Go on without it, or say what you cannot do without it.", nil},
		{&tools.FormReply{State: tools.FormExpired, Answers: answers[:1]}, "Nobody answered in time. Go on with what is most likely and say what you have assumed, or stop here. They had answered this before:\n" +
			`[{"question":"Which?","chosen":["B"]}]`, nil},
	} {
		got, err := tool(t).Run(t.Context(), &tools.Call{Args: json.RawMessage(args), Reply: tc.reply})
		if err != nil {
			t.Fatal(err)
		}
		if got.Text != tc.want || !cmp.Equal(got.Said, tc.said) {
			t.Errorf("%+v:\n%s\nsaid %q", tc.reply, got.Text, got.Said)
		}
	}
	if _, err := tool(t).Run(t.Context(), &tools.Call{Args: json.RawMessage(args)}); err == nil {
		t.Error("a call that nobody was asked about has a result")
	}
}
