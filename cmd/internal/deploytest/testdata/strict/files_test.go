package strict_test

import (
	"os"
	"slices"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/coreos/go-systemd/v22/unit"
)

// TestCompose: compose-go, which is what Docker Compose reads with, takes the file with the example of its environment.
func TestCompose(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for from, to := range map[string]string{"docker-compose.yml": "docker-compose.yml", ".env.example": ".env", "Dockerfile": "Dockerfile"} {
		data, err := os.ReadFile(root + "/" + from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(dir+"/"+to, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for profile, want := range map[string][]string{"": {"qdrant", "redis", "zephbot"}, "postgres": {"postgres", "qdrant", "redis", "zephbot"}} {
		options, err := cli.NewProjectOptions([]string{dir + "/docker-compose.yml"}, cli.WithWorkingDirectory(dir), cli.WithProfiles([]string{profile}),
			cli.WithEnv([]string{"REDIS_PASSWORD=secret"}), cli.WithDotEnv)
		if err != nil {
			t.Fatal(err)
		}
		project, err := options.LoadProject(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		names := project.ServiceNames()
		slices.Sort(names)
		if !slices.Equal(names, want) {
			t.Errorf("profile %q: services %v, want %v", profile, names, want)
		}
		if url := project.Services["zephbot"].Environment["ZEPH_REDIS_URL"]; url == nil || *url != "redis://:secret@redis:6379/0" {
			t.Errorf("redis: %v", url)
		}
	}
}

// TestComposeWithoutPassword: it says what to set.
func TestComposeWithoutPassword(t *testing.T) {
	t.Parallel()
	options, err := cli.NewProjectOptions([]string{root + "/docker-compose.yml"}, cli.WithEnv([]string{"REDIS_PASSWORD="}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := options.LoadProject(t.Context()); err == nil {
		t.Error("a Redis without a password")
	}
}

// TestUnit: go-systemd reads the unit.
func TestUnit(t *testing.T) {
	t.Parallel()
	f, err := os.Open(root + "/zephbot.service")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	sections, err := unit.DeserializeSections(f)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range sections {
		names = append(names, s.Section)
	}
	if !slices.Equal(names, []string{"Unit", "Service", "Install"}) {
		t.Errorf("sections %v", names)
	}
}

// TestComposeReplicas: compose-go puts the file for two processes over the other one.
func TestComposeReplicas(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for from, to := range map[string]string{"docker-compose.yml": "docker-compose.yml", "compose.replicas.yml": "compose.replicas.yml", ".env.example": ".env", "Dockerfile": "Dockerfile"} {
		data, err := os.ReadFile(root + "/" + from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(dir+"/"+to, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	options, err := cli.NewProjectOptions([]string{dir + "/docker-compose.yml", dir + "/compose.replicas.yml"}, cli.WithWorkingDirectory(dir),
		cli.WithProfiles([]string{"postgres"}), cli.WithEnv([]string{"REDIS_PASSWORD=secret", "POSTGRES_PASSWORD=word"}), cli.WithDotEnv)
	if err != nil {
		t.Fatal(err)
	}
	project, err := options.LoadProject(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	bot := project.Services["zephbot"]
	if bot.Deploy == nil || bot.Deploy.Replicas == nil || *bot.Deploy.Replicas != 2 || len(bot.Ports) != 0 {
		t.Errorf("deploy %+v, ports %v", bot.Deploy, bot.Ports)
	}
	if len(bot.Volumes) != 1 || bot.Volumes[0].Target != "/shared" || bot.Volumes[0].Source != "shared" {
		t.Errorf("volumes %+v", bot.Volumes)
	}
	for name, want := range map[string]string{
		"ZEPH_DATABASE_URL": "postgres://zephbot:word@postgres:5432/zephbot", "ZEPH_REDIS_URL": "redis://:secret@redis:6379/0", "ZEPH_WORKSPACES_SHARED": "true",
	} {
		if got := bot.Environment[name]; got == nil || *got != want {
			t.Errorf("%s: %v, want %s", name, got, want)
		}
	}
	for _, other := range []string{"postgres", "redis"} {
		if bot.DependsOn[other].Condition != "service_healthy" {
			t.Errorf("waits for %s: %+v", other, bot.DependsOn[other])
		}
	}
}
