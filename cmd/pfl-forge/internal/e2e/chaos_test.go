package e2e

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

var (
	faultIntents = flag.Int("fault.intents", 8, "how many intents TestFaults has under way during each fault")
	faultRounds  = flag.Int("fault.rounds", 1, "how often each fault of TestFaults comes, each time with so many intents more")
	faultTime    = flag.Duration("fault.time", 3*time.Second, "how long each fault of TestFaults lasts")
)

// trouble is what a fault does its harm to.
type trouble struct {
	*cluster
	link *link // between the services and NATS, if the fault asks for it
	rng  *rand.Rand
	// asked is how many intents there are.
	asked int
	// pushed is how many commits people have pushed.
	pushed int
}

// hold returns when the fault has lasted long enough.
func (x *trouble) hold() { <-x.moment(*faultTime, *faultTime+time.Millisecond) }

func (x *trouble) moment(least, most time.Duration) <-chan time.Time {
	return wait.Moment(x.rng, least, most)
}

// repeat does something again and again while the fault lasts.
func (x *trouble) repeat(pause time.Duration, do func()) {
	for end := time.Now().Add(*faultTime); time.Now().Before(end); {
		do()
		<-x.moment(pause/2, pause)
	}
}

// fault is one thing that goes wrong. It begins in during, and is over when that returns.
type fault struct {
	name    string
	servers int  // of NATS, in a cluster; 0 for one by itself
	linked  bool // whether the services reach NATS through a link
	// disk is a folder of the installation that is a file system of its own,
	// with the room that options of tmpfs give it; empty if none is.
	disk, room string
	// tools gives the sick implementer a folder of programs of its own.
	tools  bool
	during func(x *trouble)
	// tells are the messages at level ERROR by which services tell a person of
	// it, as guide-operators.md lists them; of all others there is none.
	tells []string
}

func faults() []fault {
	return []fault{
		{name: "services-killed", during: (*trouble).killServices},
		{name: "server-killed", during: func(x *trouble) { x.procs[0].kill(); x.hold(); x.start(x.procs[0]) }},
		{name: "server-stopped", during: func(x *trouble) { x.procs[0].stop(); x.hold(); x.procs[0].goOn() }},
		{name: "runner-stopped", during: func(x *trouble) { x.procs[1].stop(); x.hold(); x.procs[1].goOn() }},
		{name: "implementer-stopped", during: func(x *trouble) { x.procs[3].stop(); x.hold(); x.procs[3].goOn() }},
		{name: "black-hole", linked: true, during: func(x *trouble) { x.link.swallow(); x.hold(); x.link.pass() }},
		{name: "resets", linked: true, during: func(x *trouble) { x.repeat(300*time.Millisecond, x.link.reset) }},
		{name: "delay", linked: true, during: func(x *trouble) { x.link.slow(100 * time.Millisecond); x.hold(); x.link.slow(0) }},
		{name: "origin-away", during: func(x *trouble) { x.move(x.origin, x.origin+".away"); x.hold(); x.move(x.origin+".away", x.origin) }},
		{name: "hook-refuses", during: (*trouble).refusePushes},
		{name: "disk-away", during: (*trouble).diskAway},
		{name: "server-full", disk: "nats-0", room: "size=64m", during: (*trouble).fillServer},
		{name: "inodes-out", disk: sickState, room: "nr_inodes=20k", during: (*trouble).useUpInodes},
		{name: "git-gone", tools: true, during: (*trouble).takeGit},
		{name: "hook-hangs", during: (*trouble).hangPushes},
		{name: "people-push", during: (*trouble).peoplePush},
		{name: "leaders-lost", servers: 3, during: (*trouble).loseLeaders},
		{name: "quorum-lost", servers: 3, during: (*trouble).loseQuorum},
		{name: "all-servers-killed", servers: 3, during: (*trouble).loseAll},
	}
}

// killServices kills one service after the other, and starts it again.
func (x *trouble) killServices() {
	x.repeat(300*time.Millisecond, func() {
		p := x.procs[1+x.rng.IntN(6)]
		p.kill()
		x.start(p)
	})
}

func (x *trouble) move(from, to string) {
	x.t.Helper()
	if err := os.Rename(from, to); err != nil {
		x.t.Error(err)
	}
}

// refusePushes has the origin refuse every push, as it does while somebody
// maintains it: to its branch, and below refs/forge.
func (x *trouble) refusePushes() {
	hook := x.hook("echo closed for maintenance >&2; exit 1")
	x.hold()
	if err := os.Remove(hook); err != nil {
		x.t.Error(err)
	}
}

// hook has the origin run a script at each push, and returns its path. A push
// under way finds no script that is half written.
func (x *trouble) hook(script string) string {
	hook := filepath.Join(x.origin, "hooks", "pre-receive")
	if err := os.MkdirAll(filepath.Dir(hook), 0o700); err != nil {
		x.t.Error(err)
	}
	if err := os.WriteFile(hook+".new", []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		x.t.Error(err)
	}
	x.move(hook+".new", hook)
	return hook
}

// hangPushes has a hook of the origin keep every push waiting.
func (x *trouble) hangPushes() {
	closed := filepath.Join(x.origin, "closed")
	write(x.t, closed, "")
	x.hook("while [ -e " + closed + " ]; do sleep 0.1; done")
	x.hold()
	if err := os.Remove(closed); err != nil {
		x.t.Error(err)
	}
}

// fillServer fills the disk of NATS, and starts NATS again when there is room: it does not
// find that out by itself, and whoever watches it has it start again.
func (x *trouble) fillServer() {
	filler := filepath.Join(x.dir, "nats-0", "filler")
	f, err := os.Create(filler)
	if err != nil {
		x.t.Fatal(err)
	}
	for err == nil {
		_, err = f.Write(make([]byte, 64<<10))
	}
	if !errors.Is(err, syscall.ENOSPC) {
		x.t.Errorf("the disk is not full: %v", err)
	}
	x.hold()
	if err := errors.Join(f.Close(), os.Remove(filler)); err != nil {
		x.t.Error(err)
	}
	x.procs[0].kill()
	x.start(x.procs[0])
}

// sickState is the state directory of the implementer whose disk goes wrong. The other one is well.
const sickState = "state/implementer-2"

// diskAway takes the state of one of two implementers away.
func (x *trouble) diskAway() {
	state := filepath.Join(x.dir, sickState)
	x.move(state, state+".away")
	write(x.t, state, "no directory")
	x.hold()
	if err := os.Remove(state); err != nil {
		x.t.Error(err)
	}
	x.move(state+".away", state)
}

// peoplePush has people push to the base branch all the time, as people do: they fetch and
// try again when somebody was quicker.
func (x *trouble) peoplePush() {
	r := x.clone()
	r.git("config", "user.name", "A Person")
	r.git("config", "user.email", "person@example.com")
	x.repeat(200*time.Millisecond, func() {
		r.write("people.txt", fmt.Sprintf("push %d\n", x.pushed))
		r.git("add", "people.txt")
		r.git("commit", "-q", "-m", fmt.Sprintf("Push %d", x.pushed))
		for {
			if _, err := r.tryGit("push", "-q", "origin", "HEAD:main"); err == nil {
				break
			}
			r.git("pull", "-q", "--rebase", "origin", "main")
		}
		x.pushed++
	})
}

// loseLeaders takes each server away for a while: one of them leads the streams.
func (x *trouble) loseLeaders() {
	for _, p := range x.nats() {
		p.kill()
		x.hold()
		x.start(p)
		// The next one goes when this one follows again; two of three away is another fault.
		wait.Until(x.t, "a server is back", func() bool { return strings.Contains(x.log(p), "Server is ready") && x.forge("status").code == 0 })
	}
}

// loseQuorum takes two of three servers away at once.
func (x *trouble) loseQuorum() {
	list := x.nats()
	list[1].kill()
	list[2].kill()
	x.hold()
	x.start(list[1])
	x.start(list[2])
}

// loseAll takes all servers away at once: what they had in memory is gone, as
// commands and timers are.
func (x *trouble) loseAll() {
	for _, p := range x.nats() {
		_ = p.cmd.Process.Kill()
	}
	for _, p := range x.nats() {
		<-p.gone
	}
	x.hold()
	for _, p := range x.nats() {
		x.start(p)
	}
}

// nats returns the servers.
func (c *cluster) nats() (list []*process) {
	for _, p := range c.procs {
		if p.name == "nats-server" {
			list = append(list, p)
		}
	}
	return list
}

// merged returns how many commits the base branch has beyond the first; -1
// while the origin is away.
func (c *cluster) merged() int {
	out, err := exec.CommandContext(c.t.Context(), "git", "-C", c.origin, "rev-list", "--count", "main").Output()
	n, err2 := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil || err2 != nil {
		return -1
	}
	return n - 1
}

// TestFaults has one thing after the other go wrong while intents are worked on, each in an
// installation of its own. Whatever it is, every intent is done, each change is on the base
// branch once, nothing that people pushed is lost, no intent failed or spent an attempt for it,
// and no service logs an ERROR that is not for a person to act on. It logs how long after the
// fault's end the next change was merged. make chaos runs it at the size of docs/reliability.md.
func TestFaults(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	for i, f := range testsize.Part(t, faults()) {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			f.meet(t, uint64(i))
		})
	}
}

// meet runs an installation through the fault, as often as it has to come.
func (f *fault) meet(t *testing.T, seed uint64) {
	t.Helper()
	files := map[string]string{"pfl-forge.yaml": "parallel_workers: 4\nverify: [sleep 0.3]\n" +
		"recipes:\n  line:\n    run: echo x >>\"$FILE\"\n    params: [{name: FILE}]\n"}
	for i := range *faultIntents * *faultRounds {
		files[fmt.Sprintf("f%03d.txt", i)] = "begin\n"
	}
	var env []string
	if f.servers > 1 {
		env = append(env, "FORGE_STREAM_REPLICAS="+strconv.Itoa(f.servers))
	}
	x := &trouble{cluster: prepareCluster(t, files, env...), rng: rand.New(rand.NewPCG(7, seed))}
	x.servers = f.servers
	if f.linked {
		x.link = newLink(t, strings.TrimPrefix(x.url, "nats://"))
		x.via = "nats://" + x.link.listener.Addr().String()
	}
	if f.disk != "" {
		smallDisk(t, filepath.Join(x.dir, f.disk), f.room)
	}
	if f.tools {
		x.giveTools()
	}
	x.run()
	began := time.Now()
	var nexts []float64
	for range *faultRounds {
		nexts = append(nexts, x.round(f.during).Seconds())
	}
	slices.Sort(nexts)
	t.Logf("| %s | %d intents | next merged after %.1f s; of %d rounds median %.1f s, least %.1f s | all after %.0f s |",
		f.name, x.asked, nexts[len(nexts)-1], len(nexts), nexts[len(nexts)/2], nexts[0], time.Since(began).Seconds())
	x.check(x.asked)
	x.checkErrors(f.tells...)
}

// failing matches a line of a log at level ERROR.
var failing = regexp.MustCompile(`(?m)^.*(?:level=ERROR|"level":"ERROR").*$`)

// checkErrors fails the test for each line at level ERROR in the logs of the
// services that is none of those known.
func (c *cluster) checkErrors(known ...string) {
	c.t.Helper()
	for _, p := range c.procs {
		if p.name == "nats-server" {
			continue
		}
		for _, line := range failing.FindAllString(c.log(p), -1) {
			if !slices.ContainsFunc(known, func(msg string) bool { return strings.Contains(line, msg) }) {
				c.t.Errorf("%s logs an error: %s", p.name, line)
			}
		}
	}
}

// round asks for intents, has the fault come while they are worked on, and waits until all are
// done. It returns how long after the fault's end the next change was merged; 0 if none was left.
func (x *trouble) round(during func(*trouble)) (next time.Duration) {
	x.t.Helper()
	start := x.merged()
	for i := range *faultIntents {
		id := fmt.Sprintf("line-%03d", x.asked)
		if got := x.forge("create", id, "--title", "Line "+id, "--recipe", "line", "--with", fmt.Sprintf("FILE=f%03d.txt", x.asked)); got.code != 0 {
			x.t.Fatalf("create: exit code %d\n%s%s", got.code, got.stdout, got.stderr)
		}
		if x.asked++; i == 0 {
			wait.Until(x.t, "something is merged", func() bool { return x.merged() > start })
		}
	}
	during(x)
	ended, before := time.Now(), x.merged()
	if before < x.asked+x.pushed {
		wait.Until(x.t, "something more is merged", func() bool { return x.merged() > before })
		next = time.Since(ended)
	}
	if got := x.forge("run"); got.code != 0 || !strings.Contains(got.stdout+got.stderr, fmt.Sprintf("%d done", x.asked)) {
		x.t.Fatalf("run: exit code %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	return next
}

// check compares the base branch with what was asked for.
func (x *trouble) check(n int) {
	x.t.Helper()
	r := x.clone()
	subjects := strings.Split(r.git("log", "--format=%s", "main"), "\n")
	count := map[string]int{}
	for _, s := range subjects {
		count[s]++
	}
	for i := range n {
		id := fmt.Sprintf("line-%03d", i)
		file, subject := fmt.Sprintf("f%03d.txt", i), "Line "+id
		if got := r.read(file); got != "begin\nx\n" || count[subject] != 1 {
			x.t.Errorf("%s is merged %d times, its file holds %q", subject, count[subject], got)
		}
		if got := x.forge("history", id); got.code != 0 || strings.Contains(got.stdout, "retry-agent") {
			x.t.Errorf("%s spent an attempt: exit code %d\n%s%s", id, got.code, got.stdout, got.stderr)
		}
	}
	for i := range x.pushed {
		if subject := fmt.Sprintf("Push %d", i); count[subject] != 1 {
			x.t.Errorf("%s is there %d times", subject, count[subject])
		}
	}
}
