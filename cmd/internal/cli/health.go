package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/zephbot/zephbot/bot/telegram"
)

// probePatience is how long health waits for an answer. The check of an image allows for a second more.
const probePatience = 4 * time.Second

func (c *command) healthCommand() *cobra.Command {
	var ready bool
	cmd := &cobra.Command{
		Use: "health", Short: "Ask the service on this machine whether it is well, for health checks", Args: cobra.NoArgs,
		Long: "Asks /healthz at metrics.listen, or /readyz with --ready. Exit code 1 if the answer is no, if there is none " +
			"within 4 s, or if metrics.listen is empty.\n" +
			"It is the health check of the container image, which has no curl. zephbot doctor examines more.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := c.load()
			if err != nil {
				return err
			}
			path := "/healthz"
			if ready {
				path = "/readyz"
			}
			said, err := probeEndpoint(cmd.Context(), cfg.Metrics.Listen, path)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(c.env.Out, said)
			return err
		},
	}
	cmd.Flags().BoolVar(&ready, "ready", false, "ask whether it can do its job, not only whether it lives")
	return cmd
}

// probeEndpoint asks a service of this machine, which listens at an address such as ":9090", and returns what it says.
// Another status than 200 is an error.
func probeEndpoint(ctx context.Context, listen, path string) (string, error) {
	if listen == "" {
		return "", errors.New("metrics.listen is empty, so the service answers no health check")
	}
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return "", err
	}
	// Whoever listens at every address listens at this one too.
	if ip := net.ParseIP(host); host == "" || ip.IsUnspecified() {
		host = "localhost"
	}
	ctx, cancel := context.WithTimeout(ctx, probePatience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(host, port)+path, http.NoBody)
	if err != nil {
		return "", err
	}
	// No proxy of the environment: the service is on this machine.
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return "", explainUnanswered(req.URL.Host, err)
	}
	defer func() { _ = resp.Body.Close() }() // the unread rest is dropped
	raw, err := io.ReadAll(io.LimitReader(resp.Body, 1000))
	if err != nil {
		return "", err
	}
	text := strings.TrimSpace(string(raw))
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %s", resp.Status, text)
	}
	return text, nil
}

// explainUnanswered says why a service of this machine did not answer.
func explainUnanswered(address string, err error) error {
	var late net.Error
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("nothing listens at %s: the service does not run, or it listens elsewhere (metrics.listen)", address)
	case errors.As(err, &late) && late.Timeout():
		return fmt.Errorf("%s does not answer within %s", address, probePatience)
	}
	return fmt.Errorf("%s cannot be asked: %s", address, telegram.Cause(err))
}
