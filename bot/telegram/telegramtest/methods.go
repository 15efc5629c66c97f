package telegramtest

import "strings"

// methodTable is every method the server knows. The rest is 404, as an unknown method is on Telegram.
func methodTable() map[string]method {
	all := []method{
		{name: "getUpdates", wait: getUpdates},
		{name: "setWebhook", wait: setWebhook},
		{name: "deleteWebhook", wait: deleteWebhook},
		{name: "getWebhookInfo", run: getWebhookInfo},
		{name: "getMe", run: getMe},
		{name: "logOut", run: logOut},
		{name: "close", run: closeBot},
		{name: "sendMessage", run: sendMessage, budgeted: true},
		{name: "sendRichMessage", run: sendRichMessage, budgeted: true},
		{name: "sendDocument", run: sender("document"), budgeted: true},
		{name: "sendPhoto", run: sender("photo"), budgeted: true},
		{name: "sendVoice", run: sender("voice"), budgeted: true},
		{name: "sendAudio", run: sender("audio"), budgeted: true},
		{name: "sendVideo", run: sender("video"), budgeted: true},
		{name: "sendSticker", run: sender("sticker"), budgeted: true},
		{name: "sendMediaGroup", run: sendMediaGroup, budgeted: true},
		{name: "sendLocation", run: sendLocation, budgeted: true},
		{name: "editMessageText", run: editMessageText, budgeted: true},
		{name: "editMessageCaption", run: editMessageCaption, budgeted: true},
		{name: "editMessageReplyMarkup", run: editMessageReplyMarkup, budgeted: true},
		{name: "deleteMessage", run: deleteMessage},
		{name: "deleteMessages", run: deleteMessages},
		{name: "sendMessageDraft", run: sendMessageDraft},
		{name: "sendChatAction", run: sendChatAction},
		{name: "setMessageReaction", run: setMessageReaction},
		{name: "answerCallbackQuery", run: answerCallbackQuery},
		{name: "answerGuestQuery", run: answerGuestQuery},
		{name: "getBusinessConnection", run: getBusinessConnection},
		{name: "getFile", run: getFile},
		{name: "getChat", run: getChat},
		{name: "getChatMember", run: getChatMember},
		{name: "getChatAdministrators", run: getChatAdministrators},
		{name: "getChatMemberCount", run: getChatMemberCount},
		{name: "leaveChat", run: leaveChat},
		{name: "createForumTopic", run: createForumTopic, budgeted: true},
		{name: "editForumTopic", run: editForumTopic},
		{name: "setMyCommands", run: setMyCommands},
		{name: "getMyCommands", run: getMyCommands},
		{name: "deleteMyCommands", run: deleteMyCommands},
		{name: "setMyName", run: setAbout("name", maxName)},
		{name: "getMyName", run: getAbout("name")},
		{name: "setMyDescription", run: setAbout("description", maxDescription)},
		{name: "getMyDescription", run: getAbout("description")},
		{name: "setMyShortDescription", run: setAbout("short_description", maxShortDescription)},
		{name: "getMyShortDescription", run: getAbout("short_description")},
	}
	out := make(map[string]method, len(all))
	for _, m := range all {
		out[strings.ToLower(m.name)] = m
	}
	return out
}
