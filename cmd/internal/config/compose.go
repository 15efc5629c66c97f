package config

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/zephbot/zephbot/agent/llm/dialect"
)

// Chosen are the values that Compose writes. Empty ones keep their defaults, and are left out.
type Chosen struct {
	DataDir  string
	Token    Secret // "" = it comes from the environment
	APIURL   string
	Admins   []int64
	Provider *Provider // nil = the models come from the environment
	WorkDir  string    // where all conversations work; "" = each in a directory of its own
	Sandbox  string
}

// Reference is where every key is explained.
const Reference = "https://github.com/zephbot/zephbot/blob/main/docs/config.md"

// openAI is the default address of providers whose type has none of its own.
const openAI = "https://api.openai.com/v1"

// Compose returns a short commented config file: what was chosen, and nothing that is a default.
func Compose(c Chosen) []byte {
	var b strings.Builder
	line := func(comment, format string, args ...any) {
		if comment != "" {
			fmt.Fprintf(&b, "# %s\n", comment)
		}
		fmt.Fprintf(&b, format+"\n", args...)
	}
	fmt.Fprintf(&b, "# Configuration of zephbot: what differs from the defaults. Every key is explained in\n# %s\n"+
		"# `zephbot config check` finds mistakes, `zephbot config print` shows what applies. A restart "+
		"applies changes.\n", Reference)
	if c.DataDir != "" {
		b.WriteByte('\n')
		line(
			"Database, audit log and files of the chats; keep it, and back it up.", "data_dir = %s",
			quoteText(c.DataDir),
		)
	}
	b.WriteString("\n[telegram]\n")
	if c.Token != "" {
		line(
			"From @BotFather. Whoever has it is the bot: /revoke there makes a new one.", "token = %s",
			quoteText(c.Token.Reveal()),
		)
	} else {
		b.WriteString("# The token is read from ZEPH_TELEGRAM_TOKEN.\n")
	}
	if c.APIURL != "" {
		line("", "api_url = %s", quoteText(c.APIURL))
	}
	if len(c.Admins) > 0 {
		ids := make([]string, len(c.Admins))
		for i, id := range c.Admins {
			ids[i] = strconv.FormatInt(id, 10)
		}
		line(
			"Who manages the bot. Admins admit others in the chat: /admit ID.", "admins = [%s]",
			strings.Join(ids, ", "),
		)
	} else {
		b.WriteString("# Nobody is admin yet: the service shows a code at its start, and whoever sends it to the bot " +
			"is the first.\n")
	}
	c.provider(&b)
	c.places(line, &b)
	return []byte(b.String())
}

// provider writes the model.
func (c *Chosen) provider(b *strings.Builder) {
	p := c.Provider
	if p == nil {
		return
	}
	fmt.Fprintf(
		b, "\n# The model that answers.\n[[llm.providers]]\nname = %s\ntype = %s\n",
		quoteText(p.Name), quoteText(p.Type),
	)
	base, other := baseURLs()[p.Type]
	if !other {
		base = openAI
	}
	if d, known := dialect.Named(p.Preset); known {
		fmt.Fprintf(b, "preset = %s\n", quoteText(p.Preset))
		base = d.BaseURL
	}
	if p.BaseURL != "" && p.BaseURL != base {
		fmt.Fprintf(b, "base_url = %s\n", quoteText(p.BaseURL))
	}
	if p.Model != "" {
		fmt.Fprintf(b, "model = %s\n", quoteText(p.Model))
	}
	if p.APIKey != "" {
		fmt.Fprintf(b, "api_key = %s\n", quoteText(p.APIKey.Reveal()))
	}
}

// places writes where tools work, and how they are confined.
func (c *Chosen) places(line func(comment, format string, args ...any), b *strings.Builder) {
	sandbox := c.Sandbox != "" && c.Sandbox != Default().Tools.Shell.Sandbox
	if c.WorkDir != "" || sandbox {
		b.WriteString("\n[tools.shell]\n")
	}
	if c.WorkDir != "" {
		line(
			"All conversations work in this directory. Without this line each has one of its own, below data_dir.",
			"allowed_paths = [%s]",
			quoteText(c.WorkDir),
		)
	}
	if sandbox {
		line(
			"auto: what the kernel offers; required: no command runs without it; off: none.", "sandbox = %s",
			quoteText(c.Sandbox),
		)
	}
	if c.WorkDir != "" {
		fmt.Fprintf(b, "\n[tools.file]\nallowed_paths = [%s]\n", quoteText(c.WorkDir))
	}
}
