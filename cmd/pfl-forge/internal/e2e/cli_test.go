package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/internal/testoutput"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// entry is what `inbox --output json` says of an intent.
type entry struct {
	ID, Title, Status, Waiting, Reason, Plan string
	Commands                                 []string
	Work                                     []struct{ ID, Status, Failure string } `json:"plan_tasks"`
	Questions                                []struct{ Question string }
}

// said is everything that the entry says about why the intent waits.
func (e *entry) said() string {
	text := e.Status + ": " + e.Reason
	for _, w := range e.Work {
		text += "\n" + w.ID + " " + w.Status + ": " + w.Failure
	}
	return text
}

// inbox returns what waits for a person, by id.
func (r *repo) inbox() map[string]entry {
	r.t.Helper()
	var list []entry
	r.decode(&list, "inbox", "--output", "json")
	all := map[string]entry{}
	for _, e := range list {
		all[e.ID] = e
	}
	return all
}

// status is what `status --output json` says.
type status struct {
	Intents []struct {
		ID, Status, Waiting, Activity string
		Tasks                         int
	}
	Dead     int `json:"dead_letters"`
	Problems []problem
}

// problem is something in a person's file that was refused.
type problem struct {
	Path, Field, Reason, Hint string
	Line                      int
}

func (s *status) of(id string) string {
	for _, i := range s.Intents {
		if i.ID == id {
			return i.Status
		}
	}
	return ""
}

func (r *repo) status() *status {
	r.t.Helper()
	var s status
	r.decode(&s, "status", "--output", "json")
	return &s
}

// wantStatus fails the test unless these intents have this status.
func (r *repo) wantStatus(want string, ids ...string) {
	r.t.Helper()
	s := r.status()
	for _, id := range ids {
		if got := s.of(id); got != want {
			r.t.Errorf("intent %s is %q; want %s", id, got, want)
		}
	}
}

// decode runs a command that succeeds, and reads its output as JSON.
func (r *repo) decode(into any, args ...string) {
	r.t.Helper()
	out := r.must(0, args...)
	if err := json.Unmarshal([]byte(out.stdout), into); err != nil {
		r.t.Fatalf("pfl-forge %v: %v\n%s", args, err, out.stdout)
	}
}

// running is a pfl-forge that goes on while the test does something else.
type running struct {
	t              testing.TB
	cmd            *exec.Cmd
	stdout, stderr testoutput.Output
	ended          chan struct{}
	err            error // of its end
}

// start starts pfl-forge. It is ended with the test, if not before.
func (r *repo) start(args ...string) *running {
	r.t.Helper()
	return launch(r.t, r.command(r.t.Context(), args...))
}

// launch starts a program. It is ended with the test, if not before.
func launch(t testing.TB, cmd *exec.Cmd) *running {
	t.Helper()
	p := &running{t: t, cmd: cmd, ended: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		p.err = p.cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.ended
	})
	return p
}

// finish waits for the end. A program that says nothing for very long has to end, too.
func (p *running) finish() result {
	p.t.Helper()
	said := func() int { return len(p.stdout.String()) + len(p.stderr.String()) }
	p.t.Cleanup(func() {
		if !p.over() {
			p.t.Logf("%v said:\n%s%s", p.cmd.Args[1:], p.stdout.String(), p.stderr.String())
		}
	})
	wait.Moving(p.t, fmt.Sprintf("%v has ended", p.cmd.Args[1:]), p.over, said)
	var exit *exec.ExitError
	if p.err != nil && !errors.As(p.err, &exit) {
		p.t.Fatalf("%v: %v", p.cmd.Args[1:], p.err)
	}
	return result{code: p.cmd.ProcessState.ExitCode(), stdout: p.stdout.String(), stderr: p.stderr.String()}
}

// over reports whether the program has ended.
func (p *running) over() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// signal sends a signal to the process, not to those that it started.
func (p *running) signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// wait waits for the end, which has to come with this exit code.
func (p *running) wait(code int) result {
	p.t.Helper()
	got := p.finish()
	if got.code != code {
		p.t.Fatalf("%v: exit code %d, want %d\n%s%s", p.cmd.Args[1:], got.code, code, got.stdout, got.stderr)
	}
	return got
}

// until waits until something is so, as long as the process goes on.
func (p *running) until(what string, so func() bool) {
	p.t.Helper()
	wait.Until(p.t, what, func() bool {
		if p.over() {
			p.t.Fatalf("%v ended before %s\n%s%s", p.cmd.Args[1:], what, p.stdout.String(), p.stderr.String())
		}
		return so()
	})
}

// exists reports whether there is anything under a path.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// contains fails the test unless the text has each of the parts.
func contains(t testing.TB, what, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s does not say %q:\n%s", what, part, text)
		}
	}
}
