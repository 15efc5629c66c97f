package mcptest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
)

// raw reports whether a behaviour violates the protocol on the wire and therefore cannot use the library.
func (o Options) raw() bool {
	switch o.Behaviour {
	case HangInitialize, HangList, HangCall, Deaf, Flood, FloodLog, DieInCall, Giant, GiantEvent, GiantStream, Junk,
		Duplicates, Many, BigSchema, InvalidJSON, WrongVersion,
		Tasks, PageNeeded, Fails, SchemaBomb:
		return true
	}
	return false
}

// message is a request or a notification of the client.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Arguments struct {
			Text string `json:"text"`
		} `json:"arguments"`
		Meta struct {
			Token json.RawMessage `json:"progressToken"`
		} `json:"_meta"`
	} `json:"params"`
}

// frames talks to a client without the library.
type frames struct {
	o    Options
	mu   sync.Mutex
	w    io.Writer
	once sync.Once
	wg   sync.WaitGroup
}

func (f *frames) write(text string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.o.Behaviour == Junk {
		text = "Loading… 37 %\r\n{\"level\":\"info\",\"text\":\"a log line\"}\n{broken\n\n" + text
	}
	_, err := io.WriteString(f.w, text+"\n")
	return err
}

// serve reads until the client is gone. A flood that is still running then fails at the closed pipe.
func (f *frames) serve(in io.Reader) error {
	defer f.wg.Wait()
	r := bufio.NewReader(in)
	for {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return err
		}
		var m message
		if json.Unmarshal(line, &m) != nil {
			continue
		}
		if err := f.react(m); err != nil {
			return err
		}
	}
}

// react handles a message according to the behaviour.
func (f *frames) react(m message) error {
	switch {
	case len(m.ID) == 0:
		return nil
	case m.Method == "tools/call":
		return f.call(m)
	}
	if text, ok := f.o.reply(m); ok {
		if err := f.write(text); err != nil {
			return err
		}
	}
	if m.Method == "tools/list" {
		return f.listed()
	}
	return nil
}

// listed does what some behaviours do once they are connected.
func (f *frames) listed() error {
	switch f.o.Behaviour {
	case Deaf:
		return forever()
	case Flood, FloodLog:
		f.once.Do(func() { f.wg.Go(f.flood) })
	}
	return nil
}

// forever waits until the process is killed. It uses a timer, because the runtime would otherwise detect a deadlock and
// exit.
func forever() error {
	return until(context.Background(), func() bool { return false })
}

// reply returns the answer to a request other than a call; ok is false when there is none.
func (o Options) reply(m message) (text string, ok bool) {
	if o.Behaviour == HangInitialize {
		return "", false
	}
	switch m.Method {
	case "initialize":
		version := "2025-11-25"
		if o.Behaviour == WrongVersion {
			version = "1999-12-31"
		}
		return result(m, `{"protocolVersion":"`+version+
			`","capabilities":{"tools":{"listChanged":true},"logging":{}},"serverInfo":{"name":"mcptest `+
			`raw","version":"1"}}`), true
	case "tools/list":
		if o.Behaviour == HangList {
			return "", false
		}
		list := `{"name":"echo","description":"Says the text.","inputSchema":` + string(textObject) + `}`
		switch o.Behaviour {
		case Many:
			var b strings.Builder
			for i := range 10_000 {
				fmt.Fprintf(&b, `,{"name":"many_%05d","inputSchema":{"type":"object"}}`, i)
			}
			list += b.String()
		case BigSchema:
			list += `,{"name":"big","inputSchema":` + bigSchema(o.size()) + `}`
		case Tasks:
			list += `,{"name":"slow","inputSchema":{"type":"object"},"execution":{"taskSupport":"required"}}` +
				`,{"name":"maybe","inputSchema":{"type":"object"},"execution":{"taskSupport":"optional"}}`
		case SchemaBomb:
			list += `,{"name":"bomb","inputSchema":` + bombSchema() +
				`},{"name":"tree","inputSchema":{"type":"object"},"outputSchema":` + treeSchema + `}`
		case Duplicates:
			list += `,{"name":"echo","description":"The other one.","inputSchema":{"type":"object"}}`
		}
		return result(m, `{"tools":[`+list+`]}`), true
	case "ping", "logging/setLevel":
		return result(m, `{}`), true
	default:
		return fmt.Sprintf(
			`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"there is no method of this name"}}`, m.ID,
		), true
	}
}

func result(m message, value string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, value)
}

func textResult(m message, text string) string {
	data, err := json.Marshal(text)
	if err != nil {
		return result(m, `{"content":[]}`)
	}
	return result(m, `{"content":[{"type":"text","text":`+string(data)+`}]}`)
}

// call answers a call over standard output.
func (f *frames) call(m message) error {
	switch f.o.Behaviour {
	case HangCall:
		return nil
	case DieInCall:
		fmt.Fprintln(os.Stderr, "fatal: out of luck")
		return die()
	case InvalidJSON:
		return f.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"content":[`, m.ID))
	case Giant, GiantEvent:
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.o.giant(f.w, m)
	case GiantStream:
		for left := f.o.size(); left > 0; left -= chunkSize {
			if err := f.write(piece(m)); err != nil {
				return err
			}
		}
	}
	return f.write(f.o.answer(m))
}

// answer returns the answer to a call that works.
func (o Options) answer(m message) string {
	switch o.Behaviour {
	case PageNeeded:
		return fmt.Sprintf(
			`{"jsonrpc":"2.0","id":%s,"error":{"code":-32042,"message":"Sign in first.","data":{"elicitations":`+
				`[{"mode":"url","elicitationId":"1","url":"https://login.example/start?x=1","message":"Sign in to `+
				`Example"}]}}}`,
			m.ID,
		)
	case Fails:
		return result(m, `{"isError":true,"content":[{"type":"text","text":"the disk is full"}]}`)
	case SchemaBomb:
		return result(m, `{"content":[],"structuredContent":`+strings.Repeat(`{"x":`, 60)+`{}`+strings.Repeat(`}`, 60)+
			`}`)
	}
	return textResult(m, m.Params.Arguments.Text)
}

// bombSchema returns a schema of a few kilobytes whose check takes 2^200 steps for any argument.
func bombSchema() string {
	var b strings.Builder
	b.WriteString(`{"type":"object","properties":{"text":{"$ref":"#/$defs/d0"}},"$defs":{`)
	for i := range 200 {
		fmt.Fprintf(&b, `"d%d":{"anyOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
	}
	b.WriteString(`"d200":{"type":"integer"}}}`)
	return b.String()
}

// treeSchema is small in size, but each level of a value doubles the work of checking it.
const treeSchema = `{"type":"object","$defs":{"n":{"anyOf":[{"properties":{"x":{"$ref":"#/$defs/n"}},"required":["y"]},{"properties":{"x":{"$ref":"#/$defs/n"}},"required":["z"]}]}},"$ref":"#/$defs/n"}`

// die kills this process, as a crash would.
func die() error {
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		return err
	}
	if err := self.Kill(); err != nil {
		return err
	}
	return forever()
}

const chunkSize = 64 << 10

// piece returns one notification of GiantStream.
func piece(m message) string {
	token := string(m.Params.Meta.Token)
	if token == "" {
		token = `"none"`
	}
	return `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":` + token +
		`,"progress":1,"message":"` + strings.Repeat("p", chunkSize) + `"}}`
}

// giant writes an answer of the requested size without holding it in memory.
func (o Options) giant(w io.Writer, m message) error {
	if _, err := fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"`,
		m.ID); err != nil {
		return err
	}
	chunk := bytesOf('x', chunkSize)
	for left := o.size(); left > 0; left -= chunkSize {
		if _, err := w.Write(chunk); err != nil {
			return err
		}
	}
	_, err := io.WriteString(w, `"}]}}`+"\n")
	return err
}

// noise returns the content of the floods.
func (o Options) noise() string {
	if o.Behaviour == FloodLog {
		return `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","logger":"flood","data":"` +
			strings.Repeat("l", 500) + `"}}`
	}
	return `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}` + "\n" +
		`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"nobody","progress":1,"message":"working"}}`
}

func (f *frames) flood() {
	text := strings.Repeat(f.o.noise()+"\n", 100)
	for {
		if f.write(strings.TrimSuffix(text, "\n")) != nil {
			return
		}
	}
}

// rawHTTP handles one request over HTTP.
func (o Options) rawHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	var m message
	if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	switch {
	case len(m.ID) == 0:
		w.WriteHeader(http.StatusAccepted)
	case m.Method == "tools/call":
		o.callHTTP(w, r, m)
	default:
		text, ok := o.reply(m)
		if !ok {
			<-r.Context().Done()
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, text)
	}
}

// callHTTP answers a call over HTTP. Write errors are ignored.
func (o Options) callHTTP(w http.ResponseWriter, r *http.Request, m message) {
	stream := func() { w.Header().Set("Content-Type", "text/event-stream") }
	w.Header().Set("Content-Type", "application/json")
	switch o.Behaviour {
	case HangCall, Deaf:
		<-r.Context().Done()
	case DieInCall:
		if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
			_ = conn.Close()
		}
	case InvalidJSON:
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"content":[`, m.ID)
	case Giant:
		_ = o.giant(w, m)
	case GiantEvent:
		stream()
		_, _ = io.WriteString(w, "data: ")
		_ = o.giant(w, m)
		_, _ = io.WriteString(w, "\n")
	case GiantStream:
		stream()
		for left := o.size(); left > 0; left -= chunkSize {
			if _, err := fmt.Fprintf(w, "data: %s\n\n", piece(m)); err != nil {
				return
			}
		}
		_, _ = fmt.Fprintf(w, "data: %s\n\n", o.answer(m))
	case Flood, FloodLog:
		stream()
		text := "data: " + strings.ReplaceAll(o.noise(), "\n", "\n\ndata: ") + "\n\n"
		for {
			if _, err := io.WriteString(w, text); err != nil {
				return
			}
		}
	default:
		_, _ = io.WriteString(w, o.answer(m))
	}
}

// bigSchema returns an object schema with enough properties to have n bytes.
func bigSchema(n int64) string {
	var b strings.Builder
	b.WriteString(`{"type":"object","properties":{`)
	for i := 0; int64(b.Len()) < n; i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `"property_%07d":{"type":"string","description":"%s"}`, i, strings.Repeat("d", 400))
	}
	b.WriteString("}}")
	return b.String()
}
