// Package plan is the tool update_plan: a model shows the steps of a longer task. It changes nothing; the latest plan of
// a turn is in the arguments of its calls, and so in the journal.
package plan

import (
	"context"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/zephbot/zephbot/policy/act"
	"github.com/zephbot/zephbot/tools"
)

// Name of the tool.
const Name = "update_plan"

// Says returns the statement of the tool for the policy.
func Says() []act.Tool {
	return []act.Tool{{Name: Name, Statement: act.Statement{Act: act.Plans, Gain: 0.5}}}
}

// New returns the tool.
func New() (tools.Tool, error) {
	return tools.New(tools.Typed[tools.Plan]{
		Definition: tools.Definition{
			Name: Name, ReadOnly: true, Says: act.Of(Says(), Name), Seldom: "shows your steps",
			Description: "Shows the person your steps in a longer task. Send the whole list each time.",
		},
		Adjust: func(s *jsonschema.Schema) {
			s.Properties["entries"].MaxItems = new(tools.MostPlanned)
			s.Properties["entries"].Items.Properties["status"].Enum = []any{tools.PlanPending, tools.PlanInProgress, tools.PlanCompleted}
		},
		Describe: func(_ context.Context, _ *tools.Call, in tools.Plan) (tools.Subject, error) {
			list, err := in.Checked()
			if err != nil {
				return tools.Subject{}, err
			}
			lines := make([]string, len(list))
			for i, e := range list {
				lines[i] = e.Text
			}
			show := strings.Join(lines, "\n")
			return tools.Subject{Inputs: []string{show}, Show: show}, nil
		},
		Run: func(context.Context, *tools.Call, tools.Plan) (*tools.Result, error) {
			return &tools.Result{Text: "Shown."}, nil
		},
	})
}
