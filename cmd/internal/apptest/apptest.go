// Package apptest plays scenario files through the whole service: people on the strict fake Bot API, a scripted model,
// and what they must see. It is for tests only.
//
// A scenario is a txtar file with the parts config (TOML, added to a base that admits the people below), model (see
// package llmtest) and chat; further parts are configurations for "restart with NAME", a file filters.toml beside the
// configuration, files of skills, named skills/…, also beside the configuration, meaning (a provider of embeddings that
// knows these groups of words, a group a line, as words that mean the same), media (a vendor of vendortest that hears, speaks
// and draws, and below it the keys of its provider), and web pages, named by their address:
// https://… of example.com or a host right below it; every other address is a 404. $overflow in the arguments of the
// model's call is the newest overflow:… that it was shown. A scenario in which a line of the model's script is never
// reached fails: it proves less than it promises. {300×text} in model, chat, filters.toml and pages stands for 300
// times that text. People: ann (1001, admin), ben (1002), cy (1003, German) and dora (1004, a stranger). Chats: a
// private one each, by the person's name; team, a group with ann, ben and cy; forum, a supergroup with the topics
// General and 7; foreign, a group that is not on the list; board, a group that is not on the list either and that the
// bot is an admin of; away, a group that the bot is not in, where everybody can mention it; shop, the chat of ben's
// business account with dora, once it is connected. The shell runs without the kernel sandbox unless the scenario says
// otherwise, so that what asks does not depend on the machine. Lines of chat:
//
//	ann: text                   she writes in her private chat ("\n" is a line break); ann@team, ann@forum/7 elsewhere; anon@team: an anonymous admin,
//	                            channel@team: somebody in the name of a channel
//	ann@team re 2: text         … as a reply to message 2 of that chat; re 2 "part": quoting that part of it
//	ann re 2 sends photo: text  an attachment, as a reply
//	ann sends photo: caption    an attachment: photo, album5 (five photos), voice, noise (a voice message that is none), audio, video, videonote, animation, sticker, location,
//	                            venue, contact, poll, dice; as a document: document (a PDF), invoice (one with a table), notes, orders, docx, xlsx, csv, broken, bomb, xlsxbomb, vast, picture, outside, huge
//	ann forwards: text          a text that somebody else wrote
//	ann edits 3: text           she edits her message
//	bot@ann: text               the next message of the bot in that chat is this; /regexp/ between slashes. It waits for it; * and \n as above
//	to@team 2                   the message of the last "bot" line answers message 2 (0: none)
//	quotes@ann: the first       … it quotes this part of the message that it answers
//	looks@ann: bold Ann         … it has this formatting: entity type and the text under it; "looks@ann: plain" none at all
//	$2@ann                      (in any line) the name of the second open question in that chat, as in /approve NAME
//	$code                       (in any line) the code of the first admin, as the newest start has shown it
//	$link@ann                   (in any line) what the newest link to the bot in that chat brings, as in /start $link@ann
//	attached@ann: NAME /regexp/ … it carries this file with such content; instead of the name, the kind of one without: voice
//	buttons@ann: none           … it has no buttons (any more), or these labels: [Approve once] [Deny]
//	press ann@ann "Label"       she presses a button of the newest message that has one with this label; @team says where
//	press ann@ann 3 "Label"     … of message 3; "press ann+ben@team …" both in the same moment
//	privacy off                 from now on the bot sees what is written in groups (/setprivacy); its next start knows
//	presses inline              from now on a press does not say where its button was (Bot API 10.5, callback_query_mode)
//	repress ann@ann             she presses that same button once more, although it may be gone by now
//	forge ann@ann 3 data        … a button that is not there, on message 3
//	toast ann: /regexp/         her newest press was answered with this
//	card@ann: /regexp/          the newest message with or without buttons that was edited matches
//	draft@ann: /regexp/         the draft that she sees matches
//	sign@ann: 2 👀              the bot's reaction on message 2 is this; "2 none": there is none
//	growing@team: /regexp/      a message that shows that an answer is on its way (⏳ …); "bot" and "silent" pass over such
//	stop ann                    the Stop button of her draft
//	idle                        the service has nothing to do
//	alone@board ben /regexp/    the newest message that only he sees there matches
//	silent@ann                  … and the bot has said nothing new there
//	release NAME                lets the model's "wait NAME" go on
//	spoken /regexp/             the newest text that was given to the server that speaks; "spoken 2": so many were
//	drawn /regexp/              … of the server that draws; "media fails content" the next request there fails so (vendortest.Server.Fail);
//	                            "media waits" all of them wait until "media answers"
//	model asked 3               the model was asked so often in all
//	model saw /regexp/          a request of the model contains this; "model not saw" none does, so far
//	model offered bash          the newest request offers this tool; "model not offered bash" it does not
//	model offered edit /regexp/ … with such a description or schema; "model not offered edit /regexp/" without
//	web https://… fails 503 1   the page answers so often with this status (without a number: for good); "web https://… works" no longer
//	web https://… asked 2       so many requests for it have come
//	restart                     stops the service as SIGTERM does and starts it again on the same state. Of two processes
//	                            (PlayTogether), this line and the next ones are about one of them, which the seed chooses
//	restart with NAME           the same with the configuration of that part; of two processes, each in turn
//	stopping / down / start     the parts of it: the signal is given; it is and the service has ended; it has ended and runs again
//	to one / to two / to any    of two processes, which gets the updates from now on and is restarted; "any": as the seed says. One process gets all of them
//	fault send* cut 1           telegramtest.Fault: method, kind, count (0: until "faults off"), optionally retry-after seconds, a delay such as 50ms, or a description
//	faults off
//	hit send*                   the last fault has been used up
//	call NAME 202 {"a":1}       that hook is called with this body, signed as GitHub does with the secret
//	                            "known-to-the-caller"; the answer has this status. The scenario sets triggers.listen = "127.0.0.1:8444"
//	call again 200              the newest call is sent again as it was
//	call forged NAME 401 {…}    signed with another secret; "call told …" with the one that ann was told last
//	again                       the newest update is delivered once more
//	raw {"poll":{}}             an update as it is
//	audit /regexp/              a line of the audit log matches; "no audit /regexp/" none does
//	log /regexp/                a line of the service's log matches
//	until audit /regexp/ ben: text   he says it again and again until a line of the audit log matches, and nobody looks at the answers: for what a
//	                            service may leave out when its machine is busy
//	never /regexp/              this is in no message, draft, audit line, log line or call to Telegram
//	file ann NAME: text         a file in her workspace has this content; "no file ann NAME" none
//	previews 1                  so many layers of previewed commands are kept
//	put ann NAME: text          makes one; a text that begins with #! can be run
//	module ann DIR MODULE       copies a module that this project depends on into a directory of her workspace, without its tests
//	skill pdf/SKILL.md: text    makes or changes a file of a skill ("\n" is a line break); one that begins with #! can be run
//	stray ben@team NAME: text   makes one in the directory that a group's present id would name, as if it had been written before its migration was known
//	migrate team                the group gets a new id; the name goes with it
//	block dora / unblock dora
//	rename ben dora             his username
//	named ben Ann               his name
//	speaks ben ru               the language of his client
//	connect ben on              his business account is connected with the bot; mute: it may not answer there; off: no longer
//	untopic forum 7             the topic is deleted with all that is in it
//	join foreign                dora adds the bot to that group; join team ann: she does; leave team: she removes it
//	enter team dora             that person becomes a member of the group; "exit team ben": leaves it
//	clock +5m                   the service's clock goes on; "clock day" to the next day, UTC
package apptest

import (
	"bytes"
	"iter"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/zephbot/zephbot/agent/llm/dialect"
	"github.com/zephbot/zephbot/agent/llm/llmtest"
	"github.com/zephbot/zephbot/agent/llm/toolschema"
	"github.com/zephbot/zephbot/agent/llm/toolschema/schematest"
	"github.com/zephbot/zephbot/agent/llm/vendortest"
	"github.com/zephbot/zephbot/bot/telegram/telegramtest"
	"github.com/zephbot/zephbot/persistence"
)

// rulesFile is the part that becomes the rules file of the output filter.
const rulesFile = "filters.toml"

// patience limits each wait. It is long, because a test machine may be slow; a scenario that works never comes near it.
const patience = 90 * time.Second

// Play plays one scenario; the service polls.
func Play(t *testing.T, archive *txtar.Archive) {
	t.Helper()
	play(t, archive, &scene{})
}

// PlayOn plays one scenario on a service with the empty PostgreSQL database at a URL.
func PlayOn(t *testing.T, archive *txtar.Archive, databaseURL string) {
	t.Helper()
	play(t, archive, &scene{databaseURL: databaseURL})
}

// PlayHooked plays one scenario; updates are delivered to a webhook of the service.
func PlayHooked(t *testing.T, archive *txtar.Archive) {
	t.Helper()
	front, err := telegramtest.NewFront(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer front.Close()
	play(t, archive, &scene{front: front})
}

// play plays a scenario in a prepared scene.
func play(t *testing.T, archive *txtar.Archive, s *scene) {
	t.Helper()
	s.open(t, archive)
	defer s.close()
	s.start()
	for i, line := range s.chat() {
		if err := s.do(line); err != nil {
			t.Fatalf("line %d: %s: %v\n%s", i+1, line, err, s.dump())
		}
	}
	s.judge()
}

// chat returns the lines of the chat by number, from 0, without those that say nothing.
func (s *scene) chat() iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		for i, line := range strings.Split(s.parts["chat"], "\n") {
			if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
				continue
			}
			if !yield(i, line) {
				return
			}
		}
	}
}

// open reads a scenario and sets up its scene.
func (s *scene) open(t *testing.T, archive *txtar.Archive) {
	t.Helper()
	parts := map[string]string{}
	for _, f := range archive.Files {
		parts[f.Name] = string(f.Data)
	}
	for name, text := range parts {
		if name == "model" || name == "chat" || name == rulesFile ||
			strings.HasPrefix(name, scheme) || strings.HasPrefix(name, skillsDir) {
			parts[name] = expand(text)
		}
	}
	model, err := llmtest.ParseNamed("test", parts["model"])
	if err != nil {
		t.Fatalf("model: %v", err)
	}
	s.t, s.dir, s.parts, s.extra, s.clock = t, t.TempDir(), parts, parts["config"], newClock()
	s.skills()
	s.openMeaning()
	s.openMedia()
	s.model, s.web = &knowing{Model: model}, openSite(parts)
	if s.vendor != nil {
		s.openVendor()
	}
	s.seen, s.last = map[int64]map[int]bool{}, map[int64]int{}
	if s.processes == nil {
		s.processes = alone()
	}
	s.stage()
}

// judgeTools looks at the tools of all requests as servers do: the strictest, the most lenient and one of its own kind.
func (s *scene) judgeTools() {
	seen := map[string]bool{}
	for _, r := range s.model.Requests() {
		for _, tool := range r.Tools {
			if seen[string(tool.Schema)] {
				continue
			}
			seen[string(tool.Schema)] = true
			for _, name := range []string{"", "openai", "groq"} {
				d, _ := dialect.Named(name)
				_, sent, _ := toolschema.Tool(tool.Description, tool.Schema, &d.Schema)
				if faults := schematest.Faults(sent, &d.Schema); len(faults) > 0 {
					s.t.Errorf(
						"a server (%q) would refuse all tools because of the schema of %s: %v", name, tool.Name, faults,
					)
				}
			}
		}
	}
}

// judge checks what must be true at the end of every scenario.
func (s *scene) judge() {
	t := s.t
	t.Helper()
	if p := s.fake.Problems(); len(p) > 0 {
		t.Errorf("misuse of the fake: %v", p)
	}
	if lines := s.model.Broken(); len(lines) > 0 {
		t.Errorf("the model was asked what it is never to be asked\n  %s", strings.Join(lines, "\n  "))
	}
	s.judgeTools()
	s.judgeVendor()
	if line := doubled(s.log.String()); line != "" {
		t.Errorf("a line of the log has a field twice: %s", line)
	}
	if rest := s.unused(); len(rest) > 0 {
		t.Errorf(
			"the chat ends before the model has said all of its script: what these lines promise is not shown\n  %s",
			strings.Join(rest, "\n  "),
		)
	}
}

// unused returns the lines of the model's script that were never reached. Work that is still in progress at the end of
// the chat may still reach them.
func (s *scene) unused() []string {
	if len(s.model.Unused()) > 0 && s.runs() {
		if err := s.idle(); err != nil {
			s.t.Errorf("after the last line: %v\n%s", err, s.dump())
		}
	}
	return s.model.Unused()
}

// clock is real time plus what the scenario adds.
type clock struct {
	mu    sync.Mutex
	extra time.Duration
}

// newClock returns the clock of a scenario. Shortly before midnight it shows the next day: what counts for today must
// not end while the scenario runs.
func newClock() *clock {
	const longest = 5 * time.Minute // more than a scenario takes
	now := time.Now().UTC()
	if left := now.Truncate(24 * time.Hour).Add(24 * time.Hour).Sub(now); left < longest {
		return &clock{extra: left + time.Minute}
	}
	return &clock{}
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.extra)
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.extra += d
}

// buffer is a log that may be read while it is written.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements io.Writer.
func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// scene is a running scenario.
type scene struct {
	t      *testing.T
	dir    string
	parts  map[string]string
	extra  string
	fake   *telegramtest.Server
	front  *telegramtest.Front // receives the updates to be delivered; nil: they are polled
	url    string
	model  *knowing
	web    *site
	clock  *clock
	log    buffer
	seen   map[int64]map[int]bool // per chat: the messages of the bot that were checked
	last   map[int64]int          // … the one that was checked last
	chats  map[string]int64
	first  map[int64]int64 // of groups that migrated, by each id: the id they had first
	said   int64           // newest update
	albums int             // so many were sent
	press  map[string]string
	button struct {
		message int
		data    string
	} // pressed last
	processes []*process         // of the service
	pair      *balancer          // in front of two processes; nil: there is one
	db        persistence.Reader // of the running service; nil until it is needed

	databaseURL string             // of PostgreSQL; "" = SQLite
	vendor      *Vendor            // the model is behind this vendor's server; nil = there is no server
	server      *vendortest.Server // that server
	media       *vendortest.Server // hears, speaks and draws; nil = nothing does
	answerMedia func()             // lets it go on; nil = it does not wait
	mediaConfig string             // of its provider

	hooks hookCalls

	language string // of everybody; "" = each has their own, and the lines of the chat are what the bot must say
	looking  bool   // a line is played that only looks
}

const (
	ann, ben, cy, dora int64 = 1001, 1002, 1003, 1004
	team, foreign, out int64 = -2001, -2002, -2003
	board              int64 = -2004
	forum              int64 = -1001000000077
	news               int64 = -1001000000099 // a channel that somebody writes in the name of
)

// shop is the connection of ben's business account.
const shop = "shop-1"

// repeat is {300×text}.
var repeat = regexp.MustCompile(`\{(\d+)×([^}]*)\}`)

func expand(text string) string {
	return repeat.ReplaceAllStringFunc(text, func(m string) string {
		parts := repeat.FindStringSubmatch(m)
		return strings.Repeat(parts[2], number(parts[1]))
	})
}

// people returns the people. A person's fields may change in a scenario, so each scenario has its own list.
func people() map[string]telegramtest.User {
	return map[string]telegramtest.User{
		"ann":  {ID: ann, FirstName: "Ann", Username: "ann_a", Language: "en"},
		"ben":  {ID: ben, FirstName: "Ben", Language: "en"},
		"cy":   {ID: cy, FirstName: "Cy", Language: "de"},
		"dora": {ID: dora, FirstName: "Dora", Username: "dora", Language: "en"},
	}
}

// stage sets up people and chats.
func (s *scene) stage() {
	options := telegramtest.Options{
		Now: s.clock.now, Local: s.front != nil || s.pair != nil,
		WebhookPause: func(int) time.Duration { return 20 * time.Millisecond },
	}
	if s.pair != nil {
		options.WebhookClient = &http.Client{Transport: s.pair, Timeout: time.Minute}
	}
	s.fake = telegramtest.New(options)
	url, err := s.fake.Start()
	if err != nil {
		s.t.Fatal(err)
	}
	s.url = url
	for _, u := range people() {
		if s.language != "" {
			u.Language = s.language
		}
		s.fake.AddUser(u)
		s.fake.AddPrivate(u.ID)
	}
	s.fake.AddGroup(telegramtest.Group{ID: team, Title: "Team", Members: []int64{ann, ben, cy}, Admins: []int64{ann}})
	s.fake.AddGroup(telegramtest.Group{
		ID:      foreign,
		Title:   "Foreign",
		Members: []int64{ann, dora},
		Admins:  []int64{dora},
		NoBot:   true,
	})
	s.fake.AddGroup(telegramtest.Group{
		ID:      board,
		Title:   "Board",
		Members: []int64{ann, ben, cy},
		Admins:  []int64{ann, s.fake.BotID()},
	})
	s.fake.AddGroup(telegramtest.Group{ID: out, Title: "Away", Members: []int64{ann, ben, cy, dora}, NoBot: true})
	s.fake.AddGroup(telegramtest.Group{
		ID:      forum,
		Title:   "Forum",
		Forum:   true,
		Topics:  []telegramtest.Topic{{ID: 7, Name: "Deploys"}},
		Members: []int64{ann, ben, cy},
		Admins:  []int64{ann},
	})
	s.chats = map[string]int64{
		"ann":     ann,
		"ben":     ben,
		"cy":      cy,
		"dora":    dora,
		"team":    team,
		"forum":   forum,
		"foreign": foreign,
		"away":    out,
		"board":   board,
	}
	s.press, s.first = map[string]string{}, map[int64]int64{}
}
