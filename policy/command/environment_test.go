package command_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/policy/command"
)

// setting returns texts that set a variable for a program.
func setting(name, value string) []string {
	return []string{
		fmt.Sprintf("%s=%s make", name, value), fmt.Sprintf("LANG=C %s=%s make all", name, value),
		fmt.Sprintf("env %s=%s make", name, value), fmt.Sprintf("env -u A B-B=1 %s=%s make", name, value),
		fmt.Sprintf("timeout 5 env -i %s=%s make", name, value), fmt.Sprintf("export %s=%s; make", name, value),
		fmt.Sprintf("%s=%s; export %s; make", name, value, name), fmt.Sprintf("declare -x %s=%s && make", name, value),
		fmt.Sprintf("typeset -gx %s=%s && make", name, value), fmt.Sprintf("readonly -x %s=%s; make", name, value),
		fmt.Sprintf("sh -c '%s=%s make'", name, value), fmt.Sprintf("%s=$x make", name),
		fmt.Sprintf("find . -exec env %s=%s make {} ';'", name, value), fmt.Sprintf("%s+=%s make", name, value),
	}
}

// TestAttackVariables: a variable that may choose code, configuration or addresses is named as a reason to ask, in
// whatever way a text hands it to a program.
func TestAttackVariables(t *testing.T) {
	t.Parallel()
	const names = "MAKEFILES MAKEFLAGS GNUMAKEFLAGS GOENV GOFLAGS GOPROXY GOTOOLCHAIN GOROOT GOPATH GOWORK CC CXX CGO_CFLAGS PYTEST_PLUGINS PYTEST_ADDOPTS PYTHONPATH PYTHONSTARTUP PYTHONBREAKPOINT " +
		"PERL5LIB PERL5OPT RUBYOPT RUBYLIB NODE_OPTIONS NODE_PATH NPM_CONFIG_SCRIPT_SHELL npm_config_node_gyp GIT_SSH_COMMAND GIT_EXTERNAL_DIFF GIT_PAGER GIT_TRACE GIT_CONFIG_COUNT GIT_DIR " +
		"CARGO_HOME CARGO_BUILD_RUSTC_WRAPPER RUSTC_WRAPPER RUSTFLAGS JAVA_TOOL_OPTIONS CLASSPATH MAVEN_OPTS GRADLE_OPTS CMAKE_TOOLCHAIN_FILE LESSOPEN MANPAGER EDITOR BROWSER TAR_OPTIONS " +
		"DOCKER_HOST KUBECONFIG http_proxy SSL_CERT_FILE LUA_PATH PIP_INDEX_URL PIP_CONFIG_FILE UV_INDEX_URL COMPOSER_HOME ANSIBLE_CONFIG TERMINFO TMPDIR XDG_CONFIG_HOME ANYTHING x"
	for name := range strings.FieldsSeq(names) {
		for _, text := range setting(name, "./evil") {
			s := command.Parse(text)
			if reasons := fmt.Sprint(s.Reasons()); s.Certain() || !strings.Contains(reasons, name) {
				t.Errorf("%q: certain is %v, the reasons are %q", text, s.Certain(), reasons)
			}
		}
	}
}

// TestHarmlessVariables: what only changes how a program speaks needs no question, nor does a variable of the shell.
func TestHarmlessVariables(t *testing.T) {
	t.Parallel()
	for each := range strings.FieldsSeq("LANG=C LC_ALL=C.UTF-8 TZ=UTC NO_COLOR=1 CI=1 DEBIAN_FRONTEND=noninteractive CGO_ENABLED=0 GOOS=linux RUST_BACKTRACE=1 PYTHONUNBUFFERED=1 NODE_ENV=test GIT_PAGER=cat PAGER=cat EDITOR=true") {
		name, value, _ := strings.Cut(each, "=")
		for _, text := range []string{each + " make", "env " + each + " make", "export " + each + "; make", "declare -x " + name + "=" + value} {
			if s := command.Parse(text); !s.Certain() {
				t.Errorf("%q: %q %q", text, s.Indirect, s.Doubts)
			}
		}
	}
	for _, text := range []string{
		"f=a.go; gofmt -l $f", "for f in *.go; do gofmt -l \"$f\"; done", "read -r line < list; echo \"$line\"",
		"count=0; echo $count", "local=1; declare -r b=2; printf -v c %s x",
	} {
		if s := command.Parse(text); !s.Certain() {
			t.Errorf("%q: %q %q", text, s.Indirect, s.Doubts)
		}
	}
}

// TestAttackInheritedVariables: an assignment to a variable that is in the environment already changes it for programs.
func TestAttackInheritedVariables(t *testing.T) {
	t.Parallel()
	for name := range strings.FieldsSeq("GOFLAGS GOPATH JAVA_HOME CC PYTHONPATH http_proxy PATH HOME TMPDIR TAR_OPTIONS GIT_CONFIG_COUNT GIT_SSH_COMMAND") {
		for _, text := range []string{name + "=x; make", "for " + name + " in x; do make; done", "read " + name + "; make", "printf -v " + name + " x; make", ": ${" + name + ":=x}; make", "unset " + name + "; make"} {
			if command.Parse(text).Certain() {
				t.Errorf("%q is certain", text)
			}
		}
	}
}
