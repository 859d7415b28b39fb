package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/pfl-forge/pfl-forge/internal/testdir"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

func TestMain(m *testing.M) {
	wait.Beside()
	testscript.Main(m, map[string]func(){"pfl-forge": main})
}

// Each file of testdata/script is a story of a person with a repository.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		WorkdirRoot:         testdir.New(t),
		Condition:           condition,
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			home := filepath.Join(env.WorkDir, ".home")
			env.Setenv("HOME", home)
			env.Values[browsing{}] = &browsing{}
			env.Setenv("NO_COLOR", "1")
			source, err := filepath.Abs(filepath.Join("..", ".."))
			if err != nil {
				return err
			}
			env.Setenv("SOURCE", source)              // what is shipped beside the program
			env.Setenv("GORACE", "atexit_sleep_ms=0") // or each command sleeps for a second at its end
			return os.MkdirAll(home, 0o700)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"repo":     repo,
			"exits":    exits,
			"await":    await,
			"endpoint": endpoint,
			"terminal": terminal,
			"browse": func(ts *testscript.TestScript, neg bool, args []string) {
				ts.Value(browsing{}).(*browsing).browse(ts, neg, args)
			},
		},
	})
}

// condition knows full: whether the tests are run in full size.
func condition(name string) (bool, error) {
	if name != "full" {
		return false, fmt.Errorf("unknown condition %s", name)
	}
	return testsize.Full(), nil
}

// repo makes a git repository of a folder, with everything in it committed on main, in which
// the person has said that it may run what it brings: repo <folder>.
func repo(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: repo <folder>")
	}
	dir := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(dir, 0o755))
	for _, line := range [][]string{
		{"init", "-q", "-b", "main", "--template="},
		{"config", "user.name", "Ada"},
		{"config", "user.email", "ada@example.com"},
		{"add", "-A"},
		{"commit", "-q", "--allow-empty", "-m", "first"},
	} {
		ts.Check(ts.Exec("git", append([]string{"-C", dir}, line...)...))
	}
	// Where the configuration is wrong, the story is about that.
	_ = ts.Exec("sh", "-c", `pfl-forge -C "$0" trust $(pfl-forge -C "$0" trust --show -o name)`, dir)
}

// exits runs a command that ends with a certain code: exits <code> <command>...
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits <code> <command>...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	err = ts.Exec(args[1], args[2:]...)
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		got = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// await runs a command until its output matches: await <regexp> <command>...
func await(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: await <regexp> <command>...")
	}
	want := regexp.MustCompile("(?m)" + args[0])
	var out []byte
	ctx, cancel := wait.Bounded()
	defer cancel()
	if !wait.Poll(ctx, func() bool {
		out, _ = command(ts, args[1:]).CombinedOutput()
		return want.Match(out)
	}) {
		ts.Fatalf("%q is not in:\n%s", args[0], out)
	}
}

// lookPath finds a program in the script's PATH.
func lookPath(ts *testscript.TestScript, name string) (string, error) {
	for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode()&0o111 != 0 && !info.IsDir() {
			return path, nil
		}
	}
	return "", exec.ErrNotFound
}

// endpoint tells the script how to reach the server of a repository in which a run
// goes on, as if it were somebody else's: endpoint <folder> sets $URL, and writes
// the file token.
func endpoint(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: endpoint <folder>")
	}
	text, err := os.ReadFile(filepath.Join(ts.MkAbs(args[0]), ".forge", "nats", "client.json"))
	ts.Check(err)
	var e struct{ URL, Token string }
	ts.Check(json.NewDecoder(bytes.NewReader(text)).Decode(&e))
	ts.Setenv("URL", e.URL)
	ts.Check(os.WriteFile(ts.MkAbs("token"), []byte(e.Token+"\n"), 0o600))
}
