package texts_test

import (
	"strings"
	"testing"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/texts/languages"
)

// TestTerminalsAreNotTelegram: at a terminal and in an editor, nothing is said of groups, buttons, the app, or somebody
// called local; what is for Telegram only is said to be.
func TestTerminalsAreNotTelegram(t *testing.T) {
	t.Parallel()
	local := texts.Words{Owner: true}
	for _, tag := range languages.Tags() {
		telegram := texts.Words{}
		settings := texts.Settings{Values: map[texts.SettingName]string{texts.SettingReceipts: texts.ReceiptsShort}}
		decided := bot.Approval{State: bot.Approved, ByName: "local", Decided: at}
		said := map[string][2]string{
			"help":     {local.Help(tag, nil, nil), telegram.Help(tag, nil, nil)},
			"settings": {local.Settings(tag, settings), telegram.Settings(tag, settings)},
			"decided":  {local.Decided(tag, decided), telegram.Decided(tag, decided)},
			"question": {local.InquiryEnded(tag, decided), telegram.InquiryEnded(tag, decided)},
			"speech":   {local.SpeechOff(tag), telegram.SpeechOff(tag)},
		}
		for name, s := range said {
			if s[0] == s[1] || s[0] == "" || strings.Contains(s[0], "local") || strings.Contains(s[0], "%!") {
				t.Errorf("%s: %s: %q", tag, name, s[0])
			}
		}
		for _, lost := range []string{
			telegram.SettingValue(tag, texts.SettingReceipts, texts.ReceiptsShort), telegram.SettingValue(tag, texts.SettingLanguage, ""),
		} {
			if strings.Contains(said["settings"][0], lost) || !strings.Contains(said["settings"][1], lost) {
				t.Errorf("%s: %q in %q", tag, lost, said["settings"][0])
			}
		}
		if text := local.InTelegramOnly(tag, "export"); !strings.Contains(text, "/export") || !strings.Contains(text, "Telegram") {
			t.Errorf("%s: %q", tag, text)
		}
	}
}
