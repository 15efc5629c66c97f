package texts

// guestBook is what is said about chats that the bot is not in itself, in one language.
type guestBook struct {
	OnlyOne                  string
	Connected, Mute, Severed string // a business account
}

// OnlyOne says that the rest of an answer is left out in a chat where the bot is a guest.
func (w Words) OnlyOne(language string) string { return w.in(language).Guest.OnlyOne }

// Business tells the owner of a business account what its connection with the bot is now: connected, mute, or else not
// connected.
func (w Words) Business(language, state string) string {
	b := &w.in(language).Guest
	switch state {
	case "connected":
		return b.Connected
	case "mute":
		return b.Mute
	default:
		return b.Severed
	}
}
