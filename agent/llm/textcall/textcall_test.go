package textcall_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/textcall"
)

// offered are the tools of all tests.
func offered() []llm.Tool {
	return []llm.Tool{
		{Name: "list_directory", Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"},"depth":{"type":"integer"},"all":{"type":["boolean","null"]},"only":{"type":"array","items":{"type":"string"}}}}`)},
		{Name: "bash", Schema: json.RawMessage(`{"type":"object","properties":{"command":{"type":"string"}}}`)},
		{Name: "github:create_issue", Schema: json.RawMessage(`{"type":"object","properties":{"title":{"type":"string"},"number":{"anyOf":[{"type":"number"},{"type":"null"}]}}}`)},
	}
}

// answer is what was read of one answer, and what a person saw of it.
type answer struct {
	Text, Thoughts string
	Calls          []string
	Unmade         bool
	voided         int
}

// readPieces reads an answer in pieces.
func readPieces(t *testing.T, pieces []string, cut, opened bool) answer {
	t.Helper()
	var a answer
	shown, thought := "", ""
	o := &textcall.Options{
		Tools: offered(), Opened: opened,
		Decode:  func(name string) string { return strings.Replace(name, "__", ":", 1) },
		Text:    func(text string) { shown += text },
		Thought: func(text string) { thought += text },
		Void:    func() { shown = ""; a.voided++ },
	}
	r := textcall.New(o)
	for _, piece := range pieces {
		r.Write(piece)
	}
	res := r.Finish(cut)
	if res.Unmade && !strings.HasPrefix(res.Text, shown) || !res.Unmade && res.Text != shown {
		t.Errorf("pieces %q: a person saw %q of %q", pieces, shown, res.Text)
	}
	if thought != res.Thoughts {
		t.Errorf("pieces %q: thoughts %q arrived as %q", pieces, res.Thoughts, thought)
	}
	a.Text, a.Thoughts, a.Unmade = res.Text, res.Thoughts, res.Unmade
	for _, c := range res.Calls {
		a.Calls = append(a.Calls, c.Name+" "+string(c.Args))
	}
	return a
}

// everyCut reads a text whole, byte by byte, and cut in two at every byte, and compares.
func everyCut(t *testing.T, text string, cut, opened bool) answer {
	t.Helper()
	want := readPieces(t, []string{text}, cut, opened)
	compare := func(pieces []string) {
		got := readPieces(t, pieces, cut, opened)
		got.voided = want.voided // more of it may have been shown
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(answer{})); diff != "" {
			t.Errorf("cut into %q (-whole +cut):\n%s", pieces, diff)
		}
	}
	single := make([]string, len(text))
	for i := range len(text) {
		single[i] = text[i : i+1]
	}
	compare(single)
	for i := 1; i < len(text) && i < 600; i++ {
		compare([]string{text[:i], text[i:]})
	}
	return want
}

const lsDot = `list_directory {"path":"."}`

// samples are answers as models write them.
var samples = []struct {
	name, in string
	text     string
	thoughts string
	calls    []string
	unmade   bool
	voided   bool
	cut      bool
	opened   bool
}{
	{name: "plain", in: "Hello, a < b and [x](y) and 2 <3 {x} `y`.", text: "Hello, a < b and [x](y) and 2 <3 {x} `y`."},
	{name: "blank", in: "  \n", text: "  \n"},
	{name: "json that is no call", in: "{\"name\": \"Ann\", \"age\": 3}", text: "{\"name\": \"Ann\", \"age\": 3}"},
	{name: "json of another key", in: "{\"a\": 1}", text: "{\"a\": 1}"},
	{name: "operators", in: "f <| g |> h, a <|> b, <||>", text: "f <| g |> h, a <|> b, <||>"},

	{name: "thought", in: "<think>\nhm\n</think>\n\nHi", text: "Hi", thoughts: "\nhm\n"},
	{name: "thought, other words", in: "<Thinking>a</thinking><reasoning>b</reasoning><thought>c</thought>Hi", text: "Hi", thoughts: "abc"},
	{name: "thought, further words", in: "<analysis>a</analysis><unused94>thought\nb<unused95><|thinking|>c<|/thinking|>Hi", text: "Hi", thoughts: "a\nbc"},
	{name: "thoughts, several", in: "<think>a</think>one <think>b</think>two", text: "one two", thoughts: "ab"},
	{name: "thought, nested", in: "<think>a<think>b</think>c</think>Hi", text: "Hi", thoughts: "a<think>bc"},
	{name: "thought that speaks of the tag", in: "<think>the <think> tag</think>Hi", text: "Hi", thoughts: "the <think> tag"},
	{name: "thought without end", in: "<think>a b", thoughts: "a b"},
	{name: "thought without beginning", in: "so\nhm</think>\nHi", text: "Hi", thoughts: "so\nhm", voided: true},
	{name: "thought without beginning, known", in: "so `x\nhm</think>\nHi", text: "Hi", thoughts: "so `x\nhm", opened: true},
	{name: "thought without beginning, known, cut", in: "so\nhm", thoughts: "so\nhm", opened: true, cut: true},
	{name: "no thought, though it was expected", in: "Hi <b>", text: "Hi <b>", opened: true},
	{name: "thought opened, though it was expected to be", in: "\n<think>a</think>Hi", text: "Hi", thoughts: "a", opened: true},
	{name: "thought within a line", in: "Well <think>a</think>Hi", text: "Well Hi", thoughts: "a"},
	{name: "text about the tag", in: "The <think> tag is nice.", text: "The <think> tag is nice."},
	{name: "tag in inline code", in: "Use `<think>` and `</think>`, then `` `</think>` ``.", text: "Use `<think>` and `</think>`, then `` `</think>` ``."},
	{name: "tag in a fence", in: "See:\n```xml\n<think>a</think>\n</think>\n```\nBye", text: "See:\n```xml\n<think>a</think>\n</think>\n```\nBye"},
	{name: "tag in a fence of a list", in: "1. See:\n   ~~~~\n   <think>a\n   ~~~\n   <|im_end|>\n   ~~~~\nBye<|im_end|>", text: "1. See:\n   ~~~~\n   <think>a\n   ~~~\n   <|im_end|>\n   ~~~~\nBye"},
	{name: "lone backtick", in: "a ` b <think>c</think>d", text: "a ` b d", thoughts: "c"},
	{name: "end twice", in: "<think>a</think>Hi</think>", text: "Hi", thoughts: "a"},
	{name: "end twice, blanks around", in: " <think></think></think> 0", text: "0"},
	{name: "magistral", in: "[THINK]a[/THINK]Hi", text: "Hi", thoughts: "a"},
	{name: "gemma's thought", in: "<|channel>thought\na<channel|>Hi<turn|>", text: "Hi", thoughts: "\na"},
	{name: "cohere's thought", in: "<|START_THINKING|>a<|END_THINKING|>Hi", text: "Hi", thoughts: "a"},

	{name: "kimi-vl's thought", in: "◁think▷a ◁ b◁/think▷Hi ◁x▷ — “q” ◁", text: "Hi ◁x▷ — “q” ◁", thoughts: "a ◁ b"},
	{name: "kimi-vl's thought without beginning", in: "so\nhm◁/think▷Hi", text: "Hi", thoughts: "so\nhm", voided: true},
	{name: "kimi-vl's thought without beginning, known", in: "so\nhm◁/think▷Hi", text: "Hi", thoughts: "so\nhm", opened: true},
	{name: "blanks in the tag", in: "<think >a</think >Hi", text: "Hi", thoughts: "a"},
	{name: "blanks before the name", in: "< think>a< / think>Hi", text: "Hi", thoughts: "a"},
	{name: "capitals", in: "<THINK>a</Think>Hi", text: "Hi", thoughts: "a"},
	{name: "blanks in a lone closing tag", in: "hm</ think >Hi", text: "Hi", thoughts: "hm", voided: true},
	{name: "capitals in a lone closing tag", in: "hm</THINK>Hi", text: "Hi", thoughts: "hm", voided: true},
	{name: "attributes", in: "<thinking type=\"x\" n=1>a</thinking>Hi", text: "Hi", thoughts: "a"},
	{name: "attributes within a line", in: "Well <think id='1' >a</think>Hi", text: "Well Hi", thoughts: "a"},
	{name: "words are no attributes", in: "<reason why it failed> is a name", text: "<reason why it failed> is a name"},
	{name: "empty element", in: "<think/>Hi <think />you", text: "Hi you"},
	{name: "namespace", in: "<seed:think>a</seed:think><mm:think>b</mm:think><any-1:Thinking>c</any-1:Thinking>Hi", text: "Hi", thoughts: "abc"},
	{name: "namespace of a lone closing tag", in: "hm</seed:think>Hi", text: "Hi", thoughts: "hm", voided: true},
	{name: "namespace of a lone closing tag, known", in: "hm</seed:think>Hi", text: "Hi", thoughts: "hm", opened: true},
	{name: "another element of a namespace", in: "<xs:element name=\"think\"> and <a:b>", text: "<xs:element name=\"think\"> and <a:b>"},
	{name: "magistral, capitals", in: "[think]a[/Think]Hi", text: "Hi", thoughts: "a"},
	{name: "magistral, lone closing tag", in: "hm[/THINK]Hi", text: "Hi", thoughts: "hm", voided: true},
	{name: "reasoning, lone closing tag", in: "hm</reasoning>Hi", text: "Hi", thoughts: "hm", voided: true},
	{name: "monologue", in: "<inner_monologue>a</inner_monologue>Hi", text: "Hi", thoughts: "a"},
	{name: "monologue, lone closing tag", in: "hm</inner_monologue>Hi", text: "Hi", thoughts: "hm", voided: true},
	{name: "variants in code", in: "`◁think▷`, `<think >`\n```\n<thinking type=\"x\">\n</seed:think>\n```\n", text: "`◁think▷`, `<think >`\n```\n<thinking type=\"x\">\n</seed:think>\n```\n"},

	{name: "harmony", in: "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>final<|message|>Hi<|return|>", text: "Hi", thoughts: "a"},
	{name: "harmony without an end", in: "<|channel|>analysis<|message|>a<|start|>assistant<|channel|>final<|message|>Hi", text: "Hi", thoughts: "a"},
	{name: "harmony, preamble", in: "<|start|>assistant<|channel|>commentary<|message|>I look.<|end|>", text: "I look."},
	{name: "harmony, call", in: "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>commentary to=functions.list_directory <|constrain|>json<|message|>{\"path\":\".\"}<|call|>", thoughts: "a", calls: []string{lsDot}},
	{name: "harmony, recipient with the role", in: "<|start|>assistant to=functions.list_directory<|channel|>commentary json<|message|>{\"path\":\".\"}<|call|>", calls: []string{lsDot}},
	{name: "harmony, without tokens", in: "analysisThe user greets.assistantfinalHi", text: "Hi", thoughts: "The user greets."},
	{name: "harmony, without tokens, call", in: "analysisWe look.assistantcommentary to=functions.list_directory json{\"path\":\".\"}", thoughts: "We look.", calls: []string{lsDot}},
	{name: "harmony, without tokens, no end", in: "analysisThe user", thoughts: "The user"},
	{name: "analysis is a word", in: "analysis of the data: none", text: "analysis of the data: none"},

	{name: "hermes", in: "<tool_call>\n{\"name\": \"list_directory\", \"arguments\": {\"path\": \".\"}}\n</tool_call>", calls: []string{`list_directory {"path": "."}`}},
	{name: "hermes, text and two calls", in: "I look.\n<tool_call>{\"name\":\"list_directory\",\"arguments\":{\"path\":\".\"}}</tool_call>\n<tool_call>{\"name\":\"bash\",\"arguments\":\"{\\\"command\\\":\\\"ls\\\"}\"}</tool_call>", text: "I look.\n\n", calls: []string{lsDot, `bash {"command":"ls"}`}},
	{name: "hermes, tag in the arguments", in: "<tool_call>{\"name\":\"bash\",\"arguments\":{\"command\":\"echo '</tool_call>'\"}}</tool_call>", calls: []string{`bash {"command":"echo '</tool_call>'"}`}},
	{name: "hermes without an end", in: "<tool_call>{\"name\":\"list_directory\",\"arguments\":{\"path\":\".\"}}", calls: []string{lsDot}},
	{name: "hermes, Python's quotes", in: "<tool_call>{'name': 'list_directory', 'arguments': {'path': '.', 'all': True, 'only': [],}}</tool_call>", calls: []string{`list_directory {"path":".","all":true,"only":[]}`}},
	{name: "hermes, line break in a string", in: "<tool_call>{\"name\": \"bash\", \"arguments\": {\"command\": \"a\nb\"}}</tool_call>", calls: []string{`bash {"command":"a\nb"}`}},
	{name: "hermes, cut", in: "<tool_call>{\"name\": \"bash\", \"arguments\": {\"command\": \"rm -rf /tmp/", calls: []string{"bash {\"name\": \"bash\", \"arguments\": {\"command\": \"rm -rf /tmp/"}, cut: true},
	{name: "wrapped as on the wire", in: "<tool_calls>[{\"type\":\"function\",\"function\":{\"name\":\"list_directory\",\"arguments\":\"{\\\"path\\\":\\\".\\\"}\"}}]</tool_calls>", calls: []string{lsDot}},
	{name: "name of the wire", in: "<tool_call>{\"name\":\"github__create_issue\",\"arguments\":{\"title\":\"x\"}}</tool_call>", calls: []string{`github:create_issue {"title":"x"}`}},
	{name: "qwen coder", in: "<tool_call>\n<function=list_directory>\n<parameter=path>\n.\n</parameter>\n<parameter=depth>\n2\n</parameter>\n</function>\n</tool_call>", calls: []string{`list_directory {"depth":2,"path":"."}`}},
	{name: "qwen coder without an opener", in: "I look.\n\n<function=list_directory>\n<parameter=path>\n.\n</parameter>\n</function>\n</tool_call>", text: "I look.\n\n", calls: []string{lsDot}},
	{name: "qwen coder, parameter not closed", in: "<function=list_directory>\n<parameter=path>\n.\n<parameter=depth>\n2\n</function>\n</tool_call>", calls: []string{`list_directory {"depth":2,"path":"."}`}},
	{name: "qwen coder, tags in a value", in: "<function=bash>\n<parameter=command>\necho '</function>' '</parameter>'\nls\n</parameter>\n</function>", calls: []string{`bash {"command":"echo '\u003c/function\u003e' '\u003c/parameter\u003e'\nls"}`}},
	{name: "qwen coder, cut", in: "<tool_call><function=bash>\n<parameter=command>\nrm -rf /tmp/", calls: []string{"bash <function=bash>\n<parameter=command>\nrm -rf /tmp/"}, cut: true},
	{name: "orphaned closer", in: "Hi\n</tool_call>", text: "Hi\n"},
	{name: "llama's function", in: "<function=list_directory>{\"path\":\".\"}</function>", calls: []string{lsDot}},
	{name: "llama's function, no bracket", in: "<function=list_directory{\"path\":\".\"}</function>Bye", text: "Bye", calls: []string{lsDot}},
	{name: "llama's function, parentheses", in: "<function=list_directory({\"path\":\".\"})</function>", calls: []string{lsDot}},
	{name: "llama's function, name in parentheses", in: "<function(list_directory)>{\"path\":\".\"}</function>", calls: []string{lsDot}},
	{name: "glm", in: "<tool_call>list_directory\n<arg_key>path</arg_key>\n<arg_value>.</arg_value>\n<arg_key>only</arg_key>\n<arg_value>[\"a\"]</arg_value>\n</tool_call>", calls: []string{`list_directory {"only":["a"],"path":"."}`}},
	{name: "glm, no arguments", in: "<tool_call>list_directory</tool_call>", calls: []string{`list_directory {}`}},
	{name: "tags of Claude", in: "<antml:function_calls>\n<antml:invoke name=\"list_directory\">\n<antml:parameter name=\"path\">.</antml:parameter>\n</antml:invoke>\n</antml:function_calls>", calls: []string{lsDot}},
	{name: "tags of the list of tools", in: `<tools>{"name":"list_directory","arguments":{"path":"."}}</tools>`, calls: []string{lsDot}},
	{name: "code of Gemini", in: "<tool_code>\nlist_directory(path=\".\")\n</tool_code>", calls: []string{lsDot}},
	{name: "minimax", in: "<minimax:tool_call>\n<invoke name=\"list_directory\">\n<parameter name=\"path\">.</parameter>\n</invoke>\n<invoke name=\"bash\"><parameter name=\"command\">ls</parameter></invoke>\n</minimax:tool_call>", calls: []string{lsDot, `bash {"command":"ls"}`}},
	{name: "elements of name and arguments", in: "I look.\n<tool_use>\n<name>list_directory</name>\n<arguments>{\"path\":\".\"}</arguments>\n</tool_use>", text: "I look.\n", calls: []string{lsDot}},
	{name: "elements of name and parameters", in: "<tool_use><tool_name>list_directory</tool_name><parameters><path>.</path><depth>2</depth></parameters></tool_use>", calls: []string{`list_directory {"depth":2,"path":"."}`}},
	{name: "elements of parameters with their tag", in: "<tool_call><name>list_directory</name><arguments><parameter name=\"path\">.</parameter></arguments></tool_call>", calls: []string{lsDot}},
	{name: "elements without arguments around them", in: "<tool_use><name>list_directory</name>\n<path>.</path>\n</tool_use>", calls: []string{lsDot}},
	{name: "elements, closing tag in a string", in: "<tool_use><name>bash</name><arguments>{\"command\":\"</arguments></tool_use>\"}</arguments></tool_use>ok", text: "ok", calls: []string{`bash {"command":"</arguments></tool_use>"}`}},
	{name: "elements, two", in: "<tool_use><name>list_directory</name><input>{\"path\":\".\"}</input></tool_use>\n<tool_use><name>bash</name><input>{\"command\":\"ls\"}</input></tool_use>", calls: []string{lsDot, `bash {"command":"ls"}`}},
	{name: "elements, cut", in: "<tool_use><name>bash</name><arguments>{\"command\":\"rm -rf /tmp/", calls: []string{"bash bash{\"command\":\"rm -rf /tmp/"}, cut: true},
	{name: "elements of no tool", in: "<tool_use><name>foo</name><arguments>{}</arguments></tool_use>", text: "<tool_use><name>foo</name><arguments>{}</arguments></tool_use>", unmade: true},
	{name: "tool use as an object", in: "<tool_use>{\"name\":\"list_directory\",\"input\":{\"path\":\".\"}}</tool_use>", calls: []string{lsDot}},
	{name: "element tool", in: "<tool>\n<name>list_directory</name>\n<parameters>{\"path\":\".\"}</parameters>\n</tool>", calls: []string{lsDot}},
	{name: "element tool with its name", in: "<tool name=\"list_directory\">{\"path\":\".\"}</tool>", calls: []string{lsDot}},
	{name: "element tool of something else", in: "<tool>hammer</tool>\n<tool><name>saw</name></tool>", text: "<tool>hammer</tool>\n<tool><name>saw</name></tool>"},
	{name: "container with the name", in: "<tool_call name=\"list_directory\">{\"path\":\".\"}</tool_call>", calls: []string{lsDot}},
	{name: "container within a container", in: "<tool_calls>\n<tool_call>{\"name\":\"list_directory\",\"arguments\":{\"path\":\".\"}}</tool_call>\n<tool_call>{\"name\":\"bash\",\"arguments\":{\"command\":\"ls\"}}</tool_call>\n</tool_calls>Bye", text: "Bye", calls: []string{lsDot, `bash {"command":"ls"}`}},
	{name: "container within a container, commas", in: "<tool_calls><tool_call>{\"name\":\"list_directory\",\"arguments\":{\"path\":\".\"}}</tool_call>,\n<tool_call>{\"name\":\"bash\",\"arguments\":{\"command\":\"ls\"}}</tool_call></tool_calls>Bye", text: "Bye", calls: []string{lsDot, `bash {"command":"ls"}`}},
	{name: "element tool within a line", in: "Write <tool name=\"bash\">{\"command\":\"ls\"}</tool> so.", text: "Write <tool name=\"bash\">{\"command\":\"ls\"}</tool> so."},
	{name: "hunyuan", in: "I look.\n<tool_calls><tool_call>list_directory\n```json\n{\"path\":\".\"}\n```</tool_call></tool_calls>", text: "I look.\n", calls: []string{lsDot}},
	{name: "hunyuan, lines", in: "<tool_calls>\n<tool_call>list_directory\n```json\n{\"path\":\".\"}\n```\n</tool_call>\n<tool_call>bash\n```json\n{\"command\":\"ls\"}\n```\n</tool_call>\n</tool_calls>", calls: []string{lsDot, `bash {"command":"ls"}`}},
	{name: "hunyuan, no container", in: "<tool_call>list_directory\n```json\n{\"path\":\".\"}\n```\n</tool_call>", calls: []string{lsDot}},
	{name: "block of code in a container", in: "<tool_call>\n```json\n{\"name\":\"list_directory\",\"arguments\":{\"path\":\".\"}}\n```\n</tool_call>", calls: []string{lsDot}},
	{name: "step", in: "<step:toolcall>{\"name\":\"list_directory\",\"arguments\":{\"path\":\".\"}}</step:toolcall>", calls: []string{lsDot}},
	{name: "any namespace", in: "<any-2:tool_call>{\"name\":\"list_directory\",\"arguments\":{\"path\":\".\"}}</any-2:tool_call><a:function_call>{\"name\":\"bash\",\"arguments\":{\"command\":\"ls\"}}</a:function_call>", calls: []string{lsDot, `bash {"command":"ls"}`}},
	{name: "container in a fence", in: "```xml\n<tool_use><name>bash</name><arguments>{}</arguments></tool_use>\n<step:toolcall>{}</step:toolcall>\n```\n", text: "```xml\n<tool_use><name>bash</name><arguments>{}</arguments></tool_use>\n<step:toolcall>{}</step:toolcall>\n```\n"},
	{name: "text about the containers", in: "The <tool_use> element has a <name>, the <step:toolcall> none.", text: "The <tool_use> element has a <name>, the <step:toolcall> none."},
	{name: "element of a tool", in: "I look.\n<list_directory>\n<path>.</path>\n</list_directory>\nBye", text: "I look.\n\nBye", calls: []string{lsDot}},
	{name: "element of a tool, types", in: "<list_directory><path>.</path><depth>2</depth><only>[\"a\"]</only></list_directory>", calls: []string{`list_directory {"depth":2,"only":["a"],"path":"."}`}},
	{name: "element of a tool, tags in a value", in: "<bash><command>\necho '</command>' '</bash>' <b>\n</command></bash>", calls: []string{`bash {"command":"echo '\u003c/command\u003e' '\u003c/bash\u003e' \u003cb\u003e"}`}},
	{name: "element of a tool, name of the wire", in: "<github__create_issue><title>x</title></github__create_issue>", calls: []string{`github:create_issue {"title":"x"}`}},
	{name: "element of a tool, an object", in: "<list_directory>{\"path\":\".\"}</list_directory>", calls: []string{lsDot}},
	{name: "element of a tool, empty", in: "<list_directory></list_directory><list_directory />", calls: []string{"list_directory {}", "list_directory {}"}},
	{name: "element of a tool, cut", in: "<bash><command>rm -rf /tmp/", calls: []string{"bash <bash><command>rm -rf /tmp/"}, cut: true},
	{name: "element of a tool, not closed", in: "<bash><command>ls</command>", calls: []string{`bash {"command":"ls"}`}},
	{name: "element that only has the name", in: "<bash>ls</bash>\n<bash><b>x</b></bash>\n<bash></bash>\n<bash class=\"x\"><command>", text: "<bash>ls</bash>\n<bash><b>x</b></bash>\n<bash></bash>\n<bash class=\"x\"><command>"},
	{name: "element of no tool", in: "<ul>\n<li>a</li>\n</ul>\n<read_file><path>.</path></read_file>", text: "<ul>\n<li>a</li>\n</ul>\n<read_file><path>.</path></read_file>"},
	{name: "element within a line", in: "Write <bash><command>ls</command></bash>.", text: "Write <bash><command>ls</command></bash>."},
	{name: "element of a tool in code", in: "```\n<bash><command>ls</command></bash>\n```\n`\n<bash><command>ls</command></bash>`", text: "```\n<bash><command>ls</command></bash>\n```\n`\n<bash><command>ls</command></bash>`"},

	{name: "react", in: "Thought: I need to look.\nAction: list_directory\nAction Input: {\"path\":\".\"}\nObservation: a.txt\nThought: I know.\nFinal Answer: a.txt", thoughts: " I need to look.\n", calls: []string{lsDot}},
	{name: "react without a thought", in: "I look.\nAction: list_directory\nAction Input: {\"path\":\".\"}", text: "I look.\n", calls: []string{lsDot}},
	{name: "react, bold and numbered", in: "**Thought:** hm\n**Action 1:** `list_directory`\n**Action Input 1:** {\"path\":\".\"}\n\n**Observation 1:** x", thoughts: " hm\n", calls: []string{lsDot}},
	{name: "react, block of code", in: "Action: list_directory\nAction Input:\n```json\n{\"path\":\".\"}\n```\nObservation: x", calls: []string{lsDot}},
	{name: "react, an object", in: "Thought: hm\nAction:\n```\n{\"action\":\"list_directory\",\"action_input\":{\"path\":\".\"}}\n```", thoughts: " hm\n", calls: []string{lsDot}},
	{name: "react, plain input", in: "Action: bash\nAction Input: ls -l\nObservation: x", calls: []string{`bash {"command":"ls -l"}`}},
	{name: "react, plain input of many parameters", in: "Action: list_directory\nAction Input: home", calls: []string{"list_directory home"}},
	{name: "react, cut", in: "Action: bash\nAction Input: {\"command\":\"rm -rf /tmp/", calls: []string{"bash {\"command\":\"rm -rf /tmp/"}, cut: true},
	{name: "react, two", in: "Action: bash\nAction Input: {\"command\":\"ls\"}\nThought: and\nAction: list_directory\nAction Input: {\"path\":\".\"}", thoughts: " and\n", calls: []string{`bash {"command":"ls"}`, lsDot}},
	{name: "react, answer", in: "Thought: I know.\nIt is so.\nFinal Answer: Hi\nAction: none", text: "Hi\nAction: none", thoughts: " I know.\nIt is so.\n"},
	{name: "react, answer alone", in: "Final Answer: Hi", text: "Hi"},
	{name: "react, no tool", in: "Thought: hm\nAction: dance\nAction Input: {}\nObservation: x", text: "Thought: hm\nAction: dance\nAction Input: {}\nObservation: x"},
	{name: "labels that are text", in: "Thought: life is short.\nAction: bash\nIs a shell.\nObservation: so.\nThe Final Answer: 3", text: "Thought: life is short.\nAction: bash\nIs a shell.\nObservation: so.\nThe Final Answer: 3"},
	{name: "react in a fence", in: "```\nAction: bash\nAction Input: {\"command\":\"ls\"}\n```\nSo.", text: "```\nAction: bash\nAction Input: {\"command\":\"ls\"}\n```\nSo."},

	{name: "deepseek", in: "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>list_directory\n```json\n{\"path\":\".\"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜><｜end▁of▁sentence｜>", calls: []string{lsDot}},
	{name: "deepseek 3.1, plain bars", in: "<|tool_calls_begin|><|tool_call_begin|>list_directory<|tool_sep|>{\"path\":\".\"}<|tool_call_end|><|tool_calls_end|>", calls: []string{lsDot}},
	{name: "dsml", in: "I look.<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"list_directory\">\n<｜DSML｜parameter name=\"path\" string=\"true\">.</｜DSML｜parameter>\n<｜DSML｜parameter name=\"depth\" string=\"false\">2</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>", text: "I look.", calls: []string{`list_directory {"depth":2,"path":"."}`}},
	{name: "dsml, other name", in: "<｜DSML｜tool_calls><｜DSML｜invoke name=\"bash\"><｜DSML｜parameter name=\"command\" string=\"true\">5</｜DSML｜parameter></｜DSML｜invoke></｜DSML｜tool_calls>", calls: []string{`bash {"command":"5"}`}},
	{name: "kimi", in: "<|tool_calls_section_begin|><|tool_call_begin|>functions.list_directory:0<|tool_call_argument_begin|>{\"path\":\".\"}<|tool_call_end|><|tool_calls_section_end|>", calls: []string{lsDot}},
	{name: "kimi, within thoughts", in: "<think>look <|tool_calls_section_begin|><|tool_call_begin|>functions.list_directory:0<|tool_call_argument_begin|>{\"path\":\".\"}<|tool_call_end|><|tool_calls_section_end|>", thoughts: "look <|tool_calls_section_begin|><|tool_call_begin|>functions.list_directory:0<|tool_call_argument_begin|>{\"path\":\".\"}<|tool_call_end|><|tool_calls_section_end|>", calls: []string{lsDot}},
	{name: "within thoughts, but there is an answer", in: "<think><tool_call>{\"name\":\"bash\",\"arguments\":{}}</tool_call></think>Hi", text: "Hi", thoughts: "<tool_call>{\"name\":\"bash\",\"arguments\":{}}</tool_call>"},
	{name: "gemma", in: "<|tool_call>call:list_directory{path:<|\"|>a \"b\"<|\"|>,depth:2,only:[<|\"|>x<|\"|>]}<tool_call|>", calls: []string{`list_directory {"path":"a \"b\"","depth":2,"only":["x"]}`}},
	{name: "lm studio", in: "[TOOL_REQUEST]{\"name\":\"list_directory\",\"arguments\":{\"path\":\".\"}}[END_TOOL_REQUEST]", calls: []string{lsDot}},
	{name: "mistral", in: "[TOOL_CALLS]list_directory[ARGS]{\"path\":\".\"}[TOOL_CALLS]bash[CALL_ID]abc[ARGS]{\"command\":\"ls\"}</s>", calls: []string{lsDot, `bash {"command":"ls"}`}},
	{name: "mistral, list", in: "[TOOL_CALLS] [{\"name\":\"list_directory\",\"arguments\":{\"path\":\".\"}}]", calls: []string{lsDot}},
	{name: "granite", in: "<|tool_call|>[{\"name\":\"list_directory\",\"arguments\":{\"path\":\".\"}}]", calls: []string{lsDot}},
	{name: "cohere", in: "<|START_ACTION|>[{\"tool_call_id\":\"0\",\"tool_name\":\"list_directory\",\"parameters\":{\"path\":\".\"}}]<|END_ACTION|>", calls: []string{lsDot}},
	{name: "python", in: "[list_directory(path=\".\", depth=2), bash(command='ls')]", calls: []string{`list_directory {"path":".","depth":2}`, `bash {"command":"ls"}`}},
	{name: "python tag", in: "<|python_tag|>list_directory.call(path=\".\")<|eom_id|>", calls: []string{lsDot}},
	{name: "python of no tool", in: "[foo(x=1)]", text: "[foo(x=1)]"},
	{name: "bare", in: "{\"name\": \"list_directory\", \"parameters\": {\"path\": \".\"}}<|eot_id|>", calls: []string{`list_directory {"path": "."}`}},
	{name: "bare, after text", in: "I look.\n{\"type\":\"function\",\"name\":\"list_directory\",\"parameters\":{\"path\":\".\"}}", text: "I look.\n", calls: []string{lsDot}},
	{name: "bare, two", in: "{\"name\":\"list_directory\",\"parameters\":{\"path\":\".\"}}; {\"name\":\"bash\",\"parameters\":{\"command\":\"ls\"}}", calls: []string{lsDot, `bash {"command":"ls"}`}},
	{name: "bare, text follows", in: "{\"name\": \"list_directory\", \"parameters\": {\"path\": \".\"}}\nis how.", text: "{\"name\": \"list_directory\", \"parameters\": {\"path\": \".\"}}\nis how."},
	{name: "mistral, no mark of arguments", in: "[TOOL_CALLS]list_directory{\"path\":\".\"}", calls: []string{lsDot}},
	{name: "kimi without its section", in: "Look.<|tool_call_begin|>functions.list_directory:1<|tool_call_argument_begin|>{\"path\":\".\"}<|tool_call_end|>", text: "Look.", calls: []string{lsDot}},
	{name: "glm with an object", in: "<tool_call>list_directory\n{\"path\":\".\"}\n</tool_call>", calls: []string{lsDot}},
	{name: "old name of the container", in: "<function_call>{\"name\":\"list_directory\",\"arguments\":{\"path\":\".\"}}</function_call> ok", text: "ok", calls: []string{lsDot}},
	{name: "bare, as on the wire", in: "{\"tool_calls\":[{\"id\":\"1\",\"type\":\"function\",\"function\":{\"name\":\"list_directory\",\"arguments\":\"{\\\"path\\\":\\\".\\\"}\"}}]}", calls: []string{lsDot}},
	{name: "no name in it", in: "<tool_call>{\"list_directory\":{\"path\":\".\"}}</tool_call>", text: "<tool_call>{\"list_directory\":{\"path\":\".\"}}</tool_call>", unmade: true},
	{name: "text, thought without a beginning, call", in: "hm</think><tool_call>{\"name\":\"list_directory\",\"arguments\":{\"path\":\".\"}}</tool_call>", thoughts: "hm", calls: []string{lsDot}, voided: true},
	{name: "harmony with a final call", in: "<|start|>assistant<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>commentary to=functions.bash<|message|>{\"command\":\"ls\"}", thoughts: "a", calls: []string{`bash {"command":"ls"}`}},
	{name: "functools", in: "functools[{\"name\":\"list_directory\",\"arguments\":{\"path\":\".\"}}]", calls: []string{lsDot}},

	{name: "not offered", in: "Look:\n<tool_call>{\"name\":\"get_weather\",\"arguments\":{}}</tool_call>\nSo.", text: "Look:\n<tool_call>{\"name\":\"get_weather\",\"arguments\":{}}</tool_call>\nSo.", unmade: true},
	{name: "in a fence", in: "```\n<tool_call>{\"name\":\"bash\",\"arguments\":{}}</tool_call>\n```", text: "```\n<tool_call>{\"name\":\"bash\",\"arguments\":{}}</tool_call>\n```"},
	{name: "in a fence, bare", in: "```json\n{\"name\":\"bash\",\"arguments\":{}}\n```", text: "```json\n{\"name\":\"bash\",\"arguments\":{}}\n```"},
	{name: "in inline code", in: "Write `<tool_call>{\"name\":\"bash\",\"arguments\":{}}</tool_call>` so.", text: "Write `<tool_call>{\"name\":\"bash\",\"arguments\":{}}</tool_call>` so."},
	{name: "text about the mark", in: "A <tool_call> begins, <function=x is short.", text: "A <tool_call> begins, <function=x is short."},
	{name: "nothing in it", in: "<tool_call>\n</tool_call>", text: "<tool_call>\n</tool_call>", unmade: true},

	{name: "control tokens", in: "Hi<|im_end|><|eot_id|><|endoftext|></s>[/INST]", text: "Hi"},
	{name: "turn of the assistant", in: "<|im_start|>assistant\nHi<|im_end|>\n", text: "Hi\n"},
	{name: "llama's header", in: "<|start_header_id|>assistant<|end_header_id|>\n\nHi<|eot_id|>", text: "Hi"},
	{name: "another turn", in: "Hi<|im_end|>\n<|im_start|>user\nWhat?<|im_end|>\n<|im_start|>assistant\nBye", text: "Hi\nBye"},
	{name: "struck out", in: "<s>old</s> new</s>", text: "<s>old</s> new</s>"},
	{name: "tokens in code", in: "`<|im_end|>` and\n\n```\n</s><|eot_id|>\n```", text: "`<|im_end|>` and\n\n```\n</s><|eot_id|>\n```"},
	{name: "other scripts", in: "“Größe” — 你好 ｜ ▁ <｜ x", text: "“Größe” — 你好 ｜ ▁ <｜ x"},
}

func TestSamples(t *testing.T) {
	t.Parallel()
	for _, tt := range samples {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := everyCut(t, tt.in, tt.cut, tt.opened)
			want := answer{Text: tt.text, Thoughts: tt.thoughts, Calls: tt.calls, Unmade: tt.unmade}
			if voided := got.voided > 0; voided != tt.voided {
				t.Errorf("voided = %t, want %t", voided, tt.voided)
			}
			got.voided = 0
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(answer{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestNoFlash: of calls and thoughts that begin with a mark, a person sees nothing, whichever way the answer arrives.
func TestNoFlash(t *testing.T) {
	t.Parallel()
	for _, tt := range samples {
		if tt.voided {
			continue
		}
		shown := ""
		r := textcall.New(&textcall.Options{
			Tools: offered(), Opened: tt.opened, Text: func(text string) { shown += text }, Void: func() { t.Errorf("%s: voided", tt.name) },
			Decode: func(name string) string { return strings.Replace(name, "__", ":", 1) },
		})
		for i := range len(tt.in) {
			r.Write(tt.in[i : i+1])
			if !strings.HasPrefix(tt.text, shown) {
				t.Fatalf("%s: a person saw %q of %q", tt.name, shown, tt.text)
			}
		}
		r.Finish(tt.cut)
	}
}

func TestNoTools(t *testing.T) {
	t.Parallel()
	r := textcall.New(&textcall.Options{})
	r.Write("{\"name\": \"bash\", \"arguments\": {}}")
	if res := r.Finish(false); res.Text != "{\"name\": \"bash\", \"arguments\": {}}" || len(res.Calls) > 0 || res.Unmade {
		t.Errorf("%+v", res)
	}
}

// TestCost: a long call that arrives in small pieces is not read again for each of them.
func TestCost(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"call":    "<tool_call>{\"name\":\"bash\",\"arguments\":{\"command\":\"" + strings.Repeat("</tool_call> x `", 5_000) + "\"}}</tool_call>",
		"element": "<function=bash><parameter=command>" + strings.Repeat("</function> y ", 5_000) + "</parameter></function>",
		"thought": "a <think>" + strings.Repeat("hm < ", 10_000) + "</think>b",
		"tags":    strings.Repeat("`<think>` </s> <|x|> ", 5_000),
		"object":  "{\"name\": \"" + strings.Repeat("x", 100_000),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := textcall.New(&textcall.Options{Tools: offered()})
			for i := 0; i < len(text); i += 4 {
				r.Write(text[i:min(i+4, len(text))])
			}
			r.Finish(false)
		})
	}
}

func FuzzReader(f *testing.F) {
	for _, tt := range samples {
		f.Add(tt.in, uint16(len(tt.in)/2), tt.cut, tt.opened)
	}
	f.Fuzz(func(t *testing.T, text string, at uint16, cut, opened bool) {
		if len(text) > 2000 {
			return
		}
		want := readPieces(t, []string{text}, cut, opened)
		i := int(at) % (len(text) + 1)
		for _, pieces := range [][]string{{text[:i], text[i:]}, strings.SplitAfter(text, ">"), strings.Split(text, "")} {
			got := readPieces(t, pieces, cut, opened)
			got.voided = want.voided
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(answer{})); diff != "" {
				t.Errorf("cut into %q (-whole +cut):\n%s", pieces, diff)
			}
		}
	})
}

// BenchmarkReader measures an answer without markup in 300 pieces, and one with much of what looks like it.
func BenchmarkReader(b *testing.B) {
	for name, piece := range map[string]string{"plain": "word, and %d\n", "busy": "a < b `c` %d [d](e)\n\n"} {
		b.Run(name, func(b *testing.B) {
			var pieces []string
			for i := range 300 {
				pieces = append(pieces, fmt.Sprintf(piece, i))
			}
			o := &textcall.Options{Tools: offered(), Text: func(string) {}}
			b.ReportAllocs()
			for b.Loop() {
				r := textcall.New(o)
				for _, p := range pieces {
					r.Write(p)
				}
				if res := r.Finish(false); res.Text == "" {
					b.Fatal("no text")
				}
			}
		})
	}
}
