package simulator

import (
	"os/exec"
	"runtime"
)

// openBrowser shows the page in the browser. The browser outlives the simulator, so it belongs to no context. A failure
// is only logged, because the address is printed anyway.
func (s *Simulator) openBrowser() {
	args := []string{"xdg-open"}
	switch runtime.GOOS {
	case "darwin":
		args = []string{"open"}
	case "windows":
		args = []string{"rundll32", "url.dll,FileProtocolHandler"}
	}
	cmd := exec.Command(args[0], append(args[1:], s.URL())...) //nolint:noctx // see above
	if err := cmd.Start(); err != nil {
		s.log.Warn().Err(err).Msg("the browser could not be opened; open the printed address yourself")
		return
	}
	if err := cmd.Process.Release(); err != nil {
		s.log.Debug().Err(err).Msg("release the browser")
	}
}
