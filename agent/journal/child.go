package journal

// outlineOf returns an entry of a sub-agent without its texts. Turns after the one that it worked for read
// only what the sub-agent's call returned, and its texts must not crowd the conversation out of the window.
// What it took stays, for receipts.
func (e *Entry) outlineOf() Entry {
	o := *e
	o.Text, o.News, o.Quote, o.Parts, o.Notices, o.Found, o.Shown, o.Extra = "", "", nil, nil, nil, nil, nil, nil
	if len(e.Uses) > 0 {
		o.Uses = make([]Use, len(e.Uses))
		for i := range e.Uses {
			u := &e.Uses[i]
			o.Uses[i] = Use{Call: u.Call, Name: u.Name, Definition: u.Definition, ReadOnly: u.ReadOnly}
		}
	}
	return o
}
