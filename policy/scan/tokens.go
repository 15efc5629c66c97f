package scan

import "strings"

// tokenRules find what only the program around a model writes: marks of chat templates, and turns of a conversation. In
// the output of a tool they are forged.
func tokenRules() []rule {
	return []rule{
		compile("chat_template", "delimiter",
			"<|(|_)(im_start|im~start|im~end|system|user|assistant|end|endoftext|eot~id|start~header~id|end~header~id|begin~of~text|channel|message|tool~call),"+
				"[inst],[/inst],<<sys>>,<</sys>>,<start~of~turn>,<end~of~turn>,<system-reminder>,<function~calls>,<function~results>",
			`(?:<\|`+ws+
				`*(?:im\x5fstart|im\x5fend|system|user|assistant|end|endoftext|eot\x5fid|start\x5fheader\x5fid|end\x5fheader\x5fid|begin\x5fof\x5ftext|channel|message|tool\x5fcall)`+ws+`*\|>|`+
				`\[/?inst\]|<</?sys>>|<(?:start|end)\x5fof\x5fturn>|<system-reminder>|<function\x5f(?:calls|results)>)`),
		compile("instruction_heading", "delimiter", "###_(system|instruction|response|human|assistant|user)",
			`###[ \t]+(?:system|instruction|response|human|assistant|user)s?(?:[ \t]+(?:prompt|message))?[ \t]*:[ \t]*(?:\n|\z)`),
		compile("important_tag", "delimiter", "<important>", `<important>`),
		byHand(forgedTurns, "delimiter", "human:,user:,assistant:,system:,model:,ai:", turn),
	}
}

const forgedTurns = "forged_turns"

// turn accepts the name of a speaker at the beginning of a line.
func turn(h *hunt, p *progress, start, end int) {
	if (start == 0 || h.text[start-1] == '\n') && end < len(h.text) && space(h.text[end]) && p.free(start) {
		p.add(start, end)
	}
}

// turns keeps the turns if both sides speak and there is other text before them. They become one match.
func (h *hunt) turns() {
	for i := range rules {
		p := &h.rules[i]
		if rules[i].name != forgedTurns || len(p.found) == 0 {
			continue
		}
		person, model := false, false
		for _, s := range p.found {
			switch strings.ToLower(h.text[s.start:s.end]) {
			case "human:", "user:":
				person = true
			default:
				model = true
			}
		}
		first, last := p.found[0], p.found[len(p.found)-1]
		p.found = p.found[:0]
		if person && model && strings.TrimSpace(h.text[:first.start]) != "" {
			p.add(first.start, last.end)
		}
	}
}
