package acp

import (
	"bytes"
	"context"

	sdk "github.com/coder/acp-go-sdk"
)

// announceLater has the commands of a session told as soon as the editor knows the session: what is said of an unknown
// one is lost.
func (s *server) announceLater(sess *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fresh[sess.id] = sess
}

// announce is told of each message to the editor. It must not send anything itself: the library holds its lock.
func (s *server) announce(line []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, sess := range s.fresh {
		if bytes.Contains(line, []byte(id)) && !bytes.Contains(line, []byte(`"method"`)) {
			delete(s.fresh, id)
			s.busy.Go(sess.sendCommands)
		}
	}
}

// sendCommands tells the editor which commands a prompt can begin with.
func (s *session) sendCommands() {
	list := []sdk.AvailableCommand{}
	for _, c := range s.project.currentBackend().Commands {
		list = append(list, sdk.AvailableCommand{Name: c.Name, Description: c.About})
	}
	s.sendUpdate(sdk.SessionUpdate{AvailableCommandsUpdate: &sdk.SessionAvailableCommandsUpdate{AvailableCommands: list}})
}

// sendUsage tells the editor what the conversation has used, if that is known.
func (s *session) sendUsage(ctx context.Context) {
	usage := s.project.currentBackend().Usage
	if usage == nil {
		return
	}
	used, err := usage(ctx, s.sessionKey())
	if err != nil {
		s.server.opts.Log.Warn().Err(err).Msg("the editor is not told what its session has used")
		return
	}
	if used.Used == 0 || used.Size == 0 {
		return
	}
	u := &sdk.SessionUsageUpdate{Used: used.Used, Size: used.Size}
	if used.USD > 0 {
		u.Cost = &sdk.Cost{Amount: used.USD, Currency: "USD"}
	}
	s.sendUpdate(sdk.SessionUpdate{UsageUpdate: u})
}
