package audit

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/tools"
)

// Limits of one line, in characters.
const (
	maxArgs   = 2000
	maxText   = 1000 // reasons and URLs
	maxName   = 200  // name of a tool: it can be any text of a model
	timestamp = "2006-01-02T15:04:05.000Z"
)

// Kinds of lines other than calls.
const (
	kindEgress   = "egress"
	kindStarted  = "started"  // a call that may change something is about to run
	kindRestart  = "restart"  // accounts for an incomplete line, or for lines that could not be written
	kindContinue = "continue" // the chain continues in a new file
	kindDamage   = "damage"   // lines are missing or were changed; always reported
	kindErased   = "erased"   // accounts for lines that were pseudonymised
	kindRemoved  = "removed"  // accounts for files that retention deletes
)

// record is one line. The fields are written in this order; seal appends the hash.
type record struct {
	Timestamp  string          `json:"timestamp"`
	Kind       string          `json:"kind,omitempty"` // "" = a call
	Session    string          `json:"session,omitempty"`
	Turn       string          `json:"turn,omitempty"`
	Call       string          `json:"call,omitempty"`
	Tool       string          `json:"tool,omitempty"`
	Args       json.RawMessage `json:"args,omitempty"`
	Caller     string          `json:"caller_id,omitempty"`
	Parent     string          `json:"parent_call,omitempty"` // of a sub-agent's call: the call that began it
	Channel    string          `json:"channel,omitempty"`
	Result     *outcome        `json:"result,omitempty"`
	Category   tools.Category  `json:"error_category,omitempty"`
	Millis     *int64          `json:"duration_ms,omitempty"`
	ExitCode   *int            `json:"exit_code,omitempty"`
	Truncated  bool            `json:"truncated,omitempty"`
	Effect     string          `json:"policy_effect,omitempty"`
	Rule       string          `json:"policy_match,omitempty"`
	ReasonCode reason.Code     `json:"reason_code,omitempty"` // of the decision
	ApprovedBy string          `json:"approved_by,omitempty"`
	Cleared    string          `json:"mark_cleared,omitempty"` // flagged source whose mark ApprovedBy has cleared
	// SHA-256 of what ApprovedBy saw beforehand, and what was done
	Layer       string `json:"layer_applied,omitempty"`
	Cached      bool   `json:"cached,omitempty"`
	Attempts    int    `json:"attempts,omitempty"`
	Server      string `json:"mcp_server_id,omitempty"`
	ServerError string `json:"mcp_error_code,omitempty"`
	Judge       string `json:"adversarial_policy_decision,omitempty"`
	Injection   bool   `json:"injection_flagged,omitempty"`
	Correlation string `json:"correlation_id,omitempty"`

	// for a request (kind egress)
	URL     string `json:"url,omitempty"`
	Host    string `json:"host,omitempty"`
	Method  string `json:"method,omitempty"`
	Status  int    `json:"status,omitempty"`
	Bytes   int64  `json:"response_bytes,omitempty"`
	Blocked string `json:"block_reason,omitempty"`
	Hop     int    `json:"hop,omitempty"`

	// for a marker (kinds restart, continue and damage)
	Reason   string `json:"reason,omitempty"`
	TornHash string `json:"torn_hash,omitempty"` // SHA-256 of the bytes that do not form a line
	Lost     int    `json:"lost,omitempty"`      // lines that could not be written

	ledger
	Erased []erasure `json:"erased,omitempty"` // how the line was pseudonymised, oldest first

	Writer   string `json:"writer"`
	PrevHash string `json:"prev_hash,omitempty"`

	hash string // of the line, once it is sealed
}

// ledger is what the markers continue, erased and removed account for.
type ledger struct {
	Lines     int64  `json:"lines,omitempty"`      // continue: before this line; erased: in this part; removed: in all
	Receipt   string `json:"receipt,omitempty"`    // erased: the order to erase
	Part      int    `json:"part,omitempty"`       // erased: which of its files, from 1
	Digest    string `json:"digest,omitempty"`     // erased: SHA-256 over the hashes before and after, see pairs
	Until     string `json:"until,omitempty"`      // removed: time of the last removed line
	UntilHash string `json:"until_hash,omitempty"` // removed: its hash
}

// erasure is one rewriting of a line.
type erasure struct {
	Receipt string `json:"receipt"`
	Part    int    `json:"part"`
	From    string `json:"from"` // hash of the line before
}

// chainHash returns the hash by which the chain knows a line: the one that it had when it was written.
func (r *record) chainHash(hash string) string {
	if len(r.Erased) > 0 {
		return r.Erased[0].From
	}
	return hash
}

// outcome is the field result: {"type":…, "reason"?}.
type outcome struct {
	Type   string `json:"type"`
	Reason string `json:"reason,omitempty"`
}

// sealRecord returns the line of a record, including the newline, with its hash as the last field.
func sealRecord(r *record) (line []byte, hash string, err error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(r); err != nil {
		return nil, "", fmt.Errorf("encode audit line: %w", err)
	}
	body := bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	hash = hexDigest(body)
	line = append(bytes.Clone(body[:len(body)-1]), `,"hash":"`+hash+"\"}\n"...)
	return line, hash, nil
}

// timestampNow returns the time of a line.
func (l *Log) timestampNow() string { return l.now().UTC().Format(timestamp) }

// callRecord returns a record with the fields that all lines about a call have.
func (l *Log) callRecord(call *tools.Call) *record {
	o := call.Origin
	name := call.Def.Name
	if name == "" {
		name = call.Tool
	}
	return &record{
		Timestamp: l.timestampNow(),
		Session:   o.Session,
		Turn:      o.Turn,
		Call:      call.ID,
		Tool:      cutText(name, maxName),
		Args:      l.redactArgs(call.Args),
		Caller:    o.CallerID(),
		Parent:    o.Parent,
		Channel:   o.Channel,
		Server:    call.Def.Server,
	}
}

// resultRecord returns the record of a call that ended.
func (l *Log) resultRecord(call *tools.Call, res *tools.Result, err error) *record {
	r := l.callRecord(call)
	t := call.Trail
	if t == nil {
		t = &tools.Trail{}
	}
	millis := t.Duration.Milliseconds()
	r.Millis = &millis
	r.Category, r.ExitCode, r.Truncated = t.Category, t.ExitCode, t.Truncated
	if res != nil {
		r.Truncated = r.Truncated || res.Truncated
		if r.ExitCode == nil {
			r.ExitCode = res.ExitCode
		}
	}
	r.Effect, r.Rule, r.ApprovedBy, r.Cached, r.Attempts = t.Effect, l.boundText(t.Rule), t.ApprovedBy, t.Cached, t.Attempts
	if t.MCPServer != "" {
		r.Server = t.MCPServer
	}
	r.ReasonCode = t.Reason.Code
	r.ServerError, r.Judge = l.boundText(t.MCPErrorCode), l.boundText(t.Judge)
	r.Cleared, r.Layer = l.boundText(t.Cleared), cutText(t.Layer, maxName)
	r.Injection, r.Correlation = t.Injection, cutText(t.Correlation, maxName)
	if err != nil {
		r.Category = tools.AsError(err).Category
	}
	r.Result = l.classifyOutcome(t, res, err)
	return r
}

// classifyOutcome classifies the end of a call as one of the six types.
func (l *Log) classifyOutcome(t *tools.Trail, res *tools.Result, err error) *outcome {
	if err == nil && res != nil && res.Failure != nil {
		err = res.Failure
	}
	if t.RolledBack {
		o := &outcome{Type: "rollback"}
		if err != nil {
			o.Reason = l.boundText(tools.AsError(err).Message)
		}
		return o
	}
	if err == nil {
		switch {
		case res == nil || !res.Error:
			return &outcome{Type: "success"}
		case res.ExitCode != nil:
			return &outcome{Type: "error", Reason: fmt.Sprintf("exit code %d", *res.ExitCode)}
		default:
			return &outcome{Type: "error"}
		}
	}
	e := tools.AsError(err)
	o := &outcome{Type: "error", Reason: l.boundText(e.Message)}
	switch {
	case e.Category == tools.Cancelled:
		o.Type = "cancelled"
	case e.Denied(), e.Category == tools.PolicyBlocked, e.Category == tools.ConfirmationRequired:
		o.Type = "blocked"
	case e.Category == tools.Timeout:
		o.Type = "timeout"
	}
	return o
}

// egressRecords returns one record per request of the call.
func (l *Log) egressRecords(call *tools.Call) []*record {
	if call.Trail == nil {
		return nil
	}
	list := make([]*record, 0, len(call.Trail.Egress)+1)
	for _, e := range call.Trail.Egress {
		r := l.callRecord(call)
		millis := e.Millis
		r.Kind, r.Args, r.Millis = kindEgress, nil, &millis
		r.URL, r.Host, r.Method = l.boundText(e.URL), cutText(e.Host, maxName), cutText(e.Method, maxName)
		r.Status, r.Bytes, r.Blocked, r.Hop = e.Status, e.Bytes, e.Blocked, e.Hop
		list = append(list, r)
	}
	return list
}

// damageRecord returns the record for a place where the file is incomplete. It continues the
// chain after the last good line.
func (l *Log) damageRecord() *record {
	r := &record{Timestamp: l.timestampNow(), Kind: kindRestart, Lost: l.lost}
	switch t := l.torn; {
	case t == nil:
		r.Reason = "lines could not be written"
	case t.foreign:
		r.Reason = "what stands before this is no audit line"
	default:
		r.Reason = fmt.Sprintf("the line before was cut short after %d bytes", len(t.data))
		r.TornHash = t.bytesHash()
	}
	return r
}

// redactArgs returns the redacted arguments: the JSON object, or a string with its beginning if it is not valid or
// longer than maxArgs. They are redacted before they are cut, so that no part of a secret remains.
func (l *Log) redactArgs(raw json.RawMessage) json.RawMessage {
	if len(bytes.TrimSpace(raw)) == 0 {
		return nil
	}
	var v any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if !json.Valid(raw) || d.Decode(&v) != nil {
		return quoteJSON(cutText(l.redactText(string(raw)), maxArgs))
	}
	if l.redactor != nil {
		v = l.redactor.Value(v)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return quoteJSON("(not shown: " + err.Error() + ")")
	}
	text := string(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
	if short := cutText(text, maxArgs); short != text {
		return quoteJSON(short)
	}
	return json.RawMessage(text)
}

// boundText returns a redacted text of limited length.
func (l *Log) boundText(s string) string { return cutText(l.redactText(s), maxText) }

func (l *Log) redactText(s string) string {
	if l.redactor == nil || s == "" {
		return s
	}
	return l.redactor.String(s)
}

func quoteJSON(s string) json.RawMessage {
	raw, err := json.Marshal(s)
	if err != nil {
		return json.RawMessage(`"(not shown)"`)
	}
	return raw
}

// cutText shortens a text and adds its original length.
func cutText(s string, most int) string {
	if len(s) <= most {
		return s
	}
	n, end := 0, len(s)
	for i := range s {
		if n == most {
			end = i
		}
		n++
	}
	if n <= most {
		return s
	}
	return fmt.Sprintf("%s… (%d characters)", s[:end], n)
}
