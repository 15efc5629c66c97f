package telegramtest

import (
	"fmt"
	"net/http"
)

// apiError is a refusal in the shape Telegram gives it.
type apiError struct {
	code       int
	text       string
	retryAfter int
	migrateTo  int64
}

func (e *apiError) Error() string { return e.text }

// misusef is an error about the Go side of the server, not an answer to the bot.
func misusef(format string, args ...any) error {
	return fmt.Errorf("telegramtest: "+format, args...)
}

func badRequest(text string) *apiError {
	return &apiError{code: http.StatusBadRequest, text: "Bad Request: " + text}
}

func badRequestf(format string, args ...any) *apiError {
	return badRequest(fmt.Sprintf(format, args...))
}

func forbidden(text string) *apiError {
	return &apiError{code: http.StatusForbidden, text: "Forbidden: " + text}
}

func conflict(text string) *apiError {
	return &apiError{code: http.StatusConflict, text: "Conflict: " + text}
}

func tooMany(seconds int) *apiError {
	return &apiError{
		code:       http.StatusTooManyRequests,
		text:       fmt.Sprintf("Too Many Requests: retry after %d", seconds),
		retryAfter: seconds,
	}
}

// The refusals that are said in more than one place (words of the Bot API server's Client.cpp).
const (
	chatNotFound = "chat not found"
	notModified  = "message is not modified: specified new message content and reply markup are exactly the same " +
		"as a current content and reply markup of the message"
	editNotFound   = "message to edit not found"
	cantEdit       = "message can't be edited"
	queryTooOld    = "query is too old and response timeout expired or query ID is invalid"
	threadNotFound = "message thread not found"
	webhookIsSet   = "can't use getUpdates method while webhook is active; use deleteWebhook to delete the " +
		"webhook first"
	otherPoller     = "terminated by other getUpdates request; make sure that only one bot instance is running"
	newWebhook      = "terminated by setWebhook request"
	textTooLong     = "message is too long"
	textEmpty       = "message text is empty"
	userBlocked     = "bot was blocked by the user"
	notEnoughRights = "not enough rights"
)
