package app

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/tools"
)

// rulebook answers /policy.
type rulebook struct{ core *Core }

// Status implements command.Policy.
func (r rulebook) Status() []string {
	s := r.core.policy.Status()
	on := func(enabled bool, rules int) string {
		if !enabled {
			return "off"
		}
		return fmt.Sprintf("%d rules", rules)
	}
	lines := []string{
		"autonomy " + string(s.Level),
		fmt.Sprintf("permissions %d rules for %d tools", s.PermissionRules, s.PermissionTools),
		"tools.policy " + on(s.Enabled, s.PolicyRules),
		"tools.authorization " + on(s.Authorization, s.AuthorizationRules),
	}
	if s.Enabled {
		lines[2] += fmt.Sprintf(", %s, else %s", s.Evaluation, s.Default)
		if s.File != "" {
			lines[2] += ", from " + s.File
		}
	}
	if r.core.judge != nil {
		lines = append(lines, "adversarial policy on")
	}
	return append(lines, "sandbox "+r.core.kit.level)
}

// Check implements command.Policy.
func (r rulebook) Check(ctx context.Context, msg *bot.Message, session bot.SessionKey, tool string, args []byte) (effect, rule, reason string, err error) {
	if !json.Valid(args) {
		return "", "", "", fmt.Errorf("these arguments are not JSON: %s", strings.TrimSpace(string(args)))
	}
	// what is decided about a path depends on where the conversation works
	lane, err := r.core.stores.Bot.Lane(ctx, session)
	if err != nil {
		return "", "", "", err
	}
	id := uuid.NewString()
	d, err := r.core.check(ctx, &tools.Call{
		ID: id, Tool: r.core.policy.Canonical(tool), Args: args, Trail: &tools.Trail{},
		Origin: tools.Origin{
			Channel: msg.Place.Channel, Session: string(session), Workspace: lane.Workspace, Chat: msg.Place.ChatKey(), Turn: id, Caller: msg.Caller, Admin: true,
		},
	})
	return d.Effect, d.Rule, d.Reason, err
}
