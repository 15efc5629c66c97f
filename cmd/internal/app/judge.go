package app

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/zephbot/zephbot/agent/judge"
	"github.com/zephbot/zephbot/bot/facts"
	"github.com/zephbot/zephbot/cmd/internal/check"
	"github.com/zephbot/zephbot/tools"
)

const (
	verdictBucket = "judge"            // facts: verdicts by session and call
	verdictsFor   = 7 * 24 * time.Hour // longer than any turn lives
)

// adversary builds the judge stage; nil if it is disabled.
func (c *Core) adversary() (tools.Middleware, error) {
	a := c.cfg.Tools.Adversarial
	if !a.Enabled {
		return nil, nil
	}
	model, err := c.models.Helper("judge", a.Provider)
	if err != nil {
		return nil, err
	}
	o := judge.Options{
		Model:    model,
		Question: !a.BlockOnReject,
		FailOpen: a.FailOpen,
		Timeout:  time.Duration(a.TimeoutMS) * time.Millisecond,
		Exempt:   c.canonical(a.ExemptTools),
		Redact:   c.redactor.Value,
	}
	if a.PolicyFile != "" {
		f, err := os.Open(c.cfg.Path(a.PolicyFile))
		if err != nil {
			return nil, fmt.Errorf("policy_file: %w", err)
		}
		text, err := io.ReadAll(io.LimitReader(f, check.MaxJudgeFile+1))
		if err = errors.Join(err, f.Close()); err != nil {
			return nil, fmt.Errorf("policy_file: %w", err)
		}
		if len(text) > check.MaxJudgeFile {
			return nil, fmt.Errorf("policy_file %s has more than %d bytes", a.PolicyFile, check.MaxJudgeFile)
		}
		o.Policies = judge.Policies(string(text))
	}
	if c.stores != nil {
		o.Memory = facts.Bucket{Name: verdictBucket, Store: c.stores.Bot, Now: c.now, For: verdictsFor}
	}
	return judge.New(o), nil
}
