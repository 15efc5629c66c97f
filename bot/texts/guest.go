package texts

// guestBook is what is said about chats that the bot is not in itself, in one language.
type guestBook struct {
	onlyOne                  string
	connected, mute, severed string // a business account
}

func englishGuest() guestBook {
	return guestBook{
		connected: "I am connected to your business account and answer the people who write to you, in your name. It counts towards your limits. They can use no tools and no commands.",
		mute:      "I am connected to your business account, but I may not answer there. Allow me to reply in Settings → Business → Chatbots if I should.",
		severed:   "I am no longer connected to your business account.",
		onlyOne:   "(I can send only one message here. Ask me in a private chat for the rest.)",
	}
}

func germanGuest() guestBook {
	return guestBook{
		connected: "Ich bin mit deinem Business-Konto verbunden und antworte in deinem Namen denen, die dir schreiben. Das zählt zu deinen Grenzen. Werkzeuge und Befehle haben sie nicht.",
		mute:      "Ich bin mit deinem Business-Konto verbunden, darf dort aber nicht antworten. Erlaube es unter Einstellungen → Business → Chatbots, wenn ich das soll.",
		severed:   "Ich bin nicht mehr mit deinem Business-Konto verbunden.",
		onlyOne:   "(Hier kann ich nur eine Nachricht schicken. Den Rest gibt es auf Nachfrage im privaten Chat.)",
	}
}

// OnlyOne says that the rest of an answer is left out in a chat where the bot is a guest.
func (w Words) OnlyOne(language string) string { return w.in(language).guest.onlyOne }

// Business tells the owner of a business account what its connection with the bot is now: connected, mute, or else not
// connected.
func (w Words) Business(language, state string) string {
	b := &w.in(language).guest
	switch state {
	case "connected":
		return b.connected
	case "mute":
		return b.mute
	default:
		return b.severed
	}
}
