package texts

import "fmt"

// operatorBook is about the operator's page.
type operatorBook struct {
	Link    string // minutes, address
	Tunnel  string // port
	Off     string
	Private string
}

// OperatorLink answers /admin with a link that can be used once. port is that of the page if it can be reached on the
// machine of the service only, else "".
func (w Words) OperatorLink(language, link string, minutes int, port string) string {
	b := w.in(language).Operator
	text := fmt.Sprintf(b.Link, minutes, link)
	if port != "" {
		text += "\n\n" + fmt.Sprintf(b.Tunnel, port)
	}
	return text
}

// OperatorOff answers /admin where there is no page.
func (w Words) OperatorOff(language string) string { return w.in(language).Operator.Off }

// OperatorPrivate answers /admin in a group.
func (w Words) OperatorPrivate(language string) string { return w.in(language).Operator.Private }
