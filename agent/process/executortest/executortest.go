// Package executortest is the suite that every process.Executor passes, wherever it runs
// commands: namespaces of this machine, a container of package remotetest, and pods on a cluster.
//
// A test of the executor calls Run. The suite checks the contract that package jobs relies
// on: exit codes and output arrive whole, limits end a command with all its processes, and
// a command sees the directories that it was given and nothing else of the state.
package executortest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/agent/process"
	"github.com/pfl-forge/pfl-forge/agent/sandbox"
)

// Secret is a variable of the service's environment that no command may see. Run
// sets it; a test that goes on beside others cannot, and has its TestMain set it.
const Secret = "SERVICE_SECRET"

// Run runs the suite. state is the service's state: directories for commands are made
// below it.
func Run(t *testing.T, executor process.Executor, state string) {
	t.Helper()
	if os.Getenv(Secret) == "" {
		t.Setenv(Secret, "canary")
	}
	for name, test := range map[string]func(*testing.T, *world){
		"status and output": statusAndOutput, "input and environment": inputAndEnvironment,
		"order of merged output": mergedOutput, "files come back": filesComeBack,
		"files that may not change": readOnly, "nothing else of the service": nothingElse,
		"limits": limits, "cancelled": cancelled, "an address of the service": address,
		"no process is left": noneLeft, "missing program": missing, "strange files": strangeFiles,
		"caches": caches, "one after another": oneAfterAnother,
	} {
		t.Run(name, func(t *testing.T) { t.Parallel(); test(t, newWorld(t, executor, state)) })
	}
}

// world is the state of a service that runs commands: one for each test of the suite, so that they
// run side by side. Its directory is the command's checkout, scratch has the command's home.
type world struct {
	t                   *testing.T
	owner               process.Owner
	state, dir, scratch string
}

// newWorld returns an executor with a checkout and a scratch folder of their own, below its state.
// Links on the way there are resolved: a sandbox is given real paths.
func newWorld(t *testing.T, executor process.Executor, state string) *world {
	t.Helper()
	own, err := os.MkdirTemp(state, "test-") //nolint:usetesting // it must be below the state
	if err != nil {
		t.Fatal(err)
	}
	if own, err = filepath.EvalSymlinks(own); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, owner: process.NewOwner(state).RunIn(executor), state: own, dir: filepath.Join(own, "dir"), scratch: filepath.Join(own, "scratch")}
	for _, dir := range []string{w.dir, w.scratch} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// command returns a shell that sees the system, its directory and its home, has no network, and a
// minute of time.
func (w *world) command(script string) process.Command {
	w.t.Helper()
	home, err := process.PrivateHome(w.scratch)
	if err != nil {
		w.t.Fatal(err)
	}
	return process.Command{
		Path: "/bin/sh", Args: []string{"-c", script}, Dir: w.dir, Owner: w.owner,
		Env: process.Environment(home), Limits: process.Limits{Wall: time.Minute},
		Sandbox: &sandbox.Spec{Network: sandbox.NetworkNone, Mounts: slices.Concat(sandbox.System(os.Getenv("PATH"), "/root"),
			sandbox.Path(w.dir, sandbox.Writable), sandbox.Path(w.scratch, sandbox.Writable))},
	}
}

// run runs a command that must end by itself. An exit status other than 0 is a result; an error,
// such as a program that cannot be started, fails the test.
func (w *world) run(c process.Command) process.Report {
	w.t.Helper()
	r, err := process.Run(w.t.Context(), c)
	if err != nil {
		w.t.Fatalf("%v\n%s%s", err, r.Output, r.Stderr)
	}
	return r
}

// write writes a file below the service's state, with the folders above it.
func (w *world) write(name, text string) {
	w.t.Helper()
	path := filepath.Join(w.state, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// read returns a file below the service's state; empty if there is none, which no test writes.
func (w *world) read(name string) string {
	text, err := os.ReadFile(filepath.Join(w.state, name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		w.t.Error(err)
	}
	return string(text)
}

// statusAndOutput tells an exit status from a signal, and stdout from stderr.
func statusAndOutput(t *testing.T, w *world) {
	t.Helper()
	r := w.run(w.command("echo out; echo err >&2; exit 3"))
	if r.ExitCode != 3 || string(r.Stderr) != "err\n" || !bytes.Contains(r.Output, []byte("out\n")) || r.Bytes != 8 || r.Duration <= 0 {
		t.Errorf("%+v", r)
	}
	if r := w.run(w.command("kill -9 $$")); r.ExitCode != 137 {
		t.Errorf("killed by itself: %d, want 137", r.ExitCode)
	}
}

// inputAndEnvironment gives a command its input and its variables, and none of the
// service's. Without input it reads an empty one.
func inputAndEnvironment(t *testing.T, w *world) {
	t.Helper()
	c := w.command("cat; echo $GIVEN; env")
	c.Stdin, c.Env = []byte("from stdin\n"), process.Merge(c.Env, []string{"GIVEN=a b"})
	out := string(w.run(c).Output)
	if !strings.HasPrefix(out, "from stdin\na b\n") || strings.Contains(out, "canary") {
		t.Error(out)
	}
	if r := w.run(w.command("cat; echo end")); string(r.Output) != "end\n" {
		t.Errorf("without input: %s", r.Output)
	}
}

// mergedOutput keeps the order of lines that go to two streams, and passes on a last line
// that has no end.
func mergedOutput(t *testing.T, w *world) {
	t.Helper()
	c := w.command("for i in 1 2 3; do echo out $i; echo err $i >&2; done; printf rest")
	c.MergeStderr = true
	var lines []string
	c.Line = func(from process.Stream, line []byte) { lines = append(lines, string(from)+" "+string(line)) }
	const want = "out 1\nerr 1\nout 2\nerr 2\nout 3\nerr 3\nrest"
	if r := w.run(c); string(r.Output) != want || len(lines) != 7 || lines[1] != "stdout err 1" || lines[6] != "stdout rest" {
		t.Errorf("%q\n%q", r.Output, lines)
	}
}

// filesComeBack compares everything that a command can do with files of a writable
// directory: change, remove, make, link, and take permissions away.
func filesComeBack(t *testing.T, w *world) {
	t.Helper()
	w.write("dir/changed", "before")
	w.write("dir/removed", "before")
	w.write("dir/kept", "kept")
	w.run(w.command(`set -e
		echo after > changed; rm removed; mkdir -p a/b; echo new > a/b/new; chmod +x a/b/new
		ln -s ../changed a/link; ln -s /nowhere/else broken; echo home > "$HOME/note"; mkdir closed; echo x > closed/x; chmod 500 closed`))
	for name, want := range map[string]string{
		"dir/changed": "after\n", "dir/removed": "", "dir/kept": "kept", "dir/a/b/new": "new\n", "dir/a/link": "after\n",
		"scratch/home/note": "home\n", "dir/closed/x": "x\n",
	} {
		if got := w.read(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if info, err := os.Stat(filepath.Join(w.dir, "a/b/new")); err != nil || info.Mode().Perm()&0o100 == 0 {
		t.Errorf("%v, %v: it was made executable", info, err)
	}
	if to, err := os.Readlink(filepath.Join(w.dir, "broken")); to != "/nowhere/else" {
		t.Errorf("%q, %v", to, err)
	}
	if info, err := os.Stat(filepath.Join(w.dir, "closed")); err != nil || info.Mode().Perm() != 0o500 {
		t.Errorf("%v, %v: it was closed", info, err)
	}
	if err := os.Chmod(filepath.Join(w.dir, "closed"), 0o700); err != nil { // so that it can be removed
		t.Error(err)
	}
}

// readOnly shows a directory to a command that tries to change it, and looks at the directory
// afterwards: whether the command was told of an error is not asked.
func readOnly(t *testing.T, w *world) {
	t.Helper()
	w.write("library/file", "before")
	c := w.command(`cat "$LIBRARY/file"; echo after > "$LIBRARY/file"; echo x > "$LIBRARY/new"; exit 0`)
	library := filepath.Join(w.state, "library")
	c.Env = process.Merge(c.Env, []string{"LIBRARY=" + library})
	c.Sandbox.Mounts = append(c.Sandbox.Mounts, sandbox.Path(library, sandbox.ReadOnly)...)
	if r := w.run(c); !strings.Contains(string(r.Output), "before") || w.read("library/file") != "before" || w.read("library/new") != "" {
		t.Errorf("%s; the file has %q", r.Output, w.read("library/file"))
	}
}

// nothingElse looks for a secret beside the command's directory and in the environment of
// other processes.
func nothingElse(t *testing.T, w *world) {
	t.Helper()
	w.write("secret", "canary")
	c := w.command(`cat "$SECRET" || true; ls -a "$STATE"; cat /proc/*/environ | tr '\0' '\n' | grep SERVICE_SECRET || true`)
	c.Env = process.Merge(c.Env, []string{"SECRET=" + filepath.Join(w.state, "secret"), "STATE=" + w.state})
	if out := string(w.run(c).Output); strings.Contains(out, "canary") || strings.Contains(out, "\nsecret\n") {
		t.Error(out)
	}
}

// limits ends commands that take too long, are silent for too long or print too much. The
// files that they had written are kept, because a retry goes on from there.
func limits(t *testing.T, w *world) {
	t.Helper()
	for name, test := range map[string]struct {
		script string
		limits process.Limits
		want   error
	}{
		"wall":   {"while :; do echo x; sleep 0.1; done", process.Limits{Wall: 5 * time.Second}, process.ErrWall},
		"idle":   {"echo x; sleep 600", process.Limits{Wall: time.Minute, Idle: 3 * time.Second}, process.ErrIdle},
		"output": {"while :; do echo xxxxxxxxxxxxxxxx; done", process.Limits{Wall: time.Minute, OutputBytes: 10_000}, process.ErrOutput},
	} {
		t.Run(name, func(t *testing.T) {
			c := w.command("echo kept > kept; " + test.script)
			c.Limits = test.limits
			r, err := process.Run(t.Context(), c)
			if !errors.Is(err, test.want) || r.ExitCode != -1 || !bytes.Contains(r.Output, []byte("x\n")) {
				t.Errorf("%v; status %d, %d bytes of output", err, r.ExitCode, len(r.Output))
			}
			if w.read("dir/kept") != "kept\n" {
				t.Error("what it did before is lost")
			}
		})
	}
}

// cancelled ends a command whose context ends, with the cause in the error and no exit status:
// jobs tell by the cause whether a person, a lease or a limit ended it.
func cancelled(t *testing.T, w *world) {
	t.Helper()
	errStop := errors.New("somebody said stop")
	ctx, stop := context.WithCancelCause(t.Context())
	c := w.command("echo started; sleep 600")
	c.Line = func(process.Stream, []byte) { stop(errStop) }
	if r, err := process.Run(ctx, c); !errors.Is(err, errStop) || r.ExitCode != -1 {
		t.Errorf("%v, %d", err, r.ExitCode)
	}
}

// address reaches a server of the service at an address of loopback, several times at
// once, in a network without any other.
func address(t *testing.T, w *world) {
	t.Helper()
	const client = `
		if ! command -v nc >/dev/null && ! command -v bash >/dev/null; then echo "there is no client"; exit 0; fi
		exec 3<>/dev/tcp/127.0.0.1/7777 && echo "hello $1" >&3 && head -n 1 <&3`
	c := w.command("exit 0")
	c.Path, c.Args = "/bin/bash", []string{"-c", `for i in 1 2 3; do (` + strings.ReplaceAll(client, "$1", "$i") + `) & done; wait`}
	c.Sandbox.Listen = "127.0.0.1:7777"
	var all sync.WaitGroup
	c.Sandbox.Serve = func(l net.Listener) {
		all.Go(func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				all.Go(func() {
					defer func() { _ = conn.Close() }()
					buf := make([]byte, 8)
					if _, err := io.ReadFull(conn, buf); err == nil {
						_, _ = fmt.Fprintf(conn, "answer to %s", buf)
					}
				})
			}
		})
	}
	out := string(w.run(c).Output)
	all.Wait()
	for i := range 3 {
		if !strings.Contains(out, fmt.Sprintf("answer to hello %d\n", i+1)) {
			t.Errorf("%d: %s", i+1, out)
		}
	}
}

// noneLeft starts a daemon that outlives its command, unless the executor ends it.
func noneLeft(t *testing.T, w *world) {
	t.Helper()
	w.run(w.command(`(setsid sh -c 'sleep 0.5; echo late > late' </dev/null >/dev/null 2>&1 &) ; echo x > early`))
	c := w.command(`sleep 1; ls`)
	if out := string(w.run(c).Output); out != "early\n" {
		t.Errorf("%q: a process went on after its command", out)
	}
}

// missing names a program that does not exist: the executable itself by the error, one that a
// shell looks for by the shell's status. So a mistake in a project's settings is told from a
// command that failed.
func missing(t *testing.T, w *world) {
	t.Helper()
	c := w.command("")
	c.Path = "/nowhere/program"
	if _, err := process.Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), "/nowhere/program") {
		t.Error(err)
	}
	if r := w.run(w.command("nosuchprogram")); r.ExitCode != 127 {
		t.Errorf("status %d, want 127", r.ExitCode)
	}
}

// strangeFiles makes files that are neither files nor directories, and names that need care: a
// line end, a leading dash, letters outside of ASCII. The others have to arrive all the same.
func strangeFiles(t *testing.T, w *world) {
	t.Helper()
	w.run(w.command(`mkfifo pipe; mkdir " -x
y"; echo 1 > " -x
y/ü€"; ln f g 2>/dev/null; echo ok > ok`))
	if w.read("dir/ok") != "ok\n" || w.read("dir/ -x\ny/ü€") != "1\n" {
		t.Error("files are missing")
	}
}

// caches writes into a cache, whose files stay whether or not the command sees them: an executor
// on another machine has caches of its own, which the service's state knows nothing of.
func caches(t *testing.T, w *world) {
	t.Helper()
	cache := filepath.Join(w.state, "cache")
	w.write("cache/file", "x")
	c := w.command(`echo y > "$CACHE/new"; cat "$CACHE/new"`)
	c.Env = process.Merge(c.Env, []string{"CACHE=" + cache})
	c.Sandbox.Mounts = append(c.Sandbox.Mounts, sandbox.Mount{Path: cache, Kind: sandbox.Writable, Cache: true})
	if r := w.run(c); string(r.Output) != "y\n" {
		t.Errorf("%s", r.Output)
	}
	if w.read("cache/file") != "x" {
		t.Error("the cache is gone")
	}
}

// oneAfterAnother has each command find the files that the one before left in the directory, also
// where the commands run on different machines.
func oneAfterAnother(t *testing.T, w *world) {
	t.Helper()
	for i := range 3 {
		w.run(w.command(fmt.Sprintf("echo %d >> log", i)))
	}
	if got := w.read("dir/log"); got != "0\n1\n2\n" {
		t.Errorf("%q", got)
	}
}
