package acp

import (
	"context"
	"errors"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/zephbot/zephbot/tools/mcp"
	"github.com/zephbot/zephbot/tools/mcp/content"
)

// errNobody means that the editor does not show forms.
var errNobody = errors.New("the editor does not show questions of servers")

// Elicit asks the person in the editor what an MCP server wants to know, if the editor has announced that it can. The
// name of the server comes first. An error means that nobody was asked.
func (p *Project) Elicit(ctx context.Context, e mcp.Elicitation) (mcp.Answer, error) {
	s := p.sessionOf(e.Origin)
	if s == nil {
		return mcp.Answer{}, errNobody
	}
	client := s.server.editorCapabilities()
	if client.Elicitation == nil || client.Elicitation.Form == nil {
		return mcp.Answer{}, errNobody
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	defer context.AfterFunc(s.server.life, end)()
	call := s.callID(e.Call)
	resp, err := s.server.conn.UnstableCreateElicitation(ctx, sdk.UnstableCreateElicitationRequest{
		Form: &sdk.UnstableCreateElicitationForm{
			// The library has no field for the session.
			Meta:    map[string]any{"sessionId": s.id, "toolCallId": string(call)},
			Message: "The MCP server " + e.Server + " asks (" + e.Tool + "): " + e.Form.Message, Mode: "form",
			RequestedSchema: formSchema(e.Form.Fields),
		},
	})
	switch {
	case err != nil:
		return mcp.Answer{}, err
	case resp.Accept != nil:
		return mcp.Answer{Accept: true, Values: resp.Accept.Content}, nil
	case resp.Cancel != nil:
		return mcp.Answer{Cancel: true}, nil
	default:
		return mcp.Answer{}, nil
	}
}

// formSchema describes the fields of a form. A field that seems to ask for a secret says so.
func formSchema(fields []content.Field) sdk.UnstableElicitationSchema {
	out := sdk.UnstableElicitationSchema{Type: "object", Properties: map[string]any{}}
	for i := range fields {
		f := &fields[i]
		out.Properties[f.Name] = fieldSchema(f)
		if f.Required {
			out.Required = append(out.Required, f.Name)
		}
	}
	return out
}

// fieldSchema describes one field.
func fieldSchema(f *content.Field) map[string]any {
	p := map[string]any{"type": string(f.Type)}
	set := func(key string, value any, given bool) {
		if given {
			p[key] = value
		}
	}
	about := f.Description
	if f.Sensitive {
		about = "This may be a secret: the server would read it. " + about
	}
	set("title", f.Title, f.Title != "")
	set("description", about, about != "")
	set("default", f.Default, f.Default != nil)
	set("format", f.Format, f.Format != "")
	var choices []map[string]any
	for _, o := range f.Options {
		choices = append(choices, map[string]any{"const": o.Value, "title": o.Title})
	}
	switch f.Type {
	case content.Enum:
		p["type"], p["oneOf"] = "string", choices
	case content.Multi:
		p["type"], p["items"] = "array", map[string]any{"anyOf": choices}
	}
	for key, n := range map[string]*int{
		"minLength": f.MinLength,
		"maxLength": f.MaxLength,
		"minItems":  f.MinItems,
		"maxItems":  f.MaxItems,
	} {
		if n != nil {
			p[key] = *n
		}
	}
	for key, n := range map[string]*float64{"minimum": f.Minimum, "maximum": f.Maximum} {
		if n != nil {
			p[key] = *n
		}
	}
	return p
}
