package main

import (
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/console/consoletest"
)

// terminal runs a command on an emulated terminal and talks to it as a file says:
// terminal <file> <code> <command>... Each line of the file is one of
//
//	see <regexp>      wait until that is on the screen
//	printed <regexp>  look whether that was printed, also if it has scrolled away
//	type <keys>       as in a string of Go
//	size <c>x<r>      give the terminal another size
//	run <command>     run another command meanwhile
//	# ...             a comment
//
// The command has to end with that code, and to leave the terminal as it was.
func terminal(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: terminal <file> <code> <command>...")
	}
	want, err := strconv.Atoi(args[1])
	ts.Check(err)
	term, err := consoletest.Start(command(ts, args[2:]), 100, 40)
	ts.Check(err)
	talkErr := talk(ts, term, ts.ReadFile(args[0]))
	if talkErr != nil {
		_ = term.Kill()
	}
	code, err := term.End()
	if talkErr != nil {
		ts.Fatalf("%v", talkErr)
	}
	ts.Check(err)
	if code != want {
		ts.Fatalf("exit code %d, want %d; on the screen:\n%s", code, want, term.Screen())
	}
}

// command is a command with the script's folder and environment.
func command(ts *testscript.TestScript, args []string) *exec.Cmd {
	cmd := exec.Command(args[0], args[1:]...)
	if path, err := lookPath(ts, args[0]); err == nil {
		cmd.Path, cmd.Err = path, nil
	}
	cmd.Dir = ts.MkAbs(".")
	for _, name := range []string{"PATH", "HOME", "NO_COLOR", "TMPDIR", "GORACE"} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	cmd.Env = append(cmd.Env, "TERM=xterm-256color")
	return cmd
}

func talk(ts *testscript.TestScript, term *consoletest.Terminal, dialogue string) error {
	for n, line := range strings.Split(dialogue, "\n") {
		verb, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		var err error
		switch verb {
		case "", "#":
		case "see":
			err = term.Await(rest)
		case "printed":
			if want := regexp.MustCompile(rest); !want.MatchString(term.Printed()) {
				err = fmt.Errorf("%q was not printed:\n%s", rest, term.Printed())
			}
		case "type":
			keys, unquoteErr := strconv.Unquote(`"` + rest + `"`)
			ts.Check(unquoteErr)
			err = term.Type(keys)
		case "size":
			var columns, rows int
			_, scanErr := fmt.Sscanf(rest, "%dx%d", &columns, &rows)
			ts.Check(scanErr)
			err = term.Resize(columns, rows)
		case "run":
			var out []byte
			if out, err = command(ts, strings.Fields(rest)).CombinedOutput(); err != nil {
				err = fmt.Errorf("%w:\n%s", err, out)
			}
		default:
			err = fmt.Errorf("unknown %q", verb)
		}
		if err != nil {
			return fmt.Errorf("line %d of the dialogue: %w", n+1, err)
		}
	}
	return nil
}
