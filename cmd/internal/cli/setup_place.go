package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/zephbot/zephbot/cmd/internal/check"
	"github.com/zephbot/zephbot/cmd/internal/upkeep"
)

// askWorkDir asks where the bot works.
func (s *setup) askWorkDir(context.Context) error {
	if s.f.workDir != "" {
		dir := s.c.absolute(s.f.workDir)
		if text := s.unsuitable(dir); text != "" {
			return usageError{fmt.Errorf("--workdir: %s", text)}
		}
		s.out.WorkDir = dir
		return nil
	}
	if !s.in.person {
		return nil
	}
	s.in.explain("\n4 of 5: where it works\nEach conversation has a directory of its own, which is empty at first: in a " +
		"group, each person has one. Or all work in one directory of yours, such as a project.")
	for {
		answer, err := s.in.line("Enter for directories of their own, or the path of yours: ")
		if err != nil || answer == "" {
			return err
		}
		dir := s.c.absolute(answer)
		good, err := s.suitable(dir)
		if err != nil {
			return err
		}
		if good {
			s.out.WorkDir = dir
			return nil
		}
	}
}

// suitable checks a directory, makes it if it does not exist, and asks about one that holds too much.
func (s *setup) suitable(dir string) (bool, error) {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) && unfit(dir) == "" {
		if yes, err := s.in.yes(dir+" does not exist. Make it?", true); err != nil || !yes {
			return false, err
		}
		if err := os.MkdirAll(dir, 0o700); err != nil {
			s.in.say("It cannot be made: %v.", err)
			return false, nil
		}
	}
	if text := s.unsuitable(dir); text != "" {
		s.in.sentence(text, "")
		return false, nil
	}
	if dir == "/" || dir == s.c.env.Home {
		return s.in.yes("The bot could then read and change everything in "+dir+". Is that what you want?", false)
	}
	return true, nil
}

// unsuitable returns why the bot cannot work in a directory; "" = it can.
func (s *setup) unsuitable(dir string) string {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return dir + " does not exist; make it, or name another directory"
	case err != nil:
		return dir + " cannot be used: " + err.Error()
	case !info.IsDir():
		return dir + " is a file; name a directory"
	}
	own := s.env.Path(s.env.DataDir)
	if dir == own || strings.HasPrefix(dir, own+string(filepath.Separator)) {
		return dir + " is in data_dir, which tools cannot reach; name another directory"
	}
	return check.NotWritable(dir)
}

// explainSandbox says whether this machine has the sandbox, and returns what is asked about it.
func (s *setup) explainSandbox(lacks string, full bool) (question string) {
	const more = "\nThe bot may be moved to a machine without it. Should it refuse to run commands there? If you do not " +
		"know, press Enter."
	switch {
	case full && lacks == "":
		s.in.explain("This machine has all that it takes, so commands of the bot run inside it.")
		return more
	case full:
		s.in.explain("Commands of the bot run inside it. Not all of it works on this machine: %s.", lacks)
		return more
	case lacks != "":
		s.in.explain("This machine does not have it: %s.", lacks)
	default:
		s.in.explain("This machine does not have it.")
	}
	return "\nOnly your rules and approvals would limit commands of the bot. Should it refuse all commands as long as " +
		"that is so?"
}

// askSandbox says what the machine offers, and asks whether commands may run without it.
func (s *setup) askSandbox(ctx context.Context) error {
	modes := []string{"auto", "required", "off"}
	if s.f.sandbox != "" {
		if !slices.Contains(modes, s.f.sandbox) {
			return usageError{fmt.Errorf("--sandbox %q: there are %s", s.f.sandbox, strings.Join(modes, ", "))}
		}
		s.out.Sandbox = s.f.sandbox
		return nil
	}
	if !s.in.person {
		return nil
	}
	s.in.explain("\n5 of 5: the sandbox\nIt keeps commands of the bot away from your other files. The network is open to " +
		"them unless you set tools.shell.allow_network = false.")
	question := s.explainSandbox(upkeep.Sandbox(ctx))
	refuse, err := s.in.yes(question, false)
	if refuse {
		s.out.Sandbox = "required"
	}
	return err
}
