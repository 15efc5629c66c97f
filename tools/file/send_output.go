package file

import (
	"context"
	"strings"

	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/tools"
)

// outputPrefix begins the reference of a long output in notices.
const outputPrefix = "overflow:"

// outputName is the name of the file that a long output becomes.
const outputName = "output.txt"

// outputReference returns the reference of a long output in its stored form.
func (in *sendArgs) outputReference() (string, error) {
	if in.Path != "" || len(in.Paths) > 0 {
		return "", argumentError("Send them with two calls.", "a call sends either files or an output")
	}
	return strings.TrimPrefix(strings.ToLower(strings.TrimSpace(in.Output)), outputPrefix), in.checkCaption()
}

func (in *sendArgs) describeOutput() (tools.Subject, error) {
	id, err := in.outputReference()
	if err != nil {
		return tools.Subject{}, err
	}
	return tools.Subject{
		Inputs: []string{outputPrefix + id},
		Show:   outputPrefix + showName(id),
		Note:   reason.Notes(reason.New(reason.OfConversation)),
	}, nil
}

// storedOutput returns a long output of the conversation. It was stored without credentials, as every output is.
func (t *toolset) storedOutput(ctx context.Context, call *tools.Call, in sendArgs) (string, error) {
	id, err := in.outputReference()
	if err != nil {
		return "", err
	}
	text, ok := "", false
	if t.Outlet.Output != nil {
		if text, ok, err = t.Outlet.Output(ctx, call.Origin.Session, id); err != nil {
			return "", systemError(err, "read", outputPrefix+id)
		}
	}
	if !ok {
		return "", failedError("Check the reference against the notice, or run the tool again that gave the output.",
			"this output is not found in this conversation, or it has expired")
	}
	if most := t.Outlet.Limit(call.Origin); most > 0 && int64(len(text)) > most {
		return "", failedError(
			"Send a part of it.", "the output has %d bytes, at most %d can be sent here", len(text), most,
		)
	}
	return text, nil
}

// sendOutput sends a long output as a text file.
func (t *toolset) sendOutput(ctx context.Context, call *tools.Call, in sendArgs) (*tools.Result, error) {
	text, err := t.storedOutput(ctx, call, in)
	if err != nil {
		return nil, err
	}
	if t.Outlet.Limit(call.Origin) == 0 {
		return &tools.Result{
			Text: "This channel shows no files. Read the output with read_overflow and say what matters.",
		}, nil
	}
	hash, size, err := t.Outlet.Keep(ctx, call.Origin.Session, strings.NewReader(text))
	if err != nil {
		return nil, systemError(err, "store", outputName)
	}
	return &tools.Result{
		Text: "The whole output (" + countNoun(size, "byte", "bytes") +
			") is on its way to the chat as " + outputName + ".",
		Files: []tools.File{{Name: outputName, MIME: "text/plain", Hash: hash, Size: size, Caption: in.Caption}},
	}, nil
}
