// Package texts contains every sentence that the bot says on its own, with one file per language, so that each can be
// read, reviewed and translated as a whole.
package texts

import (
	"fmt"
	"strings"

	"github.com/zephbot/zephbot/policy/act"
)

// count is a sentence about a number: singular and plural, each with one %d.
type count [2]string

func (c count) say(n int) string {
	if n == 1 {
		return fmt.Sprintf(c[0], n)
	}
	return fmt.Sprintf(c[1], n)
}

// book contains all sentences of one language. Verbs and the order of %s and %d are the same in every language.
type book struct {
	// A turn that ends without an answer.
	stopped, stoppedNothing, gone, loopMute string
	limit                                   count  // steps
	loop                                    string // output
	context, modelRefused, key, empty       string // request
	refusal, givenUp, internal              string // request
	overtime, oversize                      string // request
	unstored, outOfOrder                    string // advice
	cut, away, behind, nothing, broken      string // request
	placeholder, resent                     string
	files                                   fileBook
	lost                                    count // messages
	noTopic, asFile, unsendable, notKept    string
	// Progress.
	thinking, working, step string
	verbs                   map[act.Verb]string // of a tool
	// Approval.
	mayI, inWorkspace, why, soFar, expires, longFile, needs                           string
	steps                                                                             count
	once, session, deny                                                               string
	approved, approvedSession, denied, expired, withdrawn                             string
	stranger, asker, already, unknownQuestion, notYourself, noQuestion, whichQuestion string
	decidedToast, votedToast, suspicious                                              string
	always, storeHead, storeFoot, storeIt, back, adminsStore, approvedAlways          string
	oneQuestion, voteOthers                                                           string
	blanks, emptyLines, invisible, lookAlike                                          string // with a number each
	grants                                                                            grantBook
	models                                                                            modelBook
	// English sentences of the policy in this language; nil = not translated
	reasons func() *phrases
	// For what is not among them.
	someReason string
	// Policy.
	policyHead, policyHelp, policyRule string
	effects                            map[string]string
	// Access.
	strangerPrivate, groupUnlisted string
	people                         peopleBook
	refusals                       whyBook
	// quota
	quota quotaBook
	// commands
	start, helpHead, helpAdmin, unknown, unknownNear, adminsOnly, cleared, newTopic, nothingRuns, stopping string
	dropped, droppedQuestions, endedCommands                                                               count
	status                                                                                                 statusBook
	toolsHead, toolsNone, notBuilt                                                                         string
	// Tools that are blocked, servers.
	blockedLeft, blockedElsewhere, blockedEverywhere, blockedChat                        string
	toolBlocked, toolBlockedAdmins                                                       string
	toolsBlocked, unblocked, notBlocked, meant                                           string
	serverFits                                                                           string
	serversOff, serversNone, serversHead, serversHelp                                    string
	serverConnecting, serverNone, serverAccepted, serverNothing                          string
	serverFailed, serverAway, serverBack, serverChanged, serverSignIn, signInAgain, late string
	serverFresh, serverHeld, serverPending, serverWords, serverIsNew                     string
	serverAccept, serverLong, serverMore, serverChat, serverNotNow                       string
	serverDropped                                                                        count
	serverAdd, serverAddProgram, serverAddURL, serverEnv, serverHolds                    string
	serverStates                                                                         map[string]string
	serverTools, serverAdded, serverRemoved                                              count
	seconds, minutes, hours                                                              count
	// Name → what it does, example.
	commands map[string][2]string
}

// in returns the book for an IETF language tag, by default English.
func in(tag string) *book {
	base, _, _ := strings.Cut(strings.ReplaceAll(strings.ToLower(tag), "_", "-"), "-")
	if base == "de" {
		return german()
	}
	return english()
}
