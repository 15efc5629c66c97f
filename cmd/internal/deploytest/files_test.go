package deploytest_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"

	"github.com/zephbot/zephbot/cmd/internal/deploytest"
)

const root = "../../.."

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// readStages returns the stages of the Dockerfile.
func readStages(t *testing.T) []deploytest.Stage {
	t.Helper()
	list, err := deploytest.Stages(read(t, "Dockerfile"))
	if err != nil || len(list) < 2 {
		t.Fatalf("%d stages, %v", len(list), err)
	}
	return list
}

// readImage returns what is built when no target is named.
func readImage(t *testing.T) *deploytest.Stage {
	t.Helper()
	list := readStages(t)
	return &list[len(list)-1]
}

func TestDockerfile(t *testing.T) {
	t.Parallel()
	stages, d := readStages(t), readImage(t)
	known := []string{"RUN", "WORKDIR", "COPY", "ARG", "ENV", "USER", "VOLUME", "EXPOSE", "HEALTHCHECK", "ENTRYPOINT", "CMD"}
	for _, s := range stages {
		for _, i := range s.All {
			if !slices.Contains(known, i.Name) {
				t.Errorf("instruction %s %s is not one of %v", i.Name, i.Args, known)
			}
		}
	}
	// Any release of the minor version that go.mod names builds the program, so that no toolchain has to be downloaded. What
	// is published is built with one of them.
	version := regexp.MustCompile(`(?m)^go (\d+\.\d+)\.0$`).FindStringSubmatch(read(t, "go.mod"))
	if version == nil {
		t.Fatal("go.mod has no line such as go 1.26.0")
	}
	if image := stages[0].From; !regexp.MustCompile(`golang:` + regexp.QuoteMeta(version[1]) + `\.\d+-`).MatchString(image) {
		t.Errorf("built with %q; go.mod wants Go %s", image, version[1])
	}
	if !slices.ContainsFunc(stages[0].All, func(i deploytest.Instruction) bool {
		return i.Name == "RUN" && strings.Contains(i.Args, "CGO_ENABLED=0") && strings.Contains(i.Args, ",zephbot_image ") &&
			strings.HasSuffix(i.Args, " ./cmd/zephbot")
	}) {
		t.Error("no step builds a static ./cmd/zephbot that says that it is of an image")
	}
	vars := d.Env()
	for what, got := range map[string][2]string{
		"VOLUME and ZEPH_DATA_DIR":       {d.Last("VOLUME"), vars["ZEPH_DATA_DIR"]},
		"WORKDIR and VOLUME":             {d.Last("WORKDIR"), d.Last("VOLUME")},
		"EXPOSE and ZEPH_METRICS_LISTEN": {":" + d.Last("EXPOSE"), vars["ZEPH_METRICS_LISTEN"]},
		"ENTRYPOINT":                     {d.Last("ENTRYPOINT"), `["/usr/bin/tini", "--", "/usr/local/bin/zephbot"]`},
		"CMD":                            {d.Last("CMD"), `["serve"]`},
		"HEALTHCHECK":                    {healthcheck(d), `["/usr/local/bin/zephbot", "health"]`},
	} {
		if got[0] != got[1] || got[0] == "" {
			t.Errorf("%s: %q and %q", what, got[0], got[1])
		}
	}
	if user := d.Last("USER"); !regexp.MustCompile(`^[1-9]\d{3,}:[1-9]\d{3,}$`).MatchString(user) {
		t.Errorf("USER %q; want numbers that are not root's, which Kubernetes can check", user)
	}
	load(t, "", vars)
}

// healthcheck returns the command of the health check.
func healthcheck(s *deploytest.Stage) string {
	_, command, _ := strings.Cut(s.Last("HEALTHCHECK"), " CMD ")
	return command
}

// TestDockerignore: tracked files stay in the context, or the build would call the commit changed.
func TestDockerignore(t *testing.T) {
	t.Parallel()
	ignored := read(t, ".gitignore")
	for line := range strings.Lines(read(t, ".dockerignore")) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if word := strings.TrimPrefix(line, "**/"); !strings.Contains(ignored, word) {
			t.Errorf("%s is left out of the image's context; .gitignore does not know it", line)
		}
	}
}

// fly is fly.toml, as https://fly.io/docs/reference/configuration has it, with the fields that are used here.
type fly struct {
	App           string `toml:"app"`
	PrimaryRegion string `toml:"primary_region"`
	KillSignal    string `toml:"kill_signal"`
	KillTimeout   int    `toml:"kill_timeout"`
	Build         struct {
		Dockerfile string `toml:"dockerfile"`
		Target     string `toml:"build-target"`
	} `toml:"build"`
	Deploy    struct{ Strategy string } `toml:"deploy"`
	Processes map[string]string         `toml:"processes"`
	Env       map[string]string         `toml:"env"`
	Mounts    []struct {
		Source      string   `toml:"source"`
		Destination string   `toml:"destination"`
		Processes   []string `toml:"processes"`
	} `toml:"mounts"`
	Restart []struct {
		Policy    string   `toml:"policy"`
		Processes []string `toml:"processes"`
	} `toml:"restart"`
	Checks  map[string]flyCheck `toml:"checks"`
	Metrics struct {
		Port      int      `toml:"port"`
		Path      string   `toml:"path"`
		Processes []string `toml:"processes"`
	} `toml:"metrics"`
	VM []struct {
		Size      string   `toml:"size"`
		Memory    string   `toml:"memory"`
		Processes []string `toml:"processes"`
	} `toml:"vm"`
}

type flyCheck struct {
	Type        string   `toml:"type"`
	Port        int      `toml:"port"`
	Method      string   `toml:"method"`
	Path        string   `toml:"path"`
	Interval    string   `toml:"interval"`
	Timeout     string   `toml:"timeout"`
	GracePeriod string   `toml:"grace_period"`
	Processes   []string `toml:"processes"`
}

func TestFly(t *testing.T) {
	t.Parallel()
	var f fly
	decoder := toml.NewDecoder(bytes.NewReader([]byte(read(t, "fly.toml"))))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&f); err != nil {
		t.Fatalf("%v", err)
	}
	image := readImage(t)
	listen := fmt.Sprintf(":%d", f.Checks["health"].Port)
	if f.Env["ZEPH_METRICS_LISTEN"] != listen || listen != ":"+image.Last("EXPOSE") || f.Metrics.Port != f.Checks["health"].Port {
		t.Errorf("ports: checks %s, metrics %d, program %s, image %s", listen, f.Metrics.Port, f.Env["ZEPH_METRICS_LISTEN"], image.Last("EXPOSE"))
	}
	if c := f.Checks["health"]; c.Path != "/healthz" || c.Type != "http" || f.Metrics.Path != "/metrics" {
		t.Errorf("checks.health %+v, metrics %+v", c, f.Metrics)
	}
	if len(f.Mounts) != 1 || f.Mounts[0].Destination != f.Env["ZEPH_DATA_DIR"] || f.Mounts[0].Destination != image.Last("VOLUME") {
		t.Errorf("mounts %+v, data directory %q, volume of the image %q", f.Mounts, f.Env["ZEPH_DATA_DIR"], image.Last("VOLUME"))
	}
	if f.KillSignal != "SIGTERM" || f.KillTimeout < 30 {
		t.Errorf("%s after %d s; the program takes up to 25 s", f.KillSignal, f.KillTimeout)
	}
	if f.Build.Dockerfile != "Dockerfile" || !slices.ContainsFunc(readStages(t), func(s deploytest.Stage) bool { return s.Name == f.Build.Target }) || f.Processes["serve"] != "serve" || len(f.Processes) != 1 {
		t.Errorf("build %+v, processes %v", f.Build, f.Processes)
	}
	if len(f.Restart) != 1 || f.Restart[0].Policy != "always" {
		t.Errorf("restart %+v", f.Restart)
	}
	for name, processes := range map[string][]string{
		"mounts": f.Mounts[0].Processes, "restart": f.Restart[0].Processes, "checks": f.Checks["health"].Processes, "metrics": f.Metrics.Processes,
	} {
		if !slices.Equal(processes, []string{"serve"}) {
			t.Errorf("%s is for %v, want serve", name, processes)
		}
	}
	for k := range f.Env {
		if regexp.MustCompile(`TOKEN|KEY|SECRET|PASSWORD`).MatchString(k) {
			t.Errorf("env.%s: secrets are set with `fly secrets`, not in a file", k)
		}
	}
	load(t, "", f.Env)
}

// TestFlyExampleLoads: the variables that the head of fly.toml tells people to set are ones that the program reads.
func TestFlyExampleLoads(t *testing.T) {
	t.Parallel()
	vars := map[string]string{}
	for _, m := range regexp.MustCompile(`(ZEPH_[A-Z_]+)=(\S+)`).FindAllStringSubmatch(read(t, "fly.toml"), -1) {
		vars[m[1]] = strings.Trim(strings.Replace(m[2], "…", "x", 1), "'")
	}
	if len(vars) < 3 {
		t.Fatalf("the head of fly.toml names %d variables", len(vars))
	}
	vars["ZEPH_LLM_PROVIDERS_MAIN_TYPE"] = "openai"
	c := load(t, "", vars)
	if len(c.LLM.Providers) != 1 || len(c.Telegram.AllowedUsers) != 0 {
		t.Errorf("providers %d, allowed users %v", len(c.LLM.Providers), c.Telegram.AllowedUsers)
	}
}
