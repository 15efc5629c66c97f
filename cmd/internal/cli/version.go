package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zephbot/zephbot/persistence"
)

// release is what `version --json` prints.
type release struct {
	Version string `json:"version"` // the tag, a pseudo-version, or devel
	Commit  string `json:"commit,omitempty"`
	Date    string `json:"date,omitempty"` // of the commit, RFC 3339
	Dirty   bool   `json:"dirty"`          // files differed from the commit
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
	Origin  string `json:"origin"` // a release, an image, go install, a clone, or source without a repository
	Schema  int64  `json:"schema"` // of an SQLite database
}

func (c *command) versionCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "version", Short: "Print version, commit, Go version, and how the program was built", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if !asJSON {
				return c.printVersion()
			}
			r := built()
			var err error
			if r.Schema, err = persistence.KnownSchema(); err != nil {
				return err
			}
			return c.printJSON(r)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// printVersion prints the version as a line.
func (c *command) printVersion() error {
	_, err := fmt.Fprintln(c.env.Out, versionLine())
	return err
}

// versionLine returns what version and --version print.
func versionLine() string {
	return fmt.Sprintf("zephbot %s %s %s/%s (%s)", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH, built().Origin)
}

// origins are the ways in which the program is published, by the build tag that the recipe of each sets. No file depends
// on them.
var origins = map[string]string{"zephbot_release": "release", "zephbot_image": "image"}

// originOf says how a program was built, by what the Go command recorded in it.
func originOf(info *debug.BuildInfo) string {
	origin := "source without a repository"
	if info.Main.Sum != "" { // of a module that came from a proxy
		origin = "go install"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			origin = "clone"
		}
	}
	for _, s := range info.Settings {
		if s.Key != "-tags" {
			continue
		}
		for tag := range strings.SplitSeq(s.Value, ",") {
			if known, ok := origins[tag]; ok {
				return known
			}
		}
	}
	return origin
}

// version returns the tag and the commit in short.
func version() string {
	r := built()
	if len(r.Commit) >= 12 {
		return r.Version + " " + r.Commit[:12]
	}
	return r.Version
}

// built returns what the Go command recorded in the program: the tag of the commit, or what is known instead of it.
func built() release {
	r := release{Version: "unknown", Origin: "unknown", Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return r
	}
	r.Origin = originOf(info)
	if r.Version = info.Main.Version; r.Version == "" || r.Version == "(devel)" {
		r.Version = "devel"
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			r.Commit = s.Value
		case "vcs.time":
			r.Date = s.Value
		case "vcs.modified":
			r.Dirty = s.Value == "true"
		}
	}
	return r
}
