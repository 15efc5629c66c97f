package scan

// step is one concept of an order that has to come after the one before it.
type step struct {
	any concept // one of these
	gap int     // at most so many bytes behind the step before
}

// order is one way to give orders to a model, told by the concepts that come together.
type order struct {
	name, category string
	all            []concept // one of each has to be there, in any sequence, within span bytes; nil where steps are given
	span           int
	steps          []step  // in this sequence
	far            bool    // also over the end of a sentence
	not            concept // none of these within
}

// orders is the table. The examples of each are in TestOrders: texts that hit, texts that must not.
func orders() []order {
	danger := unasked | consent | steal | keyFile | secretly | obey | authority | void
	return []order{
		{name: "override_orders", category: "override", all: []concept{drop, past | yours, instruction}, span: 90, not: letter | technical},
		{name: "override_orders", category: "override", all: []concept{drop, every, instruction, reveal | send | obey | now | steal | free | prompt}, span: 120, not: letter | technical},
		{name: "override_orders", category: "override", all: []concept{drop, yours, rules_}, span: 70, not: letter | technical},
		{name: "override_orders", category: "override", all: []concept{drop, past, rules_, reveal | send | obey | free | now | steal}, span: 140, not: letter | technical},
		{name: "override_orders", category: "override", all: []concept{drop, prompt}, span: 60, not: letter},
		{name: "override_orders", category: "override", all: []concept{drop, obey, past | yours}, span: 110, not: letter | technical},
		{name: "void_orders", category: "override", all: []concept{void, instruction | rules_, past | yours | obey}, span: 110, not: letter | technical},
		{name: "void_orders", category: "override", all: []concept{void, prompt}, span: 70},
		{name: "unbound_role", category: "role", all: []concept{become | now, free}, span: 130, not: letter | technical},
		{name: "unbound_role", category: "role", all: []concept{free, off}, span: 60, not: letter | technical},
		{name: "only_this", category: "override", all: []concept{obey, now | steal | secretly | untold | authority | machine | void}, span: 150, not: letter, far: true},
		{name: "prompt_leak", category: "extraction", steps: []step{{any: reveal}, {any: prompt, gap: 60}}},
		{name: "prompt_leak", category: "extraction", all: []concept{reveal, prompt, foreign}, span: 90},
		{name: "prompt_leak", category: "extraction", all: []concept{reveal, verbatim, instruction | prompt, yours | you | past}, span: 150, far: true},
		{name: "hide_orders", category: "secrecy", steps: []step{{any: untold}, {any: user | note, gap: 40}}, not: letter},
		{name: "hide_orders", category: "secrecy", all: []concept{untold, user, foreign}, span: 60},
		{name: "hide_orders", category: "secrecy", all: []concept{untold, foremost | secretly | keyFile}, span: 170, far: true, not: letter},
		{name: "secret_deed", category: "secrecy", all: []concept{secretly, keyFile | user | dialogue | steal | machine | mail, send | put | act | reveal}, span: 120},
		{name: "secret_deed", category: "secrecy", all: []concept{softly, keyFile | dialogue | steal, send | put | act}, span: 110},
		{name: "key_files", category: "exfiltration", all: []concept{keyFile, put | send, parameter | target | address | foremost | untold}, span: 170, far: true},
		{name: "key_files", category: "exfiltration", all: []concept{become, keyFile, now | free | authority | steal | act}, span: 100, far: true},
		{name: "call_first", category: "steering", all: []concept{foremost, put | send | act | reveal | use, keyFile | secret | dialogue | parameter | address}, span: 180, far: true},
		{name: "call_first", category: "steering", all: []concept{foremost, use, tool, must | always | before}, span: 150, far: true},
		{name: "to_the_model", category: "steering", steps: []step{{any: machine}, {any: must, gap: 60}, {any: act | respond, gap: 14}}, not: letter},
		{name: "to_the_model", category: "steering", steps: []step{{any: machine}, {any: colon, gap: 50}, {any: act | respond | redirect, gap: 12}}, not: letter},
		{name: "to_the_model", category: "steering", steps: []step{{any: machine}, {any: danger | whatever | drop | void | dialogue, gap: 160}, {any: act | send | put | reveal | user | you, gap: 100}}, far: true, not: letter},
		{name: "to_the_model", category: "steering", all: []concept{machine, unasked | secretly | consent, act | send | put}, span: 180, far: true, not: letter},
		{name: "forged_consent", category: "steering", all: []concept{consent, unasked | whatever | steal | drop | obey | free | keyFile}, span: 150, far: true},
		{name: "forged_authority", category: "role", all: []concept{authority, free | obey | unasked | void | prompt | steal | secretly}, span: 170, far: true},
		{name: "other_task", category: "override", all: []concept{redirect, act | send | secret | reveal | obey | keyFile | put | steal}, span: 170, far: true, not: letter},
		{name: "carry_off", category: "exfiltration", all: []concept{dialogue | keyFile, send | put, address | target}, span: 170, far: true},
		{name: "carry_off", category: "exfiltration", all: []concept{secret, put | send, address | target, softly | secretly | untold | foremost | unasked}, span: 190, far: true},
		{name: "copies", category: "exfiltration", all: []concept{carbon, always, address}, span: 150},
		{name: "kept_order", category: "steering", all: []concept{memory, unasked | address | dialogue | target | secretly | steal}, span: 160, far: true},
		{name: "fixed_answer", category: "steering", all: []concept{respond, whatever}, span: 110, not: technical},
		{name: "unasked_deed", category: "steering", all: []concept{unasked, steal | keyFile | secretly | authority | untold | foremost}, span: 170, far: true, not: letter},
		{name: "role_object", category: "delimiter", all: []concept{roleObject, danger | free | now | drop}, span: 220, far: true},
	}
}

// event is a word of the vocabulary in a text.
type event struct {
	is         concept
	start, end int
}

// match looks for the order with the first of its words at i, and gives the event with which it ends.
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

// complete says whether one of each concept was seen.
func (o *order) complete(seen concept) bool {
	for _, c := range o.all {
		if seen&c == 0 {
			return false
		}
	}
	return true
}

// follow looks for the steps in their sequence.
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

// nearby is how far before and behind an order, in bytes, a word of another subject speaks for it.
const nearby = 40

// refused says whether one of the words that speak for another subject stands close by in the same sentence.
func (o *order) refused(events []event, first, last int) bool {
	for i := last + 1; i < len(events) && events[i].start < events[last].end+nearby && events[i].is != sentenceEnd; i++ {
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
