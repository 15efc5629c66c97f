package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
)

// Piped is a run with pipes for its standard streams, such as a server that communicates through them. The caller
// closes the streams. A read of Stdout or Stderr ends when the last process that holds the other end has ended.
type Piped struct {
	*Process

	Stdin  *os.File // to write to; closing it ends the command's input
	Stdout *os.File // to read from
	Stderr *os.File // to read from
}

// Close closes the three streams. It does not end the run: Stop does.
func (p *Piped) Close() error { return closeAll(p.Stdin, p.Stdout, p.Stderr) }

// StartPiped is Start with pipes for the three streams; spec.Stdin must be nil. It is made for long-lived processes:
// the process tree ends when the command ends, on Stop, or with the program that started it. Done and Status say when
// and why.
func StartPiped(ctx context.Context, spec Spec) (*Piped, error) {
	if spec.Stdin != nil {
		return nil, errors.New("start a command with pipes: its input is given already")
	}
	var mine, theirs [3]*os.File
	for i := range mine {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, errors.Join(fmt.Errorf("make pipe: %w", err), closeAll(mine[:]...), closeAll(theirs[:]...))
		}
		mine[i], theirs[i] = r, w
		if i == 0 {
			mine[i], theirs[i] = w, r
		}
	}
	spec.Stdin = theirs[0]
	p, err := Start(ctx, spec, theirs[1], theirs[2])
	err = errors.Join(err, closeAll(theirs[:]...))
	if err != nil {
		if p != nil {
			p.Stop()
			<-p.Done()
		}
		return nil, errors.Join(err, closeAll(mine[:]...))
	}
	return &Piped{Process: p, Stdin: mine[0], Stdout: mine[1], Stderr: mine[2]}, nil
}

// closeAll closes the files that are not nil.
func closeAll(files ...*os.File) error {
	var errs []error
	for _, f := range files {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(errs...)
}
