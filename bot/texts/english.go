package texts

import "github.com/zephbot/zephbot/policy/act"

func english() *book {
	b := &book{}
	englishTurn(b)
	englishApproval(b)
	englishLimits(b)
	englishCommands(b)
	englishServers(b)
	englishFiles(b)
	return b
}

// englishTurn is the part about how a turn goes and ends.
func englishTurn(b *book) {
	b.stopped = "Stopped."
	b.stoppedNothing = "Stopped before anything was said."
	b.limit = count{
		"I stopped after %d step without a result. Say *go on* to let me continue.",
		"I stopped after %d steps without a result. Say *go on* to let me continue.",
	}
	b.loop = "I got the same result three times and stopped, so as not to run in circles: %s"
	b.loopMute = "I got the same result three times and stopped, so as not to run in circles."
	b.gone = "Ended, because I was blocked or removed from the chat."
	b.context = "This conversation has become too long for me to continue. /new starts a fresh one; repeat there what matters."
	b.modelRefused = "The model refuses this request, so I have no answer. The operator can see why in the log. (request %s)"
	b.key = "The model does not accept my key, so I cannot answer. The operator has to fix this. (request %s)"
	b.empty = "The model gave an empty answer. Please ask again, perhaps with different wording."
	b.refusal = "The model declined to answer this."
	b.givenUp = "The model has not answered for 10 minutes, so I gave up. Please send your message again later. (request %s)"
	b.overtime = "The model was still writing when its time for one answer was over, so I ended it. Please ask for less at once. (request %s)"
	b.oversize = "The model's answer was far larger than I can take in, so I ended it. Please ask for less at once. (request %s)"
	b.internal = "Something went wrong on my side and I could not finish this. The operator can see why in the log. (request %s)"
	b.cut = "*(The answer was cut at its length limit. Say* go on *for the rest.)*"
	b.unstored = "I cannot store anything at the moment. Your message is not lost: I will receive it again, and answer as soon as this works."
	b.outOfOrder = "⚠ My database is out of order: %s. Nothing is lost and nothing runs; I will continue by myself once it works."
	b.away = "The model does not answer right now. Your message is kept; I will try again for 10 minutes. (request %s)"
	b.behind = "I will get to this after you decide above. /stop drops it."
	b.nothing = "There is nothing in this message that I can work with. Send me text, please."
	b.broken = "I could not handle this message because of an error on my side. The operator can see why in the log. (request %s)"
	b.placeholder = "⏳ …"
	b.resent = "(sent again after a connection problem)"
	b.lost = count{"⚠ %d earlier message of mine may not have reached you. Ask again if you miss it.", "⚠ %d earlier messages of mine may not have reached you. Ask again if you miss them."}
	b.noTopic = "(The topic this belongs to is closed or deleted, so I answer here.)"
	b.asFile = "Telegram does not accept this as a message, so here it is as a file."
	b.notKept = "%s made the file %s, but it could not be stored here, so I cannot send it."
	b.unsendable = "I have something to tell you that Telegram does not accept in any form. Ask me to say it differently."

	b.thinking = "⏳ Thinking"
	b.working = "⏳ %s"
	b.step = "%d of %d steps"
	b.verbs = map[act.Verb]string{
		act.Run: "Running %s", act.Read: "Reading %s", act.Write: "Writing %s", act.Edit: "Editing %s", act.Search: "Searching %s", act.Find: "Looking for %s",
		act.List: "Listing %s", act.Create: "Creating %s", act.Delete: "Deleting %s", act.Move: "Moving %s", act.Copy: "Copying %s", act.Fetch: "Fetching %s", act.Send: "Sending %s",
		"": "Using %s",
	}
}

// englishApproval is the part about questions and rules.
func englishApproval(b *book) {
	b.mayI = "✋ May I run this?"
	b.inWorkspace = "in the workspace of this chat"
	b.why = "Why I ask: %s"
	b.soFar = "So far: %s, %s"
	b.steps = count{"%d step", "%d steps"}
	b.expires = "expires %s · or send /approve %s"
	b.longFile = "The whole text is in the file above: %d lines, SHA-256 %s. The file is what gets approved."
	b.needs = "Needs %d approvals, not counting the person who asked; %d so far."
	b.voteOthers = "Several people have to approve this, and the person who asked does not count."
	b.blanks = "%d blanks"
	b.emptyLines = "%d empty lines"
	b.invisible = "⚠ Contains invisible characters: %d"
	b.lookAlike = "⚠ Contains look-alike characters: %d"
	b.once = "Approve once"
	b.session = "Approve for this session"
	b.deny = "Deny"
	b.approved = "✅ Approved once by %s, %s"
	b.approvedSession = "✅ Approved for this session by %s, %s"
	b.denied = "⛔ Denied by %s, %s"
	b.expired = "⛔ Nobody decided in time, %s"
	b.withdrawn = "⛔ Withdrawn, %s"
	b.stranger = "Only %s or an approver of this chat can decide this."
	b.asker = "the person who asked"
	b.already = "Already decided: %s"
	b.unknownQuestion = "This question is no longer open."
	b.notYourself = "Somebody else has to approve this: not the person who asked."
	b.noQuestion = "Nothing is waiting for a decision here."
	b.whichQuestion = "Several questions are open here. Say which: %s"
	b.decidedToast = "Noted."
	b.votedToast = "Noted. %d more needed."
	b.suspicious = "⚠ Text from %s tried to give me orders before this."

	b.always = "Always…"
	b.grants, b.models = englishGrants(), englishModels()
	b.storeHead = "Store this rule for this chat?"
	b.storeFoot = "It runs without asking from then on. A denial in the configuration still wins."
	b.storeIt = "Store it"
	b.back = "Back"
	b.adminsStore = "Only an admin of this bot can store a rule."
	b.approvedAlways = "✅ Always approved by %s, %s"

	b.oneQuestion = "There is no question of that name here. The open one is %s."

	b.policyHead = "Rules in force:"
	b.policyHelp = "/policy status shows the rules in force; /policy rules lists what is always allowed, and lets you revoke it; /policy check TOOL {\"…\":\"…\"} says what they would decide, such as /policy check bash {\"command\":\"git push\"}"
	b.policyRule = "Rule: %s"
	b.effects = map[string]string{"allow": "✅ It would run.", "ask": "✋ It would ask.", "deny": "⛔ It would be denied."}
}

// englishLimits is the part about who may talk, and how much.
func englishLimits(b *book) {
	b.strangerPrivate = "I only talk to people on my list. Your id is %s; give it to the person who runs me."
	b.people, b.refusals = englishPeople(), englishWhy()
	b.groupUnlisted = "I am not set up for this group. Its id is %s; give it to the person who runs me."

	b.quota = englishQuotas()
}

// englishCommands is the part about commands.
func englishCommands(b *book) {
	b.start = "Hello%s. I am an assistant that can look things up and do work with tools. Just write what you need; before I change anything, I ask. /help shows what else there is."
	b.helpHead = "Write to me in plain words. In a group, mention me or answer one of my messages."
	b.helpAdmin = "For admins:"
	b.unknown = "I do not know /%s. /help shows what there is."
	b.unknownNear = "I do not know /%s. Did you mean /%s?"
	b.adminsOnly = "That is for admins of this bot%s."
	b.cleared = "Done. I have forgotten this conversation."
	b.newTopic = "A fresh conversation. What is it about?"
	b.nothingRuns = "Nothing is running here."
	b.stopping = "Stopping."
	b.dropped = count{"%d waiting message dropped", "%d waiting messages dropped"}
	b.droppedQuestions = count{"%d question withdrawn", "%d questions withdrawn"}
	b.endedCommands = count{"%d command in the background ended", "%d commands in the background ended"}
	b.status = englishStatus()
	b.toolsHead = "Tools in this chat:"
	b.toolsNone = "No tools may be used in this chat."
	b.notBuilt = "/%s is not part of this version yet."
	b.seconds = count{"%d second", "%d seconds"}
	b.minutes = count{"%d minute", "%d minutes"}
	b.hours = count{"%d hour", "%d hours"}
	b.commands = map[string][2]string{
		"help":    {"what you can do here", ""},
		"new":     {"start a fresh conversation", ""},
		"clear":   {"forget this conversation and reset its tool quota", ""},
		"stop":    {"stop what I am doing and drop waiting messages", ""},
		"status":  {"what is running and what is waiting", ""},
		"quota":   {"what you have used today", ""},
		"tools":   {"the tools I may use here", ""},
		"mcp":     {"add, list and remove MCP servers", "/mcp add files npx @modelcontextprotocol/server-filesystem /srv"},
		"model":   {"the model of this conversation, and another one", "/model"},
		"approve": {"approve a question", "/approve akun"},
		"deny":    {"deny a question", "/deny akun"},
		"start":   {"say hello", ""},
		"people":  {"who may talk to me", ""},
		"why":     {"why something was refused", ""},
		"admit":   {"let somebody talk to me", "/admit 4711 approver"},
		"remove":  {"take that back", "/remove 4711"},
		"policy":  {"the rules, and what they would decide", "/policy check bash {\"command\":\"ls\"}"},
	}
}

// englishServers is the part about tools that are blocked, and servers.
func englishServers(b *book) {
	b.blockedLeft, b.blockedElsewhere = "%s left", "in another conversation"
	b.blockedEverywhere, b.blockedChat = "everywhere", "in chat %s"
	b.toolBlocked = "%s failed too often. I do not use it in this conversation for %s; an admin can restore it with /tools unblock %s."
	b.toolBlockedAdmins = "%s failed in %d of %d calls. It is switched off %s for %s; /tools unblock %s restores it."
	b.toolsBlocked = "Blocked, because they failed too often (/tools unblock NAME, admins):"
	b.unblocked = "%s can be used again."
	b.meant = "Did you mean %s?"
	b.notBlocked = "%s is not blocked."
	b.serversOff = "There is no MCP client here."
	b.serversNone = "No MCP server. An admin adds one with /mcp add ID COMMAND… or /mcp add ID URL."
	b.serversHead = "MCP servers:"
	b.serversHelp = "/mcp list\n/mcp add ID COMMAND… – starts a program, for example /mcp add files npx @modelcontextprotocol/server-filesystem /srv\n" +
		"/mcp add ID URL – connects to a server on the network\n/mcp tools ID\n/mcp restart ID\n/mcp signin ID – signs in where a server wants it\n/mcp accept ID – shows what has changed, and how to accept it\n/mcp remove ID"
	b.serverConnecting = "Connecting to %s …"
	b.serverNone = "There is no server %s. /mcp list shows the servers."
	b.serverAccepted = "%s: accepted as they are now: %s"
	b.serverNothing = "%s: nothing has changed, so there is nothing to accept."
	b.serverFailed = "%s: %s"
	b.serverAway = "The server %s has ended. Its tools are gone until it is back; I am trying to reach it."
	b.serverBack = "The server %s is back with %s."
	b.signInAgain = "I was restarted, and the link that I sent before no longer works."
	b.late = "I was away for too long and did not do this. Say it again if you still want it."
	b.serverSignIn = "%s wants you to sign in. Open this link in your browser:\n%s\nIf the browser ends up at a page that does not load, send me its address: /mcp signin %s ADDRESS"
	b.serverChanged = "Tools of %s have changed and are withdrawn until an admin accepts them with /mcp accept: %s"
	b.serverFresh = "%s has new tools that wait until an admin accepts them with /mcp accept: %s"
	b.serverHeld = "The instructions of %s have changed and are withheld until an admin accepts them with /mcp accept."
	b.serverFits = "Shown to the model: at most %d of %d tools at once (all servers share %d tokens); it finds the rest by searching"
	b.serverDropped = count{"%d tool is not offered; /mcp tools says why", "%d tools are not offered; /mcp tools says why"}
	b.serverPending = "%s wants to be used like this from now on. Everything is in its own words:"
	b.serverWords, b.serverIsNew = "instructions", "new"
	b.serverAccept = "To accept exactly this: /mcp accept %s %s"
	b.serverLong, b.serverMore = "(a schema that is too long to show)", "… %d more lines are not shown."
	b.serverChat = "Programs are not added from the chat here: mcp.chat_commands is false. The operator can set it to true, or add the server to [[mcp.servers]]."
	b.serverNotNow = "There is nobody here to ask, so nothing was added."
	b.serverAdd = "Add the MCP server %s"
	b.serverAddProgram, b.serverAddURL = "program: %s", "address: %s"
	b.serverEnv, b.serverHolds = "environment: %s", "restricted by: %s"
	b.serverStates = map[string]string{
		"connecting": "connecting", "connected": "connected", "away": "away, trying again", "broken": "cannot connect", "stopped": "stopped",
	}
	b.serverTools = count{"%d tool", "%d tools"}
	b.serverAdded = count{"connected, %d tool.", "connected, %d tools."}
	b.serverRemoved = count{"removed, with %d tool.", "removed, with %d tools."}
}
