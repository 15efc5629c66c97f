// Package texts contains every sentence that the bot says on its own. The sentences of a language are one file,
// languages/XX.toml, so that they can be read, reviewed and translated as a whole; docs/languages.md says how to add
// one. What is not sentences, such as which of them is said when, is in Go.
package texts

import "github.com/zephbot/zephbot/policy/reason"

// book contains all sentences of one language. A part is a table of its file, a field a sentence: ended.stopped_nothing
// is Ended.StoppedNothing. What a sentence leaves open (%s, %d) is the same in every language, in any order (%[2]s).
type book struct {
	Ended     endedBook
	Notices   noticeBook
	Progress  progressBook
	Card      cardBook
	Buttons   buttonBook
	Decisions decisionBook
	Inquiry   inquiryBook
	Policy    policyBook
	Commands  commandBook
	Blocked   blockedBook
	Learnt    learntBook
	Servers   serverBook
	Changes   changeBook
	Proposal  proposalBook
	Files     fileBook
	Grants    grantBook
	Memory    memoryBook
	Models    modelBook
	People    peopleBook
	Profile   profileBook
	Refusals  whyBook
	Quota     quotaBook
	Status    statusBook
	Guest     guestBook
	Receipts  receiptBook
	Showing   showingBook
	Terminal  Terminal
	Editor    editorBook
	Edits     editBook
	Recap     recapBook
	Speech    speechBook
	Search    searchBook
	Skills    skillBook
	Zones     zoneBook
	Operator  operatorBook
	Settings  settingsBook
	Personas  personaBook
	Talk      talkBook
	Schedule  scheduleBook
	Hooks     hookBook
	Clock     clockBook
	Numbers   numberBook
	Dates     dateBook
	Privacy   privacyBook
	Hidden    hiddenBook

	Reason map[reason.Code]string // why calls are allowed, asked about or refused
}

// endedBook is why a turn ended without an answer.
type endedBook struct {
	Stopped, StoppedNothing, Gone, LoopMute string
	Limit                                   count  // steps
	Loop                                    string // output
	Context, Empty, Refusal                 string
	// request
	ModelRefused, Key, Credit, NoModel, Region, Address, OtherModel, GivenUp, Busy, Internal, Overtime, Oversize string
	Owner                                                                                                        ownerBook
}

// ownerBook is what who runs the service reads instead of being sent to the operator.
type ownerBook struct {
	ModelRefused, Key, Credit, NoModel, Region, Address string // server, request
	Internal, Unreached                                 string // request
	GivenUp, Busy                                       string // time, request
}

// ownerNotices is what who runs the service reads while the model is unavailable.
type ownerNotices struct {
	Away, Busy, KeepTrying string // time, request
	Unreached              string // server, why
	UnreachedBecause       map[string]string
}

// noticeBook is what is said about messages and files that did not go as they should.
type noticeBook struct {
	Unstored, Behind, Nothing          string
	OutOfOrder                         string // advice
	Crowded                            string // time
	Away, Busy, Broken                 string // request
	Cut, Filtered, Placeholder, Resent string
	Lost                               count // messages
	NoTopic, AsFile, Unsendable        string
	Beginning, WholeAnswer             string // size
	NoRest                             string
	NotKept                            string // tool, file
	Stranger, GroupUnlisted            string // id
	GroupUnclaimed                     string
	Owner                              ownerNotices
}

// progressBook is what is said while a turn runs.
type progressBook struct {
	Thinking         string
	Silent, Stuck    string            // for how long
	Working          string            // what a tool does
	Step             string            // steps done, of how many
	Short            string            // seconds, as short as can be
	Verbs            map[string]string // what a tool does to what, by act.Verb; other = for a tool without one
	Seconds, Minutes count
	Hours            count
}

// cardBook is what a question about a call shows.
type cardBook struct {
	MayI, InWorkspace                        string
	Agent                                    string // name of a sub-agent
	Asker                                    string // name of a person
	Why                                      string // reason
	NoAlways                                 string // label of the button that is not there
	SoFar                                    string // steps, money
	Steps                                    count
	Expires                                  string // time, name of the question
	LongFile                                 string // lines, hash
	Needs                                    string // approvals, those so far
	Suspicious                               string // source
	Blanks, EmptyLines, Invisible, LookAlike string // with a number each
	Deeds                                    deedBook
}

// buttonBook is the labels of a question's buttons.
type buttonBook struct {
	Once, Page, Session, Always, Clear, Deny, StoreIt, Back string
}

// decisionBook is what is said of decisions.
type decisionBook struct {
	Approved, ApprovedSession, ApprovedAlways, ApprovedCleared, Denied string // name, time
	ApprovedUntil                                                      string // day, name, time
	ApprovedUses                                                       count  // calls, name, time
	ApprovedUsesUntil                                                  count  // calls, day, name, time
	AdminsClear                                                        string
	Expired, Withdrawn                                                 string // time
	Stranger                                                           string // who may decide
	StrangerSeveral                                                    string
	Asker                                                              string
	Already                                                            string // the decision
	UnknownButton, WriteAsYourself                                     string
	UnknownQuestion, NoQuestion                                        string
	OneQuestion, WhichQuestion                                         string // names of questions
	NotYourself, VoteOthers, Noted                                     string
	NotedMore                                                          string // approvals that are missing
	WhyOffer, WhyNoted, WhyLater, WhyLate                              string
}

// policyBook is what is said about rules.
type policyBook struct {
	StoreHead, StoreHeads  string // for one rule, and for several
	StoreFoot, AdminsStore string
	Head, Help             string
	Rule                   string // name
	Effects                map[string]string
	Status                 rulesBook
}

// rulesBook is which rules are in force.
type rulesBook struct {
	Autonomy                                    string            // level
	Levels                                      map[string]string // what each level of autonomy means
	Permissions                                 string            // rules, tools
	PermissionsOff, PolicyOff, AuthorizationOff string
	Policy                                      string // rules, evaluation, default
	From                                        string // file
	Authorization                               string // rules
	Judged                                      string
	Sandbox                                     string // what the kernel enforces
}

// commandBook is what commands answer.
type commandBook struct {
	Hello, HelloNamed, Start         string // HelloNamed: name
	NoWord, Miscounted               string // word
	HelpHead, HelpHeadOwn, HelpAdmin string
	Unknown, InTelegramOnly          string // name
	UnknownNear                      string // name, nearest name
	AdminsOnly                       string // " (names)", or nothing
	Cleared, Fresh                   string
	NothingRuns, Stopping            string
	EndedRecordings                  count
	Dropped                          count // messages
	DroppedQuestions, EndedCommands  count
	ToolsHead, ToolsNone             string
	ToolsUnset                       string             // tools with the keys that they need
	Tools                            map[string]string  // what each of our tools does, by name
	List                             map[string]command // by name
}

// command is what a command does, and how it is used.
type command struct {
	Does    string
	Example string `catalogue:"optional"`
}

// blockedBook is about tools that are switched off because they failed too often.
type blockedBook struct {
	Head                  string
	Left                  string // duration
	Elsewhere, Everywhere string
	Chat                  string // id
	Tool                  string // tool, duration, tool
	ToolFor               string // tool, person, duration, tool
	ToolAdmins            string // tool, failures, calls, where, duration, tool
	Unblocked, NotBlocked string // tool
	Meant                 string // name
}

// learntBook is about what the servers of models refuse.
type learntBook struct {
	Head          string
	Line          string // tool, provider, what the server said
	NoTools       string // provider, model
	ToolAdmins    string // provider, tool, what the server said
	NoToolsAdmins string // model, provider
}

// serverBook is about MCP servers.
type serverBook struct {
	Off, None, Head, Help     string
	States                    map[string]string
	Tools, Dropped            count
	Fits                      string // tools shown, all, tokens
	Connecting, Unknown, Away string // id
	Failed                    string // id, problem
	Back                      string // id, tools
	SignIn                    string // id, link, id
	SignInAgain, Late         string
	Added, Removed            count // tools
	Programs, Nobody          string
}

// changeBook is about changes of servers, which wait until an admin accepts them.
type changeBook struct {
	Changed, Fresh     string // id, tools
	Held               string // id
	Pending, Nothing   string // id
	Words, IsNew, Long string
	Accept             string // id, code
	Accepted           string // id, tools
	More               string // lines
}

// proposalBook is what a card about /mcp add shows.
type proposalBook struct {
	Add, Program, URL, Env, Holds string // what it is
}
