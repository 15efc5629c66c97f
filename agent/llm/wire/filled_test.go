package wire_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/wire"
)

// TestFilledWindow: an empty answer that ends "at its limit" is an overflow only where the window is what ended it.
func TestFilledWindow(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		window, limit int
		res           llm.Response
		want          int // window that is reported; 0 = no overflow
	}{
		"near the window":          {8192, 4096, llm.Response{Stop: llm.StopLength, Usage: llm.Usage{Input: 8190, Output: 1}}, 8191},
		"thoughts fill it":         {8192, 4096, llm.Response{Stop: llm.StopLength, Thoughts: "hm", Usage: llm.Usage{Input: 6000, Output: 2192}}, 8192},
		"smaller than known":       {131_072, 4096, llm.Response{Stop: llm.StopLength, Usage: llm.Usage{Input: 4096}}, 4096},
		"unknown window":           {0, 4096, llm.Response{Stop: llm.StopLength, Text: " \n", Usage: llm.Usage{Input: 4095, Output: 1}}, 4096},
		"unknown window, no limit": {0, 0, llm.Response{Stop: llm.StopLength, Usage: llm.Usage{Input: 4095, Output: 1}}, 0},
		"the limit of the answer":  {8192, 4096, llm.Response{Stop: llm.StopLength, Thoughts: "hm", Usage: llm.Usage{Input: 4090, Output: 4096}}, 0},
		"thoughts, far from it":    {131_072, 4096, llm.Response{Stop: llm.StopLength, Thoughts: "hm", Usage: llm.Usage{Input: 4000, Output: 2000}}, 0},
		"a small request":          {0, 4096, llm.Response{Stop: llm.StopLength, Usage: llm.Usage{Input: 40, Output: 1}}, 0},
		"no usage":                 {8192, 4096, llm.Response{Stop: llm.StopLength}, 0},
		"an answer":                {8192, 4096, llm.Response{Stop: llm.StopLength, Text: "so", Usage: llm.Usage{Input: 8190, Output: 2}}, 0},
		"a call":                   {8192, 4096, llm.Response{Stop: llm.StopLength, Uses: []llm.ToolUse{{ID: "1", Name: "x", Args: json.RawMessage("{}")}}, Usage: llm.Usage{Input: 8190, Output: 2}}, 0},
		"empty and properly ended": {8192, 4096, llm.Response{Stop: llm.StopEnd, Usage: llm.Usage{Input: 8190, Output: 1}}, 0},
		"refused":                  {8192, 4096, llm.Response{Stop: llm.StopRefusal, Usage: llm.Usage{Input: 8190, Output: 1}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := wire.FilledWindow(&llm.Request{Window: tt.window}, &tt.res, tt.limit)
			e, ok := errors.AsType[*llm.Error](err)
			if tt.want == 0 {
				if err != nil {
					t.Errorf("%v", err)
				}
				return
			}
			if !ok || e.Kind != llm.TooLong || e.Window != tt.want || e.Size != tt.res.Usage.Input {
				t.Errorf("%+v", err)
			}
		})
	}
}
