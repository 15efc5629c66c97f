// Package ask is the tool ask_user: the model asks the person whose turn it is up to three questions, and reads what
// they answer. The turn waits for them like for an approval (tools/approve); who shows the questions is bot/inquiry.
package ask

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/zephbot/zephbot/policy/act"
	"github.com/zephbot/zephbot/tools"
)

// Name of the tool.
const Name = "ask_user"

// Limits of what is asked; lengths are in characters.
const (
	MostQuestions = 3
	MostChoices   = 8
	MaxQuestion   = 500
	MaxChoice     = 60
)

// Says returns the statement of the tool for the policy.
func Says() []act.Tool {
	return []act.Tool{{Name: Name, Statement: act.Statement{Act: act.Asks, Gain: 0.8}}}
}

type args struct {
	Questions []question `json:"questions"`
}

type question struct {
	Question string   `json:"question"`
	Choices  []string `json:"choices,omitempty" jsonschema:"buttons"`
	Several  bool     `json:"several,omitempty"`
	Date     bool     `json:"date,omitempty"`
}

// New returns the tool.
func New() ([]tools.Tool, error) {
	tool, err := tools.New(tools.Typed[args]{
		Definition: tools.Definition{
			Name: Name, ReadOnly: true, Seldom: "asks the person, with buttons",
			Description: "Asks the person up to 3 short questions and waits for the answers. For what only they can " +
				"decide; no permission: calls that need one ask by themselves.",
		},
		Describe: func(_ context.Context, _ *tools.Call, in args) (tools.Subject, error) {
			form, err := formOf(in)
			if err != nil {
				return tools.Subject{}, err
			}
			var texts []string
			for i := range form.Questions {
				texts = append(texts, form.Questions[i].Text)
			}
			return tools.Subject{Inputs: texts, Show: strings.Join(texts, "\n"), Form: form}, nil
		},
		Run: func(_ context.Context, call *tools.Call, in args) (*tools.Result, error) {
			if call.Reply == nil { // the stage before it lets no other call through
				return nil, tools.Errorf(tools.PermanentFailure, "nobody was asked")
			}
			return reportReply(in, call.Reply)
		},
		Adjust: func(s *jsonschema.Schema) {
			list := s.Properties["questions"]
			list.MinItems, list.MaxItems = new(1), new(MostQuestions)
			list.Items.Properties["choices"].MaxItems = new(MostChoices)
			list.Items.Required = nil // a question without a text is told in words
		},
	})
	if err != nil {
		return nil, err
	}
	return tools.State([]tools.Tool{tool}, Says())
}

// formOf checks what the model wants to ask.
func formOf(in args) (*tools.Form, error) {
	if n := len(in.Questions); n == 0 || n > MostQuestions {
		return nil, tools.Errorf(
			tools.InvalidParameters, "questions: there are %d; ask 1 to %d at once", n, MostQuestions,
		)
	}
	form := &tools.Form{}
	for i := range in.Questions {
		q, problem := in.Questions[i].checkedForm()
		if problem != "" {
			return nil, tools.Errorf(tools.InvalidParameters, "questions[%d].%s", i, problem)
		}
		form.Questions = append(form.Questions, q)
	}
	return form, nil
}

// checkedForm returns the question as it is asked, or what is wrong with it.
func (q question) checkedForm() (asked tools.FormQuestion, problem string) {
	asked = tools.FormQuestion{Text: strings.TrimSpace(q.Question), Kind: tools.TextQuestion, Several: q.Several}
	switch n := len(q.Choices); {
	case !isReadable(asked.Text):
		return asked, "question: it is empty; write what the person is to answer"
	case utf8.RuneCountInString(asked.Text) > MaxQuestion:
		return asked, fmt.Sprintf("question: it has more than %d characters; say the rest in your answer", MaxQuestion)
	case q.Date && n > 0:
		return asked, "choices: a date has its own buttons; leave out choices or date"
	case n == 1 || n > MostChoices:
		return asked, fmt.Sprintf("choices: there are %d; give 2 to %d, or none for an answer in words", n, MostChoices)
	case q.Several && n == 0:
		return asked, "several: there are no choices to take several of"
	case q.Date:
		asked.Kind = tools.DateQuestion
	case n > 0:
		asked.Kind = tools.ChoiceQuestion
	}
	for i, choice := range q.Choices {
		choice = strings.Join(strings.Fields(choice), " ")
		same := func(other string) bool { return strings.EqualFold(other, choice) }
		switch {
		case !isReadable(choice):
			return asked, fmt.Sprintf("choices[%d]: it is empty", i)
		case utf8.RuneCountInString(choice) > MaxChoice:
			return asked, fmt.Sprintf(
				"choices[%d]: it has more than %d characters; it has to fit on a button", i, MaxChoice,
			)
		case slices.ContainsFunc(asked.Choices, same):
			return asked, fmt.Sprintf("choices[%d]: %q is there twice", i, choice)
		}
		asked.Choices = append(asked.Choices, choice)
	}
	return asked, ""
}

// isReadable reports whether there is anything to see in a text.
func isReadable(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return unicode.IsGraphic(r) && !unicode.IsSpace(r) })
}

// answered is what the model reads of one question. The person's words are a JSON string, so that nothing in them can
// look like something else.
type answered struct {
	Question string   `json:"question"`
	Chosen   []string `json:"chosen,omitempty"`
	Said     string   `json:"said,omitempty"`
	Day      string   `json:"date,omitempty"`
	Until    string   `json:"until,omitempty"`
	Skipped  bool     `json:"skipped,omitempty"`
}

// What the model is told before the answers.
const (
	saidAll      = "The person has answered:"
	saidNothing  = "The person does not want to answer. Go on without it, or say what you cannot do without it."
	saidLate     = "Nobody answered in time. Go on with what is most likely and say what you have assumed, or stop here."
	saidSoFar    = "They had answered this before:"
	saidDeclines = saidNothing + " " + saidSoFar
	saidLater    = saidLate + " " + saidSoFar
)

// reportReply returns what the model reads.
func reportReply(in args, reply *tools.FormReply) (*tools.Result, error) {
	var list []answered
	var words []string
	for i, a := range reply.Answers {
		if i == len(in.Questions) {
			break
		}
		list = append(list, answered{
			Question: strings.TrimSpace(in.Questions[i].Question),
			Chosen:   a.Chosen, Said: a.Text, Day: a.Day, Until: a.Until,
			Skipped: len(a.Chosen) == 0 && a.Text == "" && a.Day == "",
		})
		if a.Text != "" {
			words = append(words, a.Text)
		}
	}
	head := map[tools.FormState][2]string{
		tools.FormAnswered: {saidAll, saidAll},
		tools.FormDeclined: {saidNothing, saidDeclines},
		tools.FormExpired:  {saidLate, saidLater},
	}[reply.State]
	if len(list) == 0 {
		return &tools.Result{Text: head[0]}, nil
	}
	var text strings.Builder
	text.WriteString(head[1] + "\n")
	form := json.NewEncoder(&text)
	form.SetEscapeHTML(false)
	if err := form.Encode(list); err != nil {
		return nil, fmt.Errorf("answers: %w", err)
	}
	return &tools.Result{Text: strings.TrimSpace(text.String()), Said: words}, nil
}
