// Package delegate is the tool with which a model gives work to a sub-agent: a model with a conversation of its own,
// which knows only the task, and has some of the caller's tools. The tool checks the task; whoever runs the
// conversation runs the sub-agent (tools.Call.Delegate).
package delegate

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/zephbot/zephbot/policy/act"
	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/tools"
)

// Name is the name of the tool.
const Name = "delegate"

// Limits of a task.
const (
	mostText  = 16000 // characters
	mostTools = 64
	// defaultAgent is the name of a sub-agent that was given none.
	defaultAgent = "researcher"
)

// Usual is the budget of a task that names none, and Most the largest one that a task can have. Quotas of the person
// limit sub-agents besides.
var (
	Usual      = tools.Budget{Steps: 10, Calls: 20, Tokens: 100_000}
	mostBudget = tools.Budget{Steps: 30, Calls: 100, Tokens: 1_000_000, USD: 100}
)

// Says returns the tool's statement for the policy.
func Says() []act.Tool {
	return []act.Tool{{Name: Name, Statement: act.Statement{Act: act.Delegates}}}
}

type args struct {
	Task   string   `json:"task" jsonschema:"everything that the sub-agent has to know: the question, what to look at, the form of the result"`
	Name   string   `json:"name,omitempty" jsonschema:"its role in one word, such as researcher: people see it"`
	Tools  []string `json:"tools,omitempty" jsonschema:"the names of those of your tools that it may call; without it, all that only read"`
	Budget *budget  `json:"budget,omitempty" jsonschema:"at the first limit it has to give what it has"`
}

type budget struct {
	Steps  int     `json:"steps,omitempty" jsonschema:"rounds of tool calls"`
	Calls  int     `json:"tool_calls,omitempty" jsonschema:"tool calls"`
	Tokens int     `json:"tokens,omitempty" jsonschema:"tokens of its model"`
	USD    float64 `json:"usd,omitempty" jsonschema:"cost of its model in US dollars; without it, only quotas limit that"`
}

// New returns the tool. list are the registered tools.
func New(list tools.Set) (tools.Tool, error) {
	d := &delegate{list: list}
	return tools.New(tools.Typed[args]{
		Definition: tools.Definition{
			Name: Name, ReadOnly: true, Says: act.Of(Says(), Name),
			Description: "Gives a task to a sub-agent: a model with an empty conversation, which knows only the text " +
				"of the task " +
				"and can call only the tools that you name. You read its result alone, so use it for work whose " +
				"material would fill " +
				"this conversation. Several calls in one step run side by side. A sub-agent cannot delegate.",
		},
		Adjust:   adjust,
		Describe: d.describe,
		Run:      d.run,
	})
}

func adjust(s *jsonschema.Schema) {
	s.Properties["tools"].MaxItems = new(mostTools)
	limit := func(name string, usual, most int) {
		p := s.Properties["budget"].Properties[name]
		p.Minimum, p.Maximum = new(1.0), new(float64(most))
		p.Description += fmt.Sprintf("; %d without it", usual)
	}
	limit("steps", Usual.Steps, mostBudget.Steps)
	limit("tool_calls", Usual.Calls, mostBudget.Calls)
	limit("tokens", Usual.Tokens, mostBudget.Tokens)
	usd := s.Properties["budget"].Properties["usd"]
	usd.ExclusiveMinimum, usd.Maximum = new(0.0), new(mostBudget.USD)
}

// delegate implements the tool.
type delegate struct{ list tools.Set }

func (d *delegate) describe(_ context.Context, call *tools.Call, in args) (tools.Subject, error) {
	task, err := d.task(call, in)
	if err != nil {
		return tools.Subject{}, err
	}
	b := task.Budget
	return tools.Subject{
		Inputs: []string{task.Name},
		Show:   task.Name + ": " + task.Text + "\n\n" + strings.Join(task.Tools, ", "),
		Note:   budgetNote(b),
	}, nil
}

// budgetNote tells a person who is asked what the sub-agent may spend.
func budgetNote(b tools.Budget) reason.Reason {
	spend := reason.New(reason.AgentBudget, fmt.Sprint(b.Steps), fmt.Sprint(b.Calls), fmt.Sprint(b.Tokens))
	text := reason.Notes(reason.New(reason.SubAgent), spend)
	if b.USD > 0 {
		return text.And(reason.New(reason.AgentMoney, fmt.Sprint(b.USD)))
	}
	return text
}

func (d *delegate) run(ctx context.Context, call *tools.Call, in args) (*tools.Result, error) {
	task, err := d.task(call, in)
	if err != nil {
		return nil, err
	}
	if call.Delegate == nil {
		return nil, tools.Refused(reason.New(reason.NoConversation), "Do the work yourself.")
	}
	return call.Delegate(ctx, task)
}

// agentName is matched before capitals are made small: other letters than a-z can become these.
var agentName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,31}$`)

// task checks what the model wrote.
func (d *delegate) task(call *tools.Call, in args) (tools.Task, error) {
	t := tools.Task{Name: strings.TrimSpace(in.Name), Text: strings.TrimSpace(in.Task), Budget: Usual}
	if t.Name == "" {
		t.Name = defaultAgent
	}
	switch {
	case t.Text == "":
		return t, tools.Errorf(
			tools.InvalidParameters, "task: it is empty; write everything that the sub-agent has to know",
		)
	case utf8.RuneCountInString(t.Text) > mostText:
		return t, tools.Errorf(
			tools.InvalidParameters, "task: it has more than %d characters; put long material into a file and name it",
			mostText,
		)
	case !agentName.MatchString(t.Name):
		return t, tools.Errorf(tools.InvalidParameters,
			"name: %.40q is not a name; want 1 to 32 letters a-z, digits, - or _, such as %s", t.Name, defaultAgent)
	}
	t.Name = strings.ToLower(t.Name)
	if b := in.Budget; b != nil {
		t.Budget.USD = b.USD
		for _, l := range []struct {
			to    *int
			given int
		}{{&t.Budget.Steps, b.Steps}, {&t.Budget.Calls, b.Calls}, {&t.Budget.Tokens, b.Tokens}} {
			if l.given > 0 {
				*l.to = l.given
			}
		}
	}
	var err error
	t.Tools, err = d.tools(call, in.Tools)
	return t, err
}

// tools returns the tools of the sub-agent: those that were named, or those that only read. It has none that its caller
// does not have.
func (d *delegate) tools(call *tools.Call, named []string) ([]string, error) {
	caller := call.Tools.Over(d.list)
	var list, unknown []string
	if len(named) == 0 {
		for _, def := range caller.Definitions() {
			if says := def.Stated().Act; def.ReadOnly && def.Name != Name && says != act.Asks && says != act.Plans {
				list = append(list, def.Name)
			}
		}
		return list, nil
	}
	for _, name := range named {
		switch _, ok := caller.Lookup(name); {
		case name == Name:
			return nil, tools.Errorf(tools.InvalidParameters, "tools: a sub-agent cannot delegate; leave out %s", Name)
		case !ok:
			unknown = append(unknown, fmt.Sprintf("%.64q", name))
		case !slices.Contains(list, name):
			list = append(list, name)
		}
	}
	if len(unknown) > 0 {
		return nil, tools.Errorf(
			tools.InvalidParameters, "tools: you have no tool named %s, so a sub-agent cannot have it",
			strings.Join(unknown, ", "),
		)
	}
	return list, nil
}
