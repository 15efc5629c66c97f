package scan

// step is one concept of an order that must follow the previous one.
type step struct {
	any concept // one of these
	gap int     // at most this many bytes after the previous step
}

// order is one way to give instructions to a model, defined by the concepts that occur together.
type order struct {
	name, category string
	// one of each must occur, in any order, within span bytes; nil if there are steps
	all   []concept
	span  int
	steps []step  // in this order
	far   bool    // may extend beyond the end of a sentence
	not   concept // none of these may be among them
}

// together returns an order whose concepts occur in any order within span bytes: one of each.
func together(name, category string, span int, all ...concept) order {
	return order{name: name, category: category, span: span, all: all}
}

// inSequence returns an order whose concepts follow each other.
func inSequence(name, category string, steps ...step) order {
	return order{name: name, category: category, steps: steps}
}

// acrossSentences lets the concepts of an order be in different sentences.
func (o order) acrossSentences() order {
	o.far = true
	return o
}

// unless excludes texts with one of these concepts among those of the order.
func (o order) unless(not concept) order {
	o.not = not
	return o
}

// orders returns the table. TestOrders has examples for each order: texts that match, and texts that must not.
func orders() []order {
	danger := unasked | consent | steal | keyFile | secretly | obey | authority | void
	return []order{
		together("override_orders", "override", 90, drop, past|yours, instruction).unless(letter | technical),
		together("override_orders", "override", 120, drop, every, instruction,
			reveal|send|obey|now|steal|free|prompt).unless(letter | technical),
		together("override_orders", "override", 70, drop, yours, rules_).unless(letter | technical),
		together("override_orders", "override", 140, drop, past, rules_,
			reveal|send|obey|free|now|steal).unless(letter | technical),
		together("override_orders", "override", 60, drop, prompt).unless(letter),
		together("override_orders", "override", 110, drop, obey, past|yours).unless(letter | technical),
		together("void_orders", "override", 110, void, instruction|rules_, past|yours|obey).unless(letter | technical),
		together("void_orders", "override", 70, void, prompt),
		together("unbound_role", "role", 130, become|now, free).unless(letter | technical),
		together("unbound_role", "role", 60, free, off).unless(letter | technical),
		together("only_this", "override", 150, obey,
			now|steal|secretly|untold|authority|machine|void).acrossSentences().unless(letter),
		inSequence("prompt_leak", "extraction", step{any: reveal}, step{any: prompt, gap: 60}),
		together("prompt_leak", "extraction", 90, reveal, prompt, foreign),
		together("prompt_leak", "extraction", 150, reveal, verbatim, instruction|prompt,
			yours|you|past).acrossSentences(),
		inSequence("hide_orders", "secrecy", step{any: untold}, step{any: user | note, gap: 40}).unless(letter),
		together("hide_orders", "secrecy", 60, untold, user, foreign),
		together("hide_orders", "secrecy", 170, untold, foremost|secretly|keyFile).acrossSentences().unless(letter),
		together("secret_deed", "secrecy", 120, secretly, keyFile|user|dialogue|steal|machine|mail,
			send|put|act|reveal),
		together("secret_deed", "secrecy", 110, softly, keyFile|dialogue|steal, send|put|act),
		together("key_files", "exfiltration", 170, keyFile, put|send,
			parameter|target|address|foremost|untold).acrossSentences(),
		together("key_files", "exfiltration", 100, become, keyFile, now|free|authority|steal|act).acrossSentences(),
		together("call_first", "steering", 180, foremost, put|send|act|reveal|use,
			keyFile|secret|dialogue|parameter|address).acrossSentences(),
		together("call_first", "steering", 150, foremost, use, tool, must|always|before).acrossSentences(),
		inSequence("to_the_model", "steering", step{any: machine}, step{any: must, gap: 60},
			step{any: act | respond, gap: 14}).unless(letter),
		inSequence("to_the_model", "steering", step{any: machine}, step{any: colon, gap: 50},
			step{any: act | respond | redirect, gap: 12}).unless(letter),
		inSequence("to_the_model", "steering", step{any: machine},
			step{any: danger | whatever | drop | void | dialogue, gap: 160},
			step{any: act | send | put | reveal | user | you, gap: 100}).acrossSentences().unless(letter),
		together("to_the_model", "steering", 180, machine, unasked|secretly|consent,
			act|send|put).acrossSentences().unless(letter),
		together("forged_consent", "steering", 150, consent,
			unasked|whatever|steal|drop|obey|free|keyFile).acrossSentences(),
		together("forged_authority", "role", 170, authority,
			free|obey|unasked|void|prompt|steal|secretly).acrossSentences(),
		together("other_task", "override", 170, redirect,
			act|send|secret|reveal|obey|keyFile|put|steal).acrossSentences().unless(letter),
		together("carry_off", "exfiltration", 170, dialogue|keyFile, send|put, address|target).acrossSentences(),
		together("carry_off", "exfiltration", 190, secret, put|send, address|target,
			softly|secretly|untold|foremost|unasked).acrossSentences(),
		together("copies", "exfiltration", 150, carbon, always, address),
		together("kept_order", "steering", 160, memory,
			unasked|address|dialogue|target|secretly|steal).acrossSentences(),
		together("fixed_answer", "steering", 110, respond, whatever).unless(technical),
		together("unasked_deed", "steering", 170, unasked,
			steal|keyFile|secretly|authority|untold|foremost).acrossSentences().unless(letter),
		together("role_object", "delimiter", 220, roleObject, danger|free|now|drop).acrossSentences(),
	}
}

// event is a word of the vocabulary in a text.
type event struct {
	is         concept
	start, end int
}

// match tests the order with its first word at i, and returns the last event of the match.
func (o *order) match(events []event, i int) (last int, ok bool) {
	if o.steps != nil {
		return o.follow(events, i)
	}
	var seen, wanted concept
	for _, c := range o.all {
		wanted |= c
	}
	if events[i].is&wanted == 0 {
		return 0, false
	}
	for last = i; last < len(events) && events[last].end <= events[i].start+o.span; last++ {
		e := events[last].is
		if e&o.not != 0 || e == sentenceEnd && !o.far {
			return 0, false
		}
		if seen |= e; o.complete(seen) {
			return last, !o.refused(events, i, last)
		}
	}
	return 0, false
}

// complete reports whether one of each concept was seen.
func (o *order) complete(seen concept) bool {
	for _, c := range o.all {
		if seen&c == 0 {
			return false
		}
	}
	return true
}

// follow tests the steps in their order.
func (o *order) follow(events []event, i int) (last int, ok bool) {
	if events[i].is&o.steps[0].any == 0 {
		return 0, false
	}
	at, end := 1, events[i].end
	for last = i + 1; last < len(events); last++ {
		e := events[last]
		if e.start-end > o.steps[at].gap || e.is&o.not != 0 || e.is == sentenceEnd && !o.far {
			return 0, false
		}
		if e.start < end || e.is&o.steps[at].any == 0 {
			continue
		}
		if at, end = at+1, e.end; at == len(o.steps) {
			return last, !o.refused(events, i, last)
		}
	}
	return 0, false
}

// nearby is how many bytes before and after an order a word of another subject counts.
const nearby = 40

// refused reports whether one of the words that indicate another subject is nearby in the same sentence.
func (o *order) refused(events []event, first, last int) bool {
	for i := last + 1; i < len(events) && events[i].start < events[last].end+nearby &&
		events[i].is != sentenceEnd; i++ {
		if events[i].is&o.not != 0 {
			return true
		}
	}
	for i := first - 1; i >= 0 && events[i].end > events[first].start-nearby && events[i].is != sentenceEnd; i-- {
		if events[i].is&o.not != 0 {
			return true
		}
	}
	return false
}
