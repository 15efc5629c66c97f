package check

import (
	"errors"
	"net/url"
	"slices"
	"strings"

	"github.com/zephbot/zephbot/bot/telegram"
	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/policy/lazyregexp"
)

// telegram checks the token and who may do what.
func (k *inspector) telegram() {
	t := k.c.Telegram
	if t.Token != "" && !k.refusedURL(t.APIURL) {
		client, err := telegram.NewClient(telegram.Options{Token: t.Token.Reveal(), APIURL: t.APIURL})
		if err != nil {
			k.refuse("telegram.token", trimmedError(err))
		} else {
			client.Close()
		}
	}
	k.webhook(t)
	k.everybody()
	k.approvals("telegram.approvals_required", t.ApprovalsRequired, nil)
	for _, id := range sortedKeys(t.Chats) {
		chat, at := t.Chats[id], config.Entry("telegram.chats", id)
		group, _, _ := strings.Cut(id, "/")
		if strings.HasPrefix(group, "-") && !slices.Contains(t.AllowedChats, group) &&
			!slices.Contains(t.AllowedChats, "*") {
			k.warn(
				at, "applies only if an admin has admitted the group in the chat, which is not looked up here: "+
					"telegram.allowed_chats does not list %s",
				group,
			)
		}
		if chat.ApprovalsRequired > 0 || len(chat.Approvers) > 0 {
			required, key := chat.ApprovalsRequired, at+".approvals_required"
			if required == 0 {
				required, key = t.ApprovalsRequired, at
			}
			k.approvals(key, required, k.approversOf(id))
		}
	}
}

// refusedURL reports whether config has refused the address of the Bot API already.
func (k *inspector) refusedURL(address string) bool {
	u, err := url.Parse(address)
	return err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == ""
}

// trimmedError removes the key from an error that begins with it, because the place contains it.
func trimmedError(err error) error {
	if rest, ok := strings.CutPrefix(err.Error(), "telegram.token "); ok {
		return errors.New("telegram.token: " + rest)
	}
	return err
}

// hookSecret matches what Telegram accepts as a secret_token (Bot API setWebhook).
var hookSecret = lazyregexp.New(`^[A-Za-z0-9_-]{1,256}$`)

// publicAPI is the Bot API server that only delivers to public addresses.
const publicAPI = "https://api.telegram.org"

// webhook checks whether Telegram could deliver to the address, and would accept the secret.
func (k *inspector) webhook(t config.Telegram) {
	if t.WebhookSecret != "" && !hookSecret().MatchString(t.WebhookSecret.Reveal()) {
		k.wrong(
			"telegram.webhook_secret",
			"Telegram takes 1 to 256 of A-Z, a-z, 0-9, _ and - only; leave it empty, and one is made from the token",
		)
	}
	if t.WebhookURL == "" {
		if t.WebhookSecret != "" {
			k.warn("telegram.webhook_secret", "has no effect without telegram.webhook_url: updates are polled")
		}
		return
	}
	u, err := url.Parse(t.WebhookURL)
	if err != nil || t.APIURL != publicAPI {
		return // a self-hosted server delivers to any address
	}
	switch {
	case u.Scheme != "https":
		k.wrong(
			"telegram.webhook_url",
			"Telegram delivers to https addresses only; a proxy before %s can hold the certificate",
			t.WebhookListen,
		)
	case !slices.Contains([]string{"", "443", "80", "88", "8443"}, u.Port()):
		k.wrong("telegram.webhook_url", "Telegram delivers to the ports 443, 80, 88 and 8443 only; "+
			"telegram.webhook_listen may have another one behind a proxy")
	}
}
