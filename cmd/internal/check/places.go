package check

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/cmd/internal/providers"
	"github.com/zephbot/zephbot/policy/nearest"
	"github.com/zephbot/zephbot/policy/netrule"
	"github.com/zephbot/zephbot/policy/pathrule"
	"github.com/zephbot/zephbot/tools/mcp/guard"
	"github.com/zephbot/zephbot/tools/skill"
)

// addresses checks the addresses of APIs, as far as that is possible without asking them.
func (k *inspector) addresses() {
	for i, p := range k.c.LLM.Providers {
		at := fmt.Sprintf("llm.providers[%d].base_url", i)
		u, err := url.Parse(p.BaseURL)
		if err != nil {
			continue // refused
		}
		base, query, _ := strings.Cut(p.BaseURL, "?")
		for _, method := range []string{
			"/chat/completions", "/completions", "/responses", "/embeddings", "/messages", "/models",
		} {
			if rest, ok := strings.CutSuffix(strings.TrimRight(base, "/"), method); ok {
				if query != "" {
					rest += "?" + query
				}
				k.wrong(at, "ends with %s, which is added by itself; write %s", method, rest)
				break
			}
		}
		if strings.Trim(u.Path, "/") == "" && providers.DialectOf(p).Name == "azure" {
			k.warn(
				at,
				"has no path; Azure's addresses end with /openai/v1, or with /openai/deployments/NAME?api-version=…",
			)
		}
		if p.Type == "openai" && u.Hostname() == "api.anthropic.com" {
			k.warn(at, "is Anthropic's; set type = \"anthropic\", whose API can do more")
		}
		if u.Scheme == "http" && p.Keys()[0] != "" && !OnMachine(u.Hostname()) {
			k.warn(at, "the key travels in clear text; use https, or a server on this machine")
		}
	}
	if u := k.c.Telegram.APIURL; strings.HasPrefix(u, "http://") && !Loopback(u) && k.c.Telegram.Token != "" {
		k.warn("telegram.api_url", "the token travels in clear text; use https, or a server on this machine")
	}
}

// OnMachine says whether a host is this machine.
func OnMachine(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || ip != nil && ip.IsLoopback()
}

// permitted checks that a server's address may be connected to, as far as that is known without looking it up.
func (k *inspector) permitted(key string, s *config.MCPServer) {
	if s.URL == "" {
		return
	}
	_, err := netrule.CheckURL(s.URL, netrule.Options{
		AllowHTTP: true, AllowPrivate: s.TrustLevel == string(guard.Trusted),
	})
	if rule, ok := errors.AsType[*netrule.Error](err); ok && rule.Kind == netrule.KindPrivate {
		k.warn(key, "is an address of this machine or its network, and those are for trusted servers: it will not be "+
			"connected; set trust_level = \"trusted\" if the server is yours")
	} else if err != nil {
		k.warn(key, "will not be connected: %s", err)
	}
}

// listeners checks the addresses that are listened on.
func (k *inspector) listeners() {
	type listener struct{ key, address string }
	var list []listener
	if at := k.c.Metrics.Listen; at != "" {
		list = append(list, listener{"metrics.listen", at})
	}
	if k.c.Telegram.WebhookURL != "" {
		list = append(list, listener{"telegram.webhook_listen", k.c.Telegram.WebhookListen})
	} else if k.c.Set("telegram.webhook_listen") &&
		k.c.Telegram.WebhookListen != config.Default().Telegram.WebhookListen {
		k.warn("telegram.webhook_listen", "has no effect without telegram.webhook_url: updates are polled")
	}
	if at := k.c.Triggers.Listen; at != "" && (k.c.Telegram.WebhookURL == "" || at != k.c.Telegram.WebhookListen) {
		list = append(list, listener{"triggers.listen", at})
	}
	ports := map[string]string{}
	for _, l := range list {
		host, port, err := net.SplitHostPort(l.address)
		if err != nil {
			continue // refused
		}
		if other := ports[port]; other != "" && port != "0" {
			k.wrong(l.key, "has the same port as %s; take another one", other)
		}
		ports[port] = l.key
		if text := notOurs(host); text != "" {
			k.fault(l.key, "%s", text)
		}
	}
}

// notOurs returns why a host cannot be listened on; "" = it can, or is a name.
func notOurs(host string) string {
	if host == "" {
		return ""
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		if strings.Trim(host, "0123456789.") == "" {
			return host + " is no address; write one of this machine, such as 127.0.0.1, or leave it out for all"
		}
		return ""
	}
	own, err := net.InterfaceAddrs()
	if err != nil || ip.IsUnspecified() || ip.IsLoopback() {
		return ""
	}
	for _, a := range own {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil && prefix.Addr().WithZone("") == ip.WithZone("") {
			return ""
		}
	}
	return host + " is no address of this machine; write one that is, such as 127.0.0.1, or leave it out for all"
}

// reachable checks the directories that are granted to tools: what the program itself keeps is out of their reach.
func (k *inspector) reachable() {
	grants := map[string][]string{
		"tools.shell.allowed_paths": k.c.Tools.Shell.AllowedPaths,
		"tools.file.allowed_paths":  k.c.Tools.File.AllowedPaths,
		"index.paths":               k.c.Index.Paths,
	}
	for _, key := range sortedKeys(grants) {
		for _, p := range grants[key] {
			for _, own := range k.c.Obeyed() {
				if p != config.Here && pathrule.Inside(own, k.c.Path(p)) {
					k.fault(key, "%s is in %s, which tools cannot reach; name another directory", p, own)
					break
				}
			}
		}
	}
	files := k.c.Tools.File.AllowedPaths
	for _, p := range k.c.Index.Paths {
		inside := func(allowed string) bool {
			return p == allowed || allowed != config.Here && pathrule.Inside(k.c.Path(allowed), k.c.Path(p))
		}
		if p != config.Here && !slices.ContainsFunc(files, inside) {
			k.warn("index.paths", "%s is not in tools.file.allowed_paths, so nothing is found in it; add it there", p)
		}
	}
}

// languageServer checks that the server of search_code is configured.
func (k *inspector) languageServer() {
	id := k.c.Index.LSP.Server
	if id == "" || k.c.MCP.ChatCommands {
		return
	}
	var names []string
	for _, s := range k.c.MCP.Servers {
		names = append(names, s.ID)
	}
	if slices.Contains(names, id) {
		return
	}
	text := "; add it to mcp.servers"
	if near, ok := nearest.Nearest(id, names); ok {
		text = "; did you mean " + near + "?"
	}
	k.fault("index.lsp.server", "%s is none of mcp.servers%s", id, text)
}

// startable checks the directory, the script and the lists of tools of a server.
func (k *inspector) startable(at string, s *config.MCPServer) {
	if s.Command != "" && s.Dir != "" {
		if info, err := os.Stat(k.c.Path(s.Dir)); err != nil || !info.IsDir() {
			k.fault(at+".dir", "%s is no directory that exists; make it, or correct the path", s.Dir)
		}
	}
	for _, arg := range s.Args {
		if s.Command == "" || !filepath.IsAbs(arg) || strings.ContainsAny(arg, "*?[{ ") ||
			!slices.Contains([]string{".js", ".mjs", ".cjs", ".ts", ".py", ".sh", ".rb"}, filepath.Ext(arg)) {
			continue
		}
		if _, err := os.Stat(arg); err != nil {
			k.fault(at+".args", "%s does not exist; install it, or correct the path", arg)
		}
	}
	k.permitted(at+".url", s)
	if s.ToolAllowlist == nil {
		return
	}
	for _, name := range s.ExpectedTools {
		if !slices.Contains(*s.ToolAllowlist, name) {
			k.warn(
				at+".expected_tools",
				"%s is not in tool_allowlist, so it is not offered; add it there, or take it out here",
				name,
			)
		}
	}
}

// skills checks the folders of skills, and the names that chats may use.
func (k *inspector) skills() {
	s := k.c.Skills
	if !s.Enabled {
		return
	}
	var roots []string
	for i, path := range s.Paths {
		root := k.c.Path(path)
		roots = append(roots, root)
		for _, own := range k.c.Obeyed() {
			if pathrule.Inside(own, root) {
				k.fault(
					fmt.Sprintf("skills.paths[%d]", i),
					"%s is in %s, which commands cannot reach; put the skills elsewhere",
					path, own,
				)
				break
			}
		}
	}
	found, problems := skill.Find(roots)
	for _, p := range problems {
		k.fault("skills.paths", "%s", p)
	}
	known := map[string]bool{}
	for _, s := range found {
		known[s.Name] = true
	}
	for id, chat := range k.c.Telegram.Chats {
		if chat.Skills == nil {
			continue
		}
		for _, name := range *chat.Skills {
			if !known[name] {
				k.warn(config.Entry("telegram.chats", id)+".skills", "there is no skill %.80q in skills.paths", name)
			}
		}
	}
}
