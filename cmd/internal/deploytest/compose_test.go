package deploytest_test

import (
	"bytes"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/zephbot/zephbot/cmd/internal/deploytest"
)

// compose is docker-compose.yml, as the Compose Specification has it, with the fields that are used here.
type compose struct {
	Name     string                    `yaml:"name"`
	Services map[string]composeService `yaml:"services"`
	Volumes  map[string]struct{}       `yaml:"volumes"`
}

type composeService struct {
	Build       string            `yaml:"build"`
	Image       string            `yaml:"image"`
	Profiles    []string          `yaml:"profiles"`
	Restart     string            `yaml:"restart"`
	EnvFile     string            `yaml:"env_file"`
	Environment map[string]string `yaml:"environment"`
	Command     []string          `yaml:"command"`
	Volumes     []string          `yaml:"volumes"`
	Ports       []string          `yaml:"ports"`
	ReadOnly    bool              `yaml:"read_only"`
	Tmpfs       []string          `yaml:"tmpfs"`
	CapDrop     []string          `yaml:"cap_drop"`
	SecurityOpt []string          `yaml:"security_opt"`
	GracePeriod string            `yaml:"stop_grace_period"`
	DependsOn   map[string]struct {
		Condition string `yaml:"condition"`
	} `yaml:"depends_on"`
	Healthcheck struct {
		Test     []string `yaml:"test"`
		Interval string   `yaml:"interval"`
		Timeout  string   `yaml:"timeout"`
		Retries  int      `yaml:"retries"`
	} `yaml:"healthcheck"`
}

func readCompose(t *testing.T) compose {
	t.Helper()
	var c compose
	decoder := yaml.NewDecoder(bytes.NewReader([]byte(read(t, "docker-compose.yml"))))
	decoder.KnownFields(true)
	if err := decoder.Decode(&c); err != nil {
		t.Fatal(err)
	}
	return c
}

var composeVariable = regexp.MustCompile(`\$\{([A-Z_]+)(:[?-][^}]*)?\}`)

// TestCompose: the services know each other, volumes exist, and the bot is as locked up as the image allows.
func TestCompose(t *testing.T) {
	t.Parallel()
	c, image := readCompose(t), readImage(t)
	example := dotEnv(t)
	for name, s := range c.Services {
		for other, on := range s.DependsOn {
			if _, ok := c.Services[other]; !ok || (on.Condition == "service_healthy") != (len(c.Services[other].Healthcheck.Test) > 0) {
				t.Errorf("%s waits until %s is %s", name, other, on.Condition)
			}
		}
		for _, v := range s.Volumes {
			if volume, _, _ := strings.Cut(v, ":"); !slices.Contains(slices.Collect(maps.Keys(c.Volumes)), volume) {
				t.Errorf("%s mounts %s, which is no volume", name, volume)
			}
		}
		for _, value := range s.Environment {
			for _, m := range composeVariable.FindAllStringSubmatch(value, -1) {
				if _, ok := example[m[1]]; !ok {
					t.Errorf("%s needs %s, which .env.example does not name", name, m[1])
				}
			}
		}
		for _, p := range s.Ports {
			if !strings.HasPrefix(p, "127.0.0.1:") {
				t.Errorf("%s listens for everyone: %s", name, p)
			}
		}
		if s.Restart == "" || (s.Build == "" && !regexp.MustCompile(`:v?\d`).MatchString(s.Image)) {
			t.Errorf("%s: restart %q, image %q; want a version", name, s.Restart, s.Image)
		}
	}
	bot := c.Services["zephbot"]
	if !slices.Equal(bot.Volumes, []string{"data:" + image.Last("VOLUME")}) || !bot.ReadOnly || !slices.Equal(bot.CapDrop, []string{"ALL"}) || !slices.Equal(bot.SecurityOpt, []string{"no-new-privileges:true"}) {
		t.Errorf("the bot: %+v", bot)
	}
	if !slices.Equal(c.Services["postgres"].Profiles, []string{"postgres"}) || len(c.Services["redis"].Profiles)+len(c.Services["qdrant"].Profiles)+len(bot.Profiles) > 0 {
		t.Error("PostgreSQL alone is for versions that take it")
	}
}

// dotEnv are the variables of .env.example.
func dotEnv(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for line := range strings.Lines(read(t, ".env.example")) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(name, "#") {
			out[name] = value
		}
	}
	return out
}

// TestComposeLoads: with the example filled in, the program takes its environment, and reaches the services by their
// names.
func TestComposeLoads(t *testing.T) {
	t.Parallel()
	c := readCompose(t)
	vars := map[string]string{}
	for name, value := range dotEnv(t) {
		if value == "" {
			value = "secret"
		}
		vars[name] = value
	}
	image := readImage(t).Env()
	maps.Copy(image, vars)
	for name, value := range c.Services["zephbot"].Environment {
		image[name] = composeVariable.ReplaceAllStringFunc(value, func(v string) string { return vars[composeVariable.FindStringSubmatch(v)[1]] })
	}
	for name := range vars {
		if !strings.HasPrefix(name, "ZEPH_") {
			delete(image, name)
		}
	}
	cfg := load(t, "", image)
	if got := cfg.Redis.URL.Reveal(); got != "redis://:secret@redis:6379/0" {
		t.Errorf("redis.url = %q", got)
	}
	if cfg.Vector.Backend != "qdrant" || !strings.HasPrefix(cfg.Vector.URL, "http://qdrant:") || len(cfg.LLM.Providers) != 1 || len(cfg.Telegram.AllowedUsers) != 0 {
		t.Errorf("vector %+v, %d providers, users %v", cfg.Vector, len(cfg.LLM.Providers), cfg.Telegram.AllowedUsers)
	}
	redis := strings.Join(c.Services["redis"].Command, " ")
	if !strings.Contains(redis, "--maxmemory-policy noeviction") || !strings.Contains(redis, "--requirepass") {
		t.Errorf("redis runs as %s", redis)
	}
}

// TestComposeReplicas: the two processes share what the pods of the chart share, in places that the image has.
func TestComposeReplicas(t *testing.T) {
	t.Parallel()
	var c struct {
		Services map[string]struct {
			Deploy struct {
				Replicas int `yaml:"replicas"`
			} `yaml:"deploy"`
			Environment map[string]string `yaml:"environment"`
			Volumes     []string          `yaml:"volumes"`
			Ports       []string          `yaml:"ports"`
			DependsOn   map[string]struct {
				Condition string `yaml:"condition"`
			} `yaml:"depends_on"`
		} `yaml:"services"`
		Volumes map[string]struct{} `yaml:"volumes"`
	}
	decoder := yaml.NewDecoder(strings.NewReader(read(t, "compose.replicas.yml")))
	decoder.KnownFields(true)
	if err := decoder.Decode(&c); err != nil {
		t.Fatal(err)
	}
	bot := c.Services["zephbot"]
	if len(c.Services) != 1 || bot.Deploy.Replicas != 2 || len(bot.Ports) > 0 || !slices.Equal(bot.Volumes, []string{"shared:/shared"}) || len(c.Volumes) != 1 {
		t.Errorf("%+v", c)
	}
	o := manifests(t, threeReplicas())
	pod := env(o.template().Spec.Containers[0])
	for _, name := range []string{"ZEPH_WORKSPACES_SHARED", "ZEPH_WORKSPACES_DIR"} {
		if bot.Environment[name] != pod[name] || pod[name] == "" {
			t.Errorf("%s is %q, in the chart %q", name, bot.Environment[name], pod[name])
		}
	}
	if url := bot.Environment["ZEPH_DATABASE_URL"]; !strings.Contains(url, "@postgres:5432/zephbot") || bot.DependsOn["postgres"].Condition != "service_healthy" {
		t.Errorf("database %q, waits for %v", url, bot.DependsOn)
	}
	if !slices.ContainsFunc(readImage(t).All, func(i deploytest.Instruction) bool {
		return i.Name == "RUN" && strings.Contains(i.Args, "install -d -o 10001 -g 10001 -m 0700 /data /shared")
	}) {
		t.Error("the image has no /shared: a new volume there would belong to root")
	}
}
