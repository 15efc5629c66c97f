package bot

import "strings"

// Surfaces. Chat ids of different surfaces may coincide without being the same chat (Bot API: guest and business
// messages), so nothing that belongs to a chat of one surface may be found by the id of a chat of another.
const (
	SurfaceBot   = "bot"   // chats that the bot is in
	SurfaceGuest = "guest" // chats in which somebody mentions a bot that is not in them
	// surfaceBusiness begins the surface of the chats of a business account, which the id of the connection follows.
	surfaceBusiness = "biz:"
)

// SurfaceBusiness returns the surface of the chats that a connection to a business account gives; ok is false if the id
// of the connection cannot be part of a key.
func SurfaceBusiness(connection string) (surface string, ok bool) {
	return surfaceBusiness + connection, connection != "" && !strings.Contains(connection, "/")
}

// Guest reports whether the bot is a guest in the chat: it has one message for each question.
func (p Place) Guest() bool { return p.Surface == SurfaceGuest }

// Business returns the id of the connection to the business account that the chat belongs to; "" = to none.
func (p Place) Business() string {
	connection, ok := strings.CutPrefix(p.Surface, surfaceBusiness)
	if !ok {
		return ""
	}
	return connection
}

// Ordinary reports whether the bot is itself in the chat. Only such chats have settings, admins and approvers.
func (p Place) Ordinary() bool { return !p.Guest() && p.Business() == "" }
