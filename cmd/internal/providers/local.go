package providers

import (
	"context"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/zephbot/zephbot/agent/llm/dialect"
	"github.com/zephbot/zephbot/agent/llm/openai"
	"github.com/zephbot/zephbot/agent/llm/wire"
)

// LocalServer is a server of models on this machine.
type LocalServer struct {
	Address string // host:port
	Preset  string // of what answers there; "" = it does not tell
	Models  []string
}

// LocalAddresses are where servers of models listen unless they are told otherwise.
func LocalAddresses() []string {
	presets, err := dialect.All()
	if err != nil { // the table is part of the program, and tested
		return nil
	}
	var list []string
	for _, d := range presets {
		if d.Port > 0 {
			list = append(list, net.JoinHostPort("127.0.0.1", strconv.Itoa(d.Port)))
		}
	}
	return list
}

// FindLocal looks for servers of models at addresses of this machine, all at once, for at most a second.
func FindLocal(ctx context.Context, addresses []string) []LocalServer {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	found := make([]LocalServer, len(addresses))
	var looking sync.WaitGroup
	for i, address := range addresses {
		looking.Go(func() {
			provider, err := openai.New(openai.Options{
				Name:       "local",
				BaseURL:    "http://" + address + "/v1",
				Model:      "unknown",
				HTTPClient: &http.Client{},
			})
			if err != nil {
				return
			}
			if names, err := provider.Models(ctx); err == nil && len(names) > 0 {
				found[i] = LocalServer{Address: address, Preset: presetAt(ctx, address), Models: names}
			}
		})
	}
	looking.Wait()
	return slices.DeleteFunc(found, func(m LocalServer) bool { return m.Address == "" })
}

// presetAt returns the preset of the server at an address of this machine, by what it answers; "" = nothing tells.
func presetAt(ctx context.Context, address string) string {
	presets, err := dialect.All()
	if err != nil { // the table is part of the program, and tested
		return ""
	}
	answers := map[string][]byte{} // by path; nil = none
	client := wire.NewClient(nil)
	for _, d := range presets {
		for _, sign := range d.Signs {
			answer, asked := answers[sign.Path]
			if !asked {
				// others have no such path
				answer, _ = wire.FetchAnswer(ctx, client, "http://"+address+sign.Path, http.Header{}, "")
				answers[sign.Path] = answer
			}
			if answer != nil && sign.Shows(answer) {
				return d.Name
			}
		}
	}
	return ""
}
