package check

import (
	"slices"
	"strconv"
	"strings"
)

// everybody refuses a bot on which everybody may run everything without approval.
func (k *inspector) everybody() {
	t, tools := k.c.Telegram, k.c.Tools
	if !slices.Contains(t.AllowedUsers, "*") || k.c.Security.AutonomyLevel != "full" || !tools.Enabled {
		return
	}
	if len(t.AllowedTools) > 0 || tools.Policy.Enabled || tools.Authorization.Enabled || len(tools.Permissions) > 0 {
		return // somebody has considered what strangers may do
	}
	k.wrong(
		"telegram.allowed_users",
		"\"*\" lets everyone on Telegram run every tool unasked, because security.autonomy_level is full; "+
			"name people, set autonomy_level = \"supervised\", or limit the tools (telegram.allowed_tools, "+
			"tools.permissions, tools.policy)",
	)
}

// approversOf returns the approvers of a chat's own, and those of the group of a topic.
func (k *inspector) approversOf(id string) []int64 {
	chats := k.c.Telegram.Chats
	own := chats[id].Approvers
	if group, _, topic := strings.Cut(id, "/"); topic {
		own = append(slices.Clone(own), chats[group].Approvers...)
	}
	return own
}

// approvals checks whether questions can be approved at all. own are the approvers of one chat, in addition to those of
// all chats.
func (k *inspector) approvals(key string, required int, own []int64) {
	t := k.c.Telegram
	if k.c.Security.AutonomyLevel != "supervised" || !k.c.Tools.Enabled {
		return // nothing needs approval
	}
	may := map[int64]bool{}
	for _, id := range slices.Concat(t.Approvers, t.Admins, own) {
		may[id] = true
	}
	const cure = "; add people to telegram.approvers or telegram.admins, or lower the number"
	switch others := len(may) - 1; {
	case required > len(may) && required > 1:
		k.fault(key, "%d people must approve, but only %s may%s", required, countInWords(len(may)), cure)
	case required > 1 && others < required && k.onlyApproversAsk(may):
		k.fault(
			key, "%d people must approve, and of the %s who may, the one who asks does not count%s",
			required, countInWords(len(may)), cure,
		)
	case required > 1 && others < required:
		k.warn(
			key, "when one of the %s who may approve asks, the others are too few: %d must%s",
			countInWords(len(may)), required, cure,
		)
	case required == 1 && !t.ApprovalByRequester:
		k.byOthers(may)
	}
}

// byOthers checks whether there is anybody to approve what people may not approve for themselves.
func (k *inspector) byOthers(may map[int64]bool) {
	const key, cure = "telegram.approval_by_requester",
		"; add people to telegram.approvers or telegram.admins, or allow it"
	switch {
	case len(may) == 0:
		k.fault(key, "nobody may approve their own request, and there is nobody else who may%s", cure)
	case len(may) == 1 && k.onlyApproversAsk(may):
		k.fault(key, "only one person may talk to the bot and approve, and not what they ask for themselves%s", cure)
	case len(may) == 1:
		k.warn(key, "what the only person who may approve asks for, nobody can approve%s", cure)
	}
}

// onlyApproversAsk says whether everybody who may talk to the bot is one of the approvers.
func (k *inspector) onlyApproversAsk(may map[int64]bool) bool {
	for _, user := range k.c.Telegram.AllowedUsers {
		id, err := strconv.ParseInt(user, 10, 64)
		if err != nil || !may[id] {
			return false
		}
	}
	return true
}

// countInWords returns a number, as a word if it is zero or one.
func countInWords(n int) string {
	switch n {
	case 0:
		return "nobody"
	case 1:
		return "one"
	default:
		return strconv.Itoa(n)
	}
}
