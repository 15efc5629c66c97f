package texts_test

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/render"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/bot/visible"
	"github.com/zephbot/zephbot/policy"
	"github.com/zephbot/zephbot/policy/act"
	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/undo"
)

var (
	w  texts.Words
	at = time.Date(2026, 3, 4, 15, 22, 0, 0, time.FixedZone("", 3600))
)

// neutral are the methods that say the same in every language.
var neutral = map[string]bool{
	"PersonaValue": true, "PersonaLine": true, "PersonaButton": true, "Placeholder": true, "TranscriptTime": true, "Named": true,
	"Names": true, "Languages": true,
}

// everything says every sentence there is, by method.
func everything(l string) map[string][]string {
	ended := func(reason, text string, steps int) string {
		return w.Ended(l, reason, text, journal.Stats{Steps: steps}, "7f3a")
	}
	decided := func(state bot.ApprovalState, scope string) string {
		return w.Decided(l, bot.Approval{State: state, Scope: scope, ByName: "Ann", Decided: at})
	}
	once, session, deny := w.Buttons(l)
	store, back := w.StoreButtons(l)
	card := texts.Card{Tool: "bash", Expires: at, Short: "akun"}
	full := texts.Card{
		Tool: "bash", Note: "off", Reason: "rule", Suspicious: "https://h", Steps: 4, USD: 0.012, Expires: at, Short: "akun", Needed: 2, Votes: 1, FileLines: 9, FileHash: "ab12",
		Found: visible.Found{Invisible: 3, Alike: 1},
	}
	m := map[string][]string{
		"Ended": {
			ended(journal.ReasonStopped, "", 0), ended(journal.ReasonStopped, "Half", 0), ended(journal.ReasonLimit, "", 1), ended(journal.ReasonLimit, "", 10),
			ended(journal.ReasonLoop, "a ```b```", 3), ended(journal.ReasonLoop, "", 3), ended(journal.ReasonGone, "", 0), ended(journal.ReasonContext, "", 0), ended(journal.ReasonModel, "", 0), ended(journal.ReasonKey, "", 0), ended(journal.ReasonCredit, "", 0), ended(journal.ReasonNoModel, "", 0),
			ended(journal.ReasonRegion, "", 0), ended(journal.ReasonAddress, "", 0), ended(journal.ReasonBusy, "", 0),
			ended(journal.ReasonOvertime, "", 0), ended(journal.ReasonOversize, "", 0),
			ended(journal.ReasonEmpty, "", 0), ended(journal.ReasonRefusal, "", 0), ended(journal.ReasonGivenUp, "", 0), ended(journal.ReasonInternal, "", 0), ended("new reason", "", 0),
		},
		"Cut": {w.Cut(l)}, "OtherModel": {texts.Words{OtherModels: true}.OtherModel(l, journal.ReasonCredit)}, "Filtered": {w.Filtered(l)}, "Away": {w.Away(l, "7f3a")}, "Busy": {w.Busy(l, "7f3a")}, "Money": {w.Money(l, 0.12)}, "Bytes": {w.Bytes(l, 1234)}, "Day": {w.Day(l, at)}, "Moment": {w.Moment(l, at)}, "Failing": {w.Failing(nil, time.Minute).Away(l, "7f3a")}, "Behind": {w.Behind(l)}, "Crowded": {w.Crowded(l, 12*time.Second), w.Crowded(l, 5*time.Minute)}, "Nothing": {w.Nothing(l)}, "Placeholder": {w.Placeholder(l)},
		"StopButton": {w.StopButton(l)}, "StopToast": {w.StopToast(l)}, "StopOver": {w.StopOver(l)}, "StopNotYours": {w.StopNotYours(l)},
		"Broken": {w.Broken(l, "7f3a")}, "Resent": {w.Resent(l)}, "Thinking": {w.Thinking(l)},
		"Silent": {w.Silent(l, 15*time.Second), w.Silent(l, time.Minute)},

		"Lost": {w.Lost(l, 1), w.Lost(l, 2)}, "NoTopic": {w.NoTopic(l)}, "AsFile": {w.AsFile(l)}, "Unsendable": {w.Unsendable(l)},
		"Beginning": {w.Beginning(l, 200<<10)}, "WholeAnswer": {w.WholeAnswer(l, 200<<10)}, "NoRest": {w.NoRest(l)},
		"NotKept":  {w.NotKept(l, "srv:draw", "map.png")},
		"Duration": {w.Duration(l, time.Second), w.Duration(l, 5*time.Second), w.Duration(l, 3*time.Minute), w.Duration(l, 49*time.Hour)},
		"Stranger": {w.Stranger(l, "4711")}, "StrangerRefused": {w.StrangerRefused(l)}, "StrangerAsked": {w.StrangerAsked(l, nil), w.StrangerAsked(l, []string{"Ben", "Cy"})}, "Unlisted": {w.Unlisted(l, "-100")}, "Unclaimed": {w.Unclaimed(l)},
		"QuotaBusy": {w.QuotaBusy(l)}, "QuotaUnread": {w.QuotaUnread(l)},
		"QuotaUnpriced": {w.QuotaUnpriced(l, "gpt", false), w.QuotaUnpriced(l, "gpt", true)},
		"QuotaHelp":     {w.QuotaHelp(l)}, "QuotaWho": {w.QuotaWho(l)}, "QuotaPrice": {w.QuotaPrice(l, "gpt")}, "QuotaNotSet": {w.QuotaNotSet(l)},
		"Level": {w.Level(l, texts.User, "42", "") + w.Level(l, texts.Chat, "-100", "Team")},
		"Start": {w.Start(l, "Ann"), w.Start(l, "")}, "Help": {w.Help(l, w.Names(), nil), w.Help(l, nil, []string{"policy"})},
		"UnknownCommand": {w.UnknownCommand(l, "x", ""), w.UnknownCommand(l, "hepl", "help")}, "InTelegramOnly": {w.InTelegramOnly(l, "why")},
		"AdminsOnly": {w.AdminsOnly(l, nil), w.AdminsOnly(l, []string{"Ben", "Cy"})}, "Cleared": {w.Cleared(l)}, "Fresh": {w.Fresh(l)},
		"Stopping": {
			w.Stopping(l, texts.Stopped{}), w.Stopping(l, texts.Stopped{Running: true}), w.Stopping(l, texts.Stopped{Running: true, Messages: 1, Questions: 1, Commands: 1}),
			w.Stopping(l, texts.Stopped{Messages: 2, Questions: 2, Commands: 2}), w.Stopping(l, texts.Stopped{Speech: 1}), w.Stopping(l, texts.Stopped{Speech: 2}),
		},
		"SpeechOff": {w.SpeechOff(l)}, "SpeechRest": {w.SpeechRest(l)}, "SpeechNothing": {w.SpeechNothing(l)}, "SpeechInterrupted": {w.SpeechInterrupted(l)}, "SpeechFailed": {w.SpeechFailed(l)}, "SpeechUnpaid": {
			w.SpeechUnpaid(l, "Why."),
		},
		"Tools": {w.Tools(l, nil), w.Tools(l, []texts.Tool{{Name: "bash"}, {Name: "jira:create", Offered: "x. y"}})}, "ModelCard": {w.ModelCard(l, "gpt", "", false, true), w.ModelCard(l, "gpt", "", true, false), w.ModelCard(l, "gpt", "Ann", true, true)},
		"ModelFixed": {w.ModelFixed(l, "gpt")}, "Usage": {w.Usage(l, "x", nil, "/x"), w.Usage(l, "x", []string{"x"}, "/x")}, "ModelAdmins": {w.ModelAdmins(l)}, "ModelUnknown": {w.ModelUnknown(l, "", []string{"a", "b"}), w.ModelUnknown(l, "a", []string{"a"})}, "ModelGone": {w.ModelGone(l)}, "OnlyOne": {w.OnlyOne(l)}, "Business": {w.Business(l, "connected"), w.Business(l, "mute"), w.Business(l, "disconnected")},
		"CardHead": {w.CardHead(l, card), w.CardHead(l, full)}, "CardFoot": {w.CardFoot(l, full)}, "CardHint": {w.CardHint(l, card), w.CardHint(l, full)}, "Buttons": {once, session, deny},
		"Decided":      {decided(bot.Approved, bot.Once), decided(bot.Approved, bot.Session), decided(bot.Approved, bot.Always), decided(bot.Approved, bot.StoredRule(1, at)), decided(bot.Approved, bot.StoredRule(10, at)), decided(bot.Approved, bot.StoredRule(10, time.Time{})), decided(bot.Approved, bot.StoredRule(0, at)), decided(bot.Approved, bot.Cleared), decided(bot.Denied, ""), decided(bot.Expired, ""), decided(bot.Withdrawn, "")},
		"AlwaysButton": {w.AlwaysButton(l)}, "NotYoursEither": {w.NotYoursEither(l)}, "ClearButton": {w.ClearButton(l)}, "AdminsClear": {w.AdminsClear(l)}, "StoreHead": {w.StoreHead(l, 1), w.StoreHead(l, 2)}, "StoreFoot": {w.StoreFoot(l)}, "AdminsStore": {w.AdminsStore(l)}, "StoreButtons": {store, back}, "FewButton": {w.FewButton(l, 10)},
		"PolicyStatus": {w.PolicyStatus(l, &texts.Rules{Status: policy.Status{Level: policy.Supervised}}), w.PolicyStatus(l, &texts.Rules{Status: policy.Status{Level: policy.Full, Default: policy.Ask, Evaluation: policy.FirstMatch, Enabled: true, Authorization: true, File: "f"}, Judged: true, Sandbox: reason.Plain("x")})}, "PolicyDecision": {w.PolicyDecision(l, "ask", &texts.Refusal{Rule: "r", Reason: reason.Plain("why")}), w.PolicyDecision(l, "deny", &texts.Refusal{Rule: "r"})}, "PolicyHelp": {w.PolicyHelp(l)},
		"NotYours": {w.NotYours(l, "Ann"), w.NotYours(l, "")}, "NotYourself": {w.NotYourself(l)}, "WhyOffer": {w.WhyOffer(l, at)}, "WhyNoted": {w.WhyNoted(l, true), w.WhyNoted(l, false)}, "WhyLate": {w.WhyLate(l)}, "VoteOthers": {w.VoteOthers(l)},
		"Visible": {w.Visible(l).Blanks, w.Visible(l).Lines}, "Already": {w.Already(l, bot.Approval{State: bot.Denied, ByName: "Ann", Decided: at})},
		"UnknownButton": {w.UnknownButton(l)}, "WriteAsYourself": {w.WriteAsYourself(l)},
		"UnknownQuestion": {w.UnknownQuestion(l)}, "NoQuestion": {w.NoQuestion(l)}, "OneQuestion": {w.OneQuestion(l, "akun")}, "WhichQuestion": {w.WhichQuestion(l, []string{"akun", "bero"})},
		"Noted": {w.Noted(l, 0), w.Noted(l, 2)}, "Names": w.Names(), "Named": {texts.Named("Ann")}, "Languages": w.Languages(),
	}
	for _, group := range []bool{false, true} {
		m["Settings"] = append(m["Settings"], w.Settings(l, texts.Settings{Zone: "UTC", Model: "gpt", Group: group, Heard: true, Now: at, Values: map[texts.SettingName]string{
			texts.SettingVoice: texts.VoiceOff, texts.SettingBusy: "steer", texts.SettingReceipts: texts.ReceiptsOff, texts.SettingSpeech: texts.SpeechSpoken, texts.SettingQuestions: texts.QuestionsHere,
		}, Speaks: true}), w.Settings(l, texts.Settings{Zone: "UTC", Model: "gpt", Group: group, Values: map[texts.SettingName]string{texts.SettingBusy: "queue", texts.SettingReceipts: texts.ReceiptsShort}}))
		m["Settings"] = append(m["Settings"], w.Settings(l, texts.Settings{Zone: "UTC", Group: group, Context: true, Values: map[texts.SettingName]string{
			texts.SettingContext: texts.ContextOn, texts.SettingReceipts: texts.ReceiptsShort, texts.SettingBusy: "queue",
			texts.SettingTalk: texts.TalkNever,
		}, Shared: []string{"Receipts"}, Topic: []string{"Persona"}, Own: []string{"Language"}}))
		m["TalkOn"] = append(m["TalkOn"], w.TalkOn(l, "Ann", texts.Kept{Messages: 40, For: 24 * time.Hour, Hidden: group}))
		m["SettingNot"] = append(m["SettingNot"], w.SettingNot(l, group))
	}
	for setting, values := range map[texts.SettingName][]string{
		texts.SettingLanguage: {""}, texts.SettingClock: {"", "12", "24"}, texts.SettingVoice: {"on", "off"}, texts.SettingBusy: {"queue", "steer", "interrupt"},
		texts.SettingReceipts: {"off", "short", "always"}, texts.SettingSpeech: {"asked", "spoken", "always"}, texts.SettingContext: {"off", "on"}, texts.SettingQuestions: {"here", "private"},
		texts.SettingTalk: {"kept", "never"},
	} {
		m["SettingAsks"] = append(m["SettingAsks"], w.SettingAsks(l, setting))
		for _, value := range values {
			m["SettingValue"] = append(m["SettingValue"], w.SettingValue(l, setting, value))
		}
	}
	for _, setting := range append(texts.ChosenSettings(), texts.SettingZone, texts.SettingModel) {
		m["SettingButton"] = append(m["SettingButton"], w.SettingButton(l, setting))
	}
	m["PersonaLine"], m["PersonaButton"] = []string{w.PersonaLine(l, ""), w.PersonaLine(l, "tutor")}, []string{w.PersonaButton(l)}
	m["PersonaCard"] = []string{w.PersonaCard(l, "", false, false), w.PersonaCard(l, "Ann", false, true), w.PersonaCard(l, "", true, true)}
	m["PersonaValue"] = []string{w.PersonaValue(l, "", true), w.PersonaValue(l, "", false), w.PersonaValue(l, texts.PersonaNobody, true), w.PersonaValue(l, "tutor", false)}
	m["PersonaGone"], m["PersonaNotThere"], m["ModelOfPersona"] = []string{w.PersonaGone(l, "tutor")}, []string{w.PersonaNotThere(l)}, []string{w.ModelOfPersona(l, "gpt", "tutor")}
	m["OwnLine"], m["OwnButton"], m["OwnRemove"] = []string{w.OwnLine(l, true), w.OwnLine(l, false)}, []string{w.OwnButton(l)}, []string{w.OwnRemove(l)}
	m["OwnAsk"], m["OwnNoted"], m["OwnLong"] = []string{w.OwnAsk(l, "", 500, 10*time.Minute), w.OwnAsk(l, "Ann", 500, 10*time.Minute)}, []string{w.OwnNoted(l, "Ann")}, []string{w.OwnLong(l, 500)}
	m["TalkOff"] = []string{w.TalkOff(l, "Ann")}
	m["HiddenWaiting"] = []string{w.HiddenWaiting(l, 1, time.Unix(0, 0), "kabel"), w.HiddenWaiting(l, 2, time.Unix(0, 0), "kabel")}
	m["HiddenTooFew"] = []string{w.HiddenTooFew(l, 1, time.Unix(0, 0)), w.HiddenTooFew(l, 2, time.Unix(0, 0))}
	m["HiddenUnseen"], m["HiddenOrigin"] = []string{w.HiddenUnseen(l)}, []string{w.HiddenOrigin(l, "Team"), w.HiddenOrigin(l, "")}
	m["SettingBack"], m["SettingDone"] = []string{w.SettingBack(l)}, []string{w.SettingDone(l)}
	for _, problem := range []turn.FileProblem{
		turn.FileTooLarge, turn.FileGone, turn.FileAway, turn.FileNoRoom, turn.FileUnseen, turn.FileNoPicture, turn.FileTooManyDots, turn.FileDamaged, turn.FileLocked,
		turn.FileBloated, turn.FileUnheard, turn.FileMuted, turn.FileNoSound, turn.FileNotWritten, turn.FileNoWords,
		turn.FileLong, turn.FileUnread, turn.FileNoText, turn.FileScanned,
	} {
		for _, kind := range []string{bot.Photo, bot.Document, bot.Voice, bot.Audio, bot.Video, bot.VideoNote, bot.Animation, "new kind"} {
			m["FileTrouble"] = append(m["FileTrouble"], w.FileTrouble(l, turn.Trouble{Problem: problem, Kind: kind, Size: 30 << 20, Limit: 20 << 20}))
		}
		m["FileTrouble"] = append(m["FileTrouble"], w.FileTrouble(l, turn.Trouble{Problem: problem, Kind: bot.Document, Name: "x.pdf"}))
	}
	m["ReceiptButton"], m["ReceiptGone"], m["ReceiptOther"] = []string{w.ReceiptButton(l)}, []string{w.ReceiptGone(l)}, []string{w.ReceiptOther(l)}
	m["Receipt"] = []string{w.Receipt(l, &texts.Receipt{}, false), w.Receipt(l, &texts.Receipt{
		Models: 2, Tools: []texts.ReceiptTool{{Name: "read", Calls: 2, Failed: 1}}, NotRun: []string{"x"}, Approvals: []texts.ReceiptApproval{{Tool: "a", By: "Ann", At: at}, {Tool: "b", By: "1"}},
		MoreApprovals: 2, USD: 0.1, Waited: time.Minute, Lines: 2, Audit: "0123456789abcdef0",
	}, true)}
	m["OutputButton"], m["OutputFile"] = []string{w.OutputButton(l)}, []string{w.OutputFile(l)}
	m["ReceiptDetails"] = []string{w.ReceiptDetails(l)}
	yes, no := w.UndoButtons(l, &texts.ReceiptChanges{Edited: []string{"a"}})
	remove, _ := w.UndoButtons(l, &texts.ReceiptChanges{Made: []string{"a"}})
	m["AsideHelp"], m["AsideFailed"] = []string{w.AsideHelp(l)}, []string{w.AsideFailed(l)}
	m["UndoNone"], m["UndoAgain"] = []string{w.UndoNone(l)}, []string{w.UndoAgain(l)}
	m["UndoAsked"] = []string{w.UndoAsked(l, false), w.UndoAsked(l, true)}
	m["UndoUnkept"], m["ScheduleElsewhere"] = []string{w.UndoUnkept(l)}, []string{w.ScheduleElsewhere(l)}
	m["UndoButton"], m["UndoButtons"], m["UndoBusy"], m["UndoNothing"] = []string{w.UndoButton(l)}, []string{yes, remove, no}, []string{w.UndoBusy(l)}, []string{w.UndoNothing(l)}
	for _, why := range []string{
		undo.Changed, undo.Mixed, undo.Special, undo.Large, undo.Full, undo.Names, undo.Failed, undo.Many, undo.Slow, undo.Interrupted,
		string(tools.Network), string(tools.Elsewhere), string(tools.Background), "server",
	} {
		c := texts.ReceiptChanges{Made: []string{"a"}, Edited: make([]string, 12), Deleted: []string{"b"}, Removed: []string{"d"}, Restored: []string{"e"}, Stays: []texts.ReceiptStays{{Name: "c", Why: why}}, UndoneBy: "Ann", UndoneAt: at}
		m["UndoAsk"], m["Undone"] = append(m["UndoAsk"], w.UndoAsk(l, &c)), append(m["Undone"], w.Undone(l, &c), w.Undone(l, &texts.ReceiptChanges{Beyond: c.Stays}))
	}
	m["Heard"] = []string{w.Heard(l, "x")}
	m["Recap"], m["RecapNothing"] = []string{w.Recap(l, "x")}, []string{w.RecapNothing(l)}
	m["RecapFailed"], m["RecapOff"] = []string{w.RecapFailed(l)}, []string{w.RecapOff(l)}
	m["Summed"], m["LeftOut"], m["Retold"] = []string{w.Summed(l)}, []string{w.LeftOut(l)}, []string{w.Retold(l)}
	maps.Copy(m, memories(l))
	m["SearchHead"] = []string{
		w.SearchHead(l, texts.Searched{Query: "x", Group: true}), w.SearchHead(l, texts.Searched{Query: "x", Shown: 1, All: 1, Bounded: true}),
		w.SearchHead(l, texts.Searched{Query: "x", Shown: 8, All: 9}), w.SearchHead(l, texts.Searched{Query: "x", Shown: 1, All: 1, Partly: true}),
	}
	m["SearchWho"] = []string{w.SearchWho(l, at, "", true), w.SearchWho(l, at, "Zeph", true), w.SearchWho(l, at, "", false)}
	m["SearchHelp"], m["SearchLong"], m["SearchNowhere"] = []string{w.SearchHelp(l)}, []string{w.SearchLong(l, 12)}, []string{w.SearchNowhere(l)}
	m["Reason"] = []string{w.Reason(l, reason.New(reason.NoRule, "`x`"))}
	m["Said"] = []string{w.Said(l, reason.New(reason.SandboxHelper)), w.Said(l, reason.Notes(reason.New(reason.InWorkspace), reason.New(reason.WithoutNetwork), reason.Plain("x")))}

	m["Unstored"], m["OutOfOrder"] = []string{w.Unstored(l)}, []string{w.OutOfOrder(l, reason.New(reason.DiskFull))}
	m["Servers"] = []string{w.Servers(l, nil), w.Servers(l, []texts.Server{
		{ID: "a", State: "connected", Tools: 1, Trust: "untrusted", Changed: []string{"x"}}, {ID: "b", State: "new state", Trust: "trusted", Problem: "why", Fit: 2, Of: 3, Budget: 4},
	})}
	m["ServersOff"], m["ServersHelp"] = []string{w.ServersOff(l)}, []string{w.ServersHelp(l)}
	m["ServerTools"] = []string{w.ServerTools(l, "a", []texts.ServerTool{{Name: "x", Description: "y"}, {Name: "z"}})}
	m["ServerConnecting"], m["ServerAdded"] = []string{w.ServerConnecting(l, "a")}, []string{w.ServerAdded(l, "a", 1), w.ServerAdded(l, "a", 2)}
	m["SignInAgain"], m["Late"] = []string{w.SignInAgain(l)}, []string{w.Late(l)}
	m["SignIn"] = []string{w.SignIn(l, "a", "https://x")}
	m["ServerFailed"], m["ServerRemoved"] = []string{w.ServerFailed(l, "a", reason.Plain("why"))}, []string{w.ServerRemoved(l, "a", 3)}
	m["ServerAccepted"] = []string{w.ServerAccepted(l, "a", nil), w.ServerAccepted(l, "a", []string{"x"})}
	m["ServerUnknown"], m["ServerAway"] = []string{w.ServerUnknown(l, "a")}, []string{w.ServerAway(l, "a")}
	m["ServerBack"], m["ServerWaits"] = []string{w.ServerBack(l, "a", 2)}, []string{w.ServerWaits(l, "a", []string{"x"}, []string{"y"}, true)}
	m["ServerPending"] = []string{w.ServerPending(l, "a", "", nil), w.ServerPending(l, "a", "c", []texts.ServerChange{{Now: []string{"x"}, New: true}})}
	m["ServerPrograms"], m["ServerNobody"], m["ServerLong"] = []string{w.ServerPrograms(l)}, []string{w.ServerNobody(l)}, []string{w.ServerLong(l)}
	m["ServerAdd"] = []string{w.ServerAdd(l, texts.ServerProposal{ID: "a", Program: []string{"x", "y"}, Env: []string{"E"}, Holds: "h"}), w.ServerAdd(l, texts.ServerProposal{ID: "a", URL: "u"})}
	m["ToolsBlocked"] = []string{w.ToolsBlocked(l, []texts.Blocked{{Tool: "x", Reason: reason.Plain("y"), Left: time.Hour}, {Tool: "z", Reason: reason.Plain("y"), Elsewhere: true}})}
	m["ToolBlocked"] = []string{w.ToolBlocked(l, "x", 10*time.Minute)}
	m["ToolBlockedFor"] = []string{w.ToolBlockedFor(l, "x", "Ben", 10*time.Minute)}
	aside := []texts.SetAside{{Provider: "main", Model: "m", Tool: "mcp:x", Reason: "bad"}, {Provider: "main", Model: "m"}}
	m["ToolsAside"] = []string{w.ToolsAside(l, aside)}
	m["ToolAside"] = []string{w.ToolAside(l, aside[0]), w.ToolAside(l, aside[1])}
	m["ToolBlockedAdmins"] = []string{w.ToolBlockedAdmins(l, "x", "", 14, 20, 10*time.Minute), w.ToolBlockedAdmins(l, "x", "-100", 14, 20, time.Hour)}
	m["OperatorLink"] = []string{w.OperatorLink(l, "https://x/admin/#A", 5, ""), w.OperatorLink(l, "x", 5, "9090")}
	m["OperatorOff"], m["OperatorPrivate"] = []string{w.OperatorOff(l)}, []string{w.OperatorPrivate(l)}
	m["Meant"] = []string{w.Meant(l, "x")}
	m["Unblocked"] = []string{w.Unblocked(l, "x", true), w.Unblocked(l, "x", false)}
	for _, lane := range []bot.Lane{{}, {Turn: "t", State: bot.Running}, {Turn: "t", State: bot.Parked}, {Turn: "t", State: bot.Waiting}} {
		m["Status"] = append(m["Status"], w.Status(l, texts.Status{Model: "gpt", Persona: "tutor", Lane: lane, Since: time.Minute}), w.Status(l, texts.Status{
			Model: "gpt", Lane: lane, Waiting: 2, Tools: []string{"bash"}, Fenced: true, Servers: texts.Connected{Connected: 1, All: 2},
			Details: &texts.Details{Sandbox: reason.Plain("x"), Embedded: lane.Turn == "", Engine: "SQLite", Filters: texts.Filtered{In: 10, Out: 1}, Counts: bot.Counts{Running: 1, Parked: 2, Queued: 5, Undelivered: 1, Lost: 21}, Version: "1", Up: time.Hour},
		}))
	}
	for _, p := range []texts.Previews{texts.PreviewsShown, texts.PreviewsCannot, texts.PreviewsOff} {
		m["Status"] = append(m["Status"], w.Status(l, texts.Status{Model: "gpt", Details: &texts.Details{Previews: p}}))
	}
	for _, state := range []string{"ok", "slow", "away", "read-only", "refused"} {
		m["Status"] = append(m["Status"], w.Status(l, texts.Status{Model: "gpt", Details: &texts.Details{
			Sandbox: reason.Plain("x"), Redis: &texts.Redis{State: state, For: time.Minute}, Version: "1", Up: time.Hour,
		}}))
	}
	for _, name := range w.Names() {
		m["Describe"] = append(m["Describe"], w.Describe(l, name))
	}
	deeds(l, m)
	inquiries(l, m)
	maps.Copy(m, grants(l))
	maps.Copy(m, people(l))
	m["Source"] = []string{w.Source(l, "command"), w.Source(l, "document:a.pdf"), w.Source(l, "item:poll")}
	maps.Copy(m, skill(l))
	maps.Copy(m, private(l))
	edits(l, m)
	quotas(l, m)
	schedules(l, m)
	hooks(l, m)
	terminals(l, m)
	for _, verb := range append(act.Verbs(), "") {
		m["Line"] = append(m["Line"], w.Line(l, verb, "x", 1, 3, 6*time.Second), w.Line(l, verb, "", 0, 1, 0))
	}
	return m
}

// englishWords are words that no sentence in another language has.
var englishWords = regexp.MustCompile(`(?i)\b(the|and|is|are|of|to|your|you|with|not|cannot|by|waiting|since|nothing|this|that|it|for|from|have|what|there|my|can|nobody|file)\b`)

// TestEverySentence says everything in every language: nothing is empty, no verb is left over, nothing stays
// untranslated, nothing is forgotten here.
func TestEverySentence(t *testing.T) {
	t.Parallel()
	english := everything("en")
	for m := range reflect.TypeFor[texts.Words]().Methods() {
		if len(english[m.Name]) == 0 {
			t.Errorf("%s is not tested", m.Name)
		}
	}
	for _, language := range w.Languages() {
		for method, list := range everything(language) {
			for i, text := range list {
				if language != "de" && texts.Drafts() && text == english[method][i] {
					continue
				}
				if strings.TrimSpace(text) == "" || strings.Contains(text, "%!") || strings.Contains(text, "%s") || strings.Contains(text, "%d") && method != "Visible" || strings.Contains(text, "  ") {
					t.Errorf("%s: %s: %q", language, method, text)
				}
				if found := englishWords.FindString(text); language != "en" && !neutral[method] && found != "" {
					t.Errorf("%s says %q in %s: %q", method, found, language, text)
				}
				if language != "en" && !neutral[method] && text == english[method][i] {
					t.Errorf("%s: %s is not translated: %q", language, method, text)
				}
			}
		}
	}
}

// asMarkdown are the sentences that become a part of an answer, which is Markdown.
var asMarkdown = map[string]bool{"Recap": true, "Ended": true, "Cut": true, "Filtered": true}

// rawMarks are marks of Markdown that somebody would see as such.
var rawMarks = regexp.MustCompile("\\*\\S[^*\n]*\\*|__\\S+__|`|(?m)^#+ |\\]\\(")

// TestNoRawMarkdown: nobody sees a mark of Markdown in what the bot says, in any language. Offers quote patterns, in
// which an asterisk is one.
func TestNoRawMarkdown(t *testing.T) {
	t.Parallel()
	for _, language := range w.Languages() {
		for method, list := range everything(language) {
			for _, text := range list {
				said, _ := render.Sentence(text)
				if asMarkdown[method] {
					said = ""
					for _, m := range render.Markdown(text) {
						said += m.Text + "\n"
					}
				}
				if found := rawMarks.FindString(said); found != "" && method != "Offer" {
					t.Errorf("%s: %s shows %q: %q", language, method, found, said)
				}
			}
		}
	}
}

// TestCodeEndsWithItsWord: what is formatted as code in a sentence is a word, a name or a quotation, without the signs of the
// sentence around it, and each item of a list has a mark of its own, in any language.
func TestCodeEndsWithItsWord(t *testing.T) {
	t.Parallel()
	marked := 0
	for _, language := range w.Languages() {
		for method, list := range everything(language) {
			for _, text := range list {
				said, entities := render.Marked(text)
				if said == text {
					said, entities = render.Quoted(text)
				}
				units := utf16.Encode([]rune(said))
				for _, e := range entities {
					code := string(utf16.Decode(units[e.Offset : e.Offset+e.Length]))
					marked++
					if strings.ContainsAny(code[len(code)-1:], ".,;:!?") || strings.HasSuffix(code, "…") || strings.Contains(code, ", ") {
						t.Errorf("%s: %s marks %q in %q", language, method, code, said)
					}
				}
			}
		}
	}
	if marked == 0 {
		t.Error("nothing is marked")
	}
}

func TestLanguageTags(t *testing.T) {
	t.Parallel()
	for tag, want := range map[string]string{
		"de": "Hier wartet", "de-CH": "Hier wartet", "DE": "Hier wartet", "de_AT": "Hier wartet", "de-Latn-DE": "Hier wartet",
		"es": "Aquí no hay nada", "es-419": "Aquí no hay nada", "ru": "Здесь ничто", "ru-RU": "Здесь ничто",
		"": "Nothing is waiting", "en": "Nothing is waiting", "en-GB": "Nothing is waiting", "tlh": "Nothing is waiting", "den": "Nothing is waiting", "-": "Nothing is waiting",
	} {
		if got := w.NoQuestion(tag); !strings.HasPrefix(got, want) {
			t.Errorf("%q: %q", tag, got)
		}
	}
}

func TestSentences(t *testing.T) {
	t.Parallel()
	tests := []struct{ got, want string }{
		{w.Ended("en", journal.ReasonStopped, " Half an ", journal.Stats{}, ""), "Half an\n\nStopped."},
		{w.Ended("en", journal.ReasonBudget, "Your tokens are used up.", journal.Stats{}, ""), "Your tokens are used up."},
		{w.Ended("en", journal.ReasonLoop, "a ``` b", journal.Stats{}, ""), "I got the same result three times and stopped, so as not to run in circles: \n```\na ''' b\n```"},
		{w.Ended("en", journal.ReasonLimit, "", journal.Stats{Steps: 1}, ""), "I stopped after 1 step without a result. Say *go on* to let me continue."},
		{w.Start("en", ""), "Hello. I am an assistant that can look things up and do work with tools. Just write what you need; before I change anything, I ask. /help shows what else there is."},
		{w.Line("en", act.Read, " app.log\nmore", 1, 3, 6500*time.Millisecond), "⏳ Reading app.log · 2 of 3 steps · 6 s"},
		{w.Line("en", act.Read, "100%d", 3, 3, 0), "⏳ Reading 100%d · 3 of 3 steps · 0 s"},
		{w.Line("en", "", "github:issue", 0, 1, 0), "⏳ Using github:issue · 0 s"},
		{w.Line("en", act.Run, "", 0, 1, 0), "⏳ Running … · 0 s"},
		{w.CardHead("en", texts.Card{Tool: "bash"}), "✋ May I run this?\nbash · in the workspace"},
		{w.CardFoot("en", texts.Card{}), ""},
		{w.CardHint("en", texts.Card{Expires: at, Short: "akun"}), "expires 14:22 UTC · or send /approve akun"},
		{
			w.CardFoot("en", texts.Card{Reason: "no rule", Suspicious: "https://h", Needed: 2, Votes: 1, FileLines: 9, FileHash: "ab", Found: visible.Found{Invisible: 3, Alike: 1}}),
			"The whole text is in the file above: 9 lines, SHA-256 ab. The file is what gets approved.\n\n⚠ Contains invisible characters: 3\n⚠ Contains look-alike characters: 1\n⚠ Text from https://h tried to give me orders before this.\nWhy I ask: no rule\nNeeds 2 approvals, not counting the person who asked; 1 so far.",
		},
		{w.CardHint("en", texts.Card{Steps: 4, USD: 0.012, Expires: at, Short: "akun"}), "So far: 4 steps, $0.012 · expires 14:22 UTC · or send /approve akun"},
		{w.CardHint("en", texts.Card{Steps: 1, USD: 1.5, Expires: at, Short: "x"}), "So far: 1 step, $1.50 · expires 14:22 UTC · or send /approve x"},
		{w.Already("en", bot.Approval{State: bot.Approved, ByName: "Ann", Decided: at}), "Already decided: ✅ Approved once by Ann, 14:22 UTC"},
		{w.NotYours("en", ""), "Only the person who asked or an approver of this chat can decide this."},
		{w.Help("en", []string{"approve", "odd"}, []string{"policy"}), "Write to me in plain words. In a group, mention me or answer one of my messages.\n\n/approve – approve a question (/approve akun)\n/odd\n\nFor admins:\n/policy – the rules, and what they would decide (/policy check bash {\"command\":\"ls\"})"},
		{w.UnknownCommand("en", strings.Repeat("x", 100), ""), "I do not know /" + strings.Repeat("x", 31) + "…. /help shows what there is."},
		{w.AdminsOnly("en", []string{"Ben", "Cy"}), "That is for admins of this bot (Ben, Cy)."},
		{w.Stopping("en", texts.Stopped{}), "Nothing is running here."},
		{w.Stopping("en", texts.Stopped{Running: true}), "Stopping."},
		{w.Stopping("en", texts.Stopped{Running: true, Messages: 1}), "Stopping. 1 waiting message dropped."},
		{w.Stopping("en", texts.Stopped{Messages: 2}), "2 waiting messages dropped."},
		{w.Stopping("en", texts.Stopped{Commands: 1}), "1 command in the background ended."},
		{w.Stopping("en", texts.Stopped{Running: true, Messages: 2, Questions: 1, Commands: 3}), "Stopping. 2 waiting messages dropped, 1 question withdrawn, 3 commands in the background ended."},
		{w.Stopping("de", texts.Stopped{Running: true, Messages: 1, Questions: 2, Commands: 1}), "Ich halte an. 1 wartende Nachricht verworfen, 2 Fragen zurückgezogen, 1 Befehl im Hintergrund beendet."},
		{w.Duration("en", 119*time.Second), "119 seconds"},
		{w.Duration("de", time.Second), "1 Sekunde"},
		{w.Stopping("es", texts.Stopped{Messages: 1, Questions: 2}), "1 mensaje en espera descartado, 2 preguntas retiradas."},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, tt.got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func TestNumbers(t *testing.T) {
	t.Parallel()
	for usd, want := range map[float64]string{
		0: "$0", -1: "$0", 0.00001: "<$0.0001", 0.00034: "$0.00034", 0.0034: "$0.0034", 0.012: "$0.012", 0.31: "$0.31", 0.5: "$0.50", 0.996: "$1.00", 4.1: "$4.10", 9.999: "$10", 12.3: "$12", 1234: "$1,234",
	} {
		if got := w.Money("en", usd); got != want {
			t.Errorf("Money(%v) = %s, want %s", usd, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0 B", 999: "999 B", 1000: "1.0 kB", 999_949: "999.9 kB", 999_999: "1.0 MB", 20_000_000: "20.0 MB"} {
		if got := w.Bytes("en", n); got != want {
			t.Errorf("Bytes(%d) = %s, want %s", n, got, want)
		}
	}
	for _, tt := range []struct {
		used, limit int64
		full        int
	}{{0, 20, 0}, {1, 20, 1}, {18, 20, 9}, {19, 20, 10}, {20, 20, 10}, {30, 20, 10}, {5, 0, 0}} {
		if got, want := texts.Bar(tt.used, tt.limit), strings.Repeat("▓", tt.full)+strings.Repeat("░", 10-tt.full); got != want {
			t.Errorf("Bar(%d, %d) = %s, want %s", tt.used, tt.limit, got, want)
		}
	}
}

// TestForeignText: what people and tools chose does not act on the sentence around it.
func TestForeignText(t *testing.T) {
	t.Parallel()
	for _, evil := range []string{"%s%d%!", "100%"} {
		for _, language := range w.Languages() {
			got := []string{
				w.Start(language, evil), w.NotYours(language, evil), w.UnknownCommand(language, evil, ""), w.Line(language, act.Run, evil, 0, 1, 0),
				w.CardFoot(language, texts.Card{Reason: w.Reason(language, reason.New(reason.NoRule, "`"+evil+"`")), Suspicious: evil}), w.Decided(language, bot.Approval{State: bot.Approved, ByName: evil}), w.ModelCard(language, evil, evil, true, true),
			}
			for i, text := range got {
				if !strings.Contains(text, evil) || strings.Contains(text, "%!(") || strings.Contains(strings.ReplaceAll(text, evil, ""), "%!") {
					t.Error(fmt.Sprint(i), text)
				}
			}
		}
	}
	if got := w.Start("en", strings.Repeat("x", 5000)); len(got) > 400 {
		t.Errorf("a name fills the message: %d bytes", len(got))
	}
}

// latin are the words that a sentence in another script may have in Latin letters: names, units, and what is typed as
// it is.
var latin = strings.Fields(`MCP Redis Telegram USD JPEG PNG WebP GIF OGG MP3 M4A WAV FLAC WebM SHA UTC UTF KiB zephbot SQLite ID URL COMMAND
	full readonly supervised true false off chat approver admin list set unset tools usd turns tokens day month`)

// TestOtherScript: a sentence in a language that is not written in Latin letters has only such words of them that are
// the same in English, as commands, names of settings and what the tests fill in are.
func TestOtherScript(t *testing.T) {
	t.Parallel()
	word := regexp.MustCompile(`[/@.:_a-zA-Z0-9\-]*[a-zA-Z]{2,}[/@.:_a-zA-Z0-9\-]*`)
	english := everything("en")
	for method, list := range everything("ru") {
		for i, text := range list {
			if neutral[method] || texts.Drafts() && text == english[method][i] {
				continue
			}
			for _, found := range word.FindAllString(text, -1) {
				plain := strings.Trim(found, ":.-")
				if strings.ContainsAny(plain, "/@._:0123456789") || slices.Contains(latin, plain) {
					continue
				}
				if !strings.Contains(english[method][i], plain) || englishWords.MatchString(plain) {
					t.Errorf("%s says %q in Russian: %q", method, plain, text)
				}
			}
		}
	}
	for _, text := range everything("ru")["ServerAdd"] { // a card shows this like words of others
		if shown, _ := w.Visible("ru").Text(text); shown != text {
			t.Errorf("on a card: %q", shown)
		}
	}
}

// TestOwnersAreNotSentToAnOperator: who runs the service reads what to do, in every language.
func TestOwnersAreNotSentToAnOperator(t *testing.T) {
	t.Parallel()
	for _, language := range []string{"en", "de", "es", "ru"} {
		seen := map[string]string{}
		for _, reason := range []string{
			journal.ReasonModel, journal.ReasonKey, journal.ReasonCredit, journal.ReasonNoModel, journal.ReasonRegion, journal.ReasonAddress, journal.ReasonBusy, journal.ReasonGivenUp, journal.ReasonInternal,
		} {
			failing := texts.Words{Owner: true}.Failing(&llm.Error{Server: "api.acme.example"}, time.Minute)
			text := failing.Ended(language, reason, "", journal.Stats{}, "7f3a")
			lower := strings.ToLower(text)
			for _, word := range []string{"operator", "betreiber", "operador", "оператор"} {
				if strings.Contains(lower, word) {
					t.Errorf("%s %s: %s", language, reason, text)
				}
			}
			if seen[text] != "" || !strings.Contains(text, "7f3a") {
				t.Errorf("%s: %s and %s are told alike, or without the request: %s", language, reason, seen[text], text)
			}
			seen[text] = reason
		}
	}
}

// TestOwnersAreToldWhichServerIsMissing: who runs the service reads which server cannot be reached, why, and what helps;
// nobody else learns where the model is.
func TestOwnersAreToldWhichServerIsMissing(t *testing.T) {
	t.Parallel()
	for _, language := range []string{"en", "de", "es", "ru"} {
		seen := map[string]llm.Unreached{}
		for _, why := range []llm.Unreached{
			llm.UnreachedName, llm.UnreachedRefused, llm.UnreachedRoute, llm.UnreachedSecure, llm.UnreachedProxy,
		} {
			err := fmt.Errorf("call: %w", &llm.Error{Kind: llm.Unavailable, Server: "api.acme.example:8443", Unreached: why})
			owner, other := texts.Words{Owner: true}.Failing(err, 8*time.Second), texts.Words{}.Failing(err, time.Minute)
			away, ended := owner.Away(language, "7f3a"), owner.Ended(language, journal.ReasonGivenUp, "", journal.Stats{}, "7f3a")
			for _, text := range []string{away, ended} {
				if !strings.Contains(text, "api.acme.example:8443") || !strings.Contains(text, "7f3a") {
					t.Errorf("%s %s: %s", language, why, text)
				}
			}
			if !strings.Contains(away, " 8 ") || !strings.Contains(ended, "base_url") || seen[ended] != "" {
				t.Errorf("%s %s: %s | %s", language, why, away, ended)
			}
			seen[ended] = why
			if text := other.Away(language, "7f3a") + other.Ended(language, journal.ReasonGivenUp, "", journal.Stats{}, "7f3a"); strings.Contains(text, "acme") {
				t.Errorf("%s: others read %s", language, text)
			}
		}
		for _, reason := range []string{journal.ReasonKey, journal.ReasonNoModel, journal.ReasonAddress, journal.ReasonCredit, journal.ReasonRegion, journal.ReasonModel} {
			owner := texts.Words{Owner: true}.Failing(&llm.Error{Server: "api.acme.example"}, time.Minute)
			if text := owner.Ended(language, reason, "", journal.Stats{}, "7f3a"); !strings.Contains(text, "(api.acme.example)") {
				t.Errorf("%s %s: %s", language, reason, text)
			}
		}
	}
}
