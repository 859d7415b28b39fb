package environ_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/internal/environ"
)

// role makes the test binary what it names, instead of a test.
const role = "PFL_FORGE_TEST_ENVIRON"

func TestMain(m *testing.M) {
	switch os.Getenv(role) {
	case "":
		os.Exit(m.Run())
	case "prints": // a child that is handed nothing
		fmt.Println(strings.Join(os.Environ(), "\n"))
	case "hides":
		hides()
	}
}

// hides prints each place where a secret can still be seen after Hide, and what is missing.
func hides() {
	const secret = "canary"
	environ.Hide()
	report := func(is bool, what string) {
		if is {
			fmt.Println(what)
		}
	}
	report(os.Getenv("SOME_TOKEN") != "", "os.Getenv has it")
	report(slices.Contains(os.Environ(), "SOME_TOKEN="+secret), "os.Environ has it")
	report(environ.Get("SOME_TOKEN") != secret, "Get does not have it: "+environ.Get("SOME_TOKEN"))
	report(!slices.Contains(environ.All(), "SOME_TOKEN="+secret), "All does not have it")
	report(!slices.Contains(environ.All(), "PLAIN=plain") || os.Getenv("PLAIN") != "plain", "a variable that is no secret is gone")
	report(os.Getenv("SOME_AUTH_SOCK") != "/run/sock", "a path is gone")
	report(environ.Get("FORGE_SERVER") != "nats://"+secret+"@localhost", "Get does not have FORGE_SERVER")
	_, ok := environ.Lookup("EMPTY_TOKEN")
	report(!ok || environ.Get("ANOTHER") != "", "an empty variable is gone, or one that never was is there")
	if runtime.GOOS == "linux" {
		block, err := os.ReadFile("/proc/self/environ")
		report(err != nil || !bytes.Contains(block, []byte("PLAIN=plain")), "/proc/self/environ is damaged")
		report(bytes.Contains(block, []byte(secret)), "/proc/self/environ has it")
	}
	self, _ := os.Executable()
	child := exec.Command(self)
	child.Env = append(os.Environ(), role+"=prints")
	out, err := child.CombinedOutput()
	report(err != nil || !bytes.Contains(out, []byte("PLAIN=plain")), "a child does not have the rest")
	report(bytes.Contains(out, []byte(secret)), "a child has it")
}

// TestSecretsLeaveTheEnvironment: after Hide a secret is in no environment, neither the process's,
// nor the block that the kernel shows of it, nor a child's, and is there for who asks for it.
func TestSecretsLeaveTheEnvironment(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = []string{
		role + "=hides", "SOME_TOKEN=canary", "EMPTY_TOKEN=", "PLAIN=plain", "SOME_AUTH_SOCK=/run/sock", "ANTHROPIC_API_KEY=canary",
		"A_SECRET=a=canary=b", "FORGE_SERVER=nats://canary@localhost",
	}
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
}
