package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pfl-forge/pfl-forge/agent/agenttest"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/objects"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// moment is when an agent is to be killed.
type moment string

const (
	atStart  moment = "before the first reply"
	inTool   moment = "during a tool"
	atCommit moment = "after a commit"
	atAnswer moment = "after the answer"
	atReview moment = "when its work is rejected"
)

// rejected is the intent whose first review finds something, and complaint is what.
const (
	rejected  = "03"
	complaint = "the fourth file is missing"
)

// longNap begins the seconds for which a tool sleeps whose agent is killed meanwhile, and
// the intent's number ends them. It outlasts every wait of the killer.
const longNap = "600.7"

// request is what an implementing agent asked the model.
type request struct {
	number  string // of the intent
	session string
	replica string
	life    int  // of the replica, counted from 1
	results int  // of tools, in the conversation
	goesOn  bool // in a conversation that was there before
	mends   bool // what the review found
}

// due is an agent that has come to the moment when it is to be killed.
type due struct {
	request
	moment moment
	done   chan struct{} // closed when it is decided
}

// outages plays the model, and kills implementers.
type outages struct {
	t     *testing.T
	c     *cluster
	store *objects.Store
	dues  chan due

	mu     sync.Mutex
	plan   map[string][]moment // by the intent's number
	asked  []request
	life   map[string]int // how many lives of a replica are over
	frozen map[string]bool
	killed []due
	twice  map[string]bool
}

func newOutages(t *testing.T, intents, kills int) *outages {
	t.Helper()
	o := &outages{
		t: t, dues: make(chan due, 100), plan: map[string][]moment{rejected: {atReview}},
		life: map[string]int{}, frozen: map[string]bool{}, twice: map[string]bool{},
	}
	moments := []moment{atStart, inTool, atCommit, atAnswer}
	for k := range kills {
		n := fmt.Sprintf("%02d", k%intents)
		o.plan[n] = append(o.plan[n], moments[(k+k/intents)%len(moments)])
	}
	cli := agenttest.ClaudeCLI(t)
	model := agenttest.NewServer(t)
	env := onPath(cli)
	env.set("ANTHROPIC_BASE_URL", model.Script("claude", o.reply))
	env.set("ANTHROPIC_API_KEY", "no-key")
	o.c = newCluster(t, map[string]string{"pfl-forge.yaml": "agent: claude\nverify:\n  - test ! -e broken\n"}, env...)
	b, err := bus.Connect(t.Context(), o.c.administrator())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	o.store = b.Objects
	return o
}

var (
	intentNumber = regexp.MustCompile(`Write files (\d\d)`)
	replicaDir   = regexp.MustCompile(`/state/(implementer-\d)/`)
)

func (o *outages) reply(r agenttest.Request) agenttest.Reply {
	switch {
	case strings.Contains(r.System, "You plan changes"):
		return agenttest.Answer(object{
			"type": "feature", "risk": "low",
			"tasks": []object{{"name": "write", "title": "Write them", "plan": "Write them.", "relevant_files": []string{}, "complexity": "low"}},
		})(r)
	case strings.Contains(r.System, "You carry out one task"):
		if m := intentNumber.FindSubmatch(r.Body); m != nil {
			return o.implement(r, string(m[1]))
		}
		o.t.Errorf("a request for no intent: %s", r.LastUser)
		return agenttest.Reply{Status: 400}
	case strings.Contains(r.System, lookingBack):
		return nothingToPropose(r)
	}
	return o.review(r)
}

// review rejects one change; the implementer that made it is gone when it is to be
// mended.
func (o *outages) review(r agenttest.Request) agenttest.Reply {
	last, ok := o.last(rejected)
	if ok && bytes.Contains(r.Body, []byte("Write files "+rejected)) && o.take(last, atReview) {
		o.hold(last, atReview)
		return agenttest.Reviews(complaint)(r)
	}
	return agenttest.Reviews()(r)
}

// implement writes three files, in two commits.
func (o *outages) implement(r agenttest.Request, n string) agenttest.Reply {
	q := o.note(r, n)
	write := func(name string) agenttest.Step {
		return agenttest.UseIn("Write", func(dir string) any {
			return object{"file_path": filepath.Join(dir, name+n+".txt"), "content": name + "\n"}
		})
	}
	commit := func(message string) agenttest.Step {
		return agenttest.Use("Bash", object{"command": "git add -A && git commit -q -m '" + message + "' || git log -1"})
	}
	said := func(text string) bool { return bytes.Contains(r.Body, []byte(text)) }
	nap := "0.01"
	switch {
	case q.mends && !said("d"+n+".txt"):
		return write("d")(r)
	case q.mends && !said("'three'"):
		return commit("three")(r)
	case q.results == 0:
		o.maybe(q, atStart)
	case q.results == 2:
		o.maybe(q, atCommit)
		if o.take(q, inTool) {
			nap = longNap + n
			o.dues <- due{q, inTool, make(chan struct{})}
		}
	case !q.mends && said("all is 42"):
		o.maybe(q, atAnswer)
		return agenttest.Answer(object{"summary": "wrote them"})(r)
	case !q.mends && q.results >= 5:
		// A resumed conversation has a result of the tool that was killed with
		// its agent, which says that it was interrupted. So what was not done
		// is done before the answer, and its output says that it ran.
		return agenttest.Use("Bash", object{"command": "for f in a b c; do test -e ${f}" + n + ".txt || echo $f > ${f}" + n + ".txt; done; " +
			"git add -A && git commit -q -m rest; echo all is $((6*7))"})(r)
	}
	return agenttest.Steps(
		write("a"), commit("one"), agenttest.Use("Bash", object{"command": "sleep " + nap + " && echo b > b" + n + ".txt", "timeout": 600000}),
		write("c"), commit("two"), agenttest.Answer(object{"summary": "wrote them"}),
	)(r)
}

// note records a request, and holds it while its replica is about to be killed.
func (o *outages) note(r agenttest.Request, n string) request {
	q := request{
		number: n, session: r.Header.Get("X-Claude-Code-Session-Id"), results: r.ToolResults,
		goesOn: bytes.Contains(r.Body, []byte("Go on with the task")), mends: bytes.Contains(r.Body, []byte(complaint)),
	}
	if m := replicaDir.FindStringSubmatch(r.Dir); m != nil {
		q.replica = m[1]
	} else {
		o.t.Errorf("a request from nowhere: %s", r.Dir)
	}
	wait.Poll(o.t.Context(), func() bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		if q.life == 0 {
			q.life = o.life[q.replica] + 1
			o.asked = append(o.asked, q)
		}
		return !o.frozen[q.replica] || q.life != o.life[q.replica]+1
	})
	return q
}

// last returns the last request about an intent.
func (o *outages) last(number string) (request, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, q := range slices.Backward(o.asked) {
		if q.number == number {
			return q, true
		}
	}
	return request{}, false
}

// take reports once whether the plan has the moment.
func (o *outages) take(q request, m moment) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	i := slices.Index(o.plan[q.number], m)
	if i < 0 {
		return false
	}
	o.plan[q.number] = slices.Delete(o.plan[q.number], i, i+1)
	return true
}

// again puts a moment back into the plan.
func (o *outages) again(d due) {
	o.mu.Lock()
	o.plan[d.number] = append(o.plan[d.number], d.moment)
	o.mu.Unlock()
	close(d.done)
}

// maybe holds an agent at a moment when it is to be killed.
func (o *outages) maybe(q request, m moment) {
	if o.take(q, m) {
		o.hold(q, m)
	}
}

// hold waits until whoever is due has been killed.
func (o *outages) hold(q request, m moment) {
	d := due{q, m, make(chan struct{})}
	o.dues <- d
	select {
	case <-d.done:
	case <-o.t.Context().Done():
	}
}

// agentsWith returns the calls of agents that have a process with some text in its
// command line, by their marks.
func agentsWith(text string) map[string]bool {
	runs := map[string]bool{}
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		line, err := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		if err != nil || !bytes.Contains(line, []byte(text)) {
			continue
		}
		env, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "environ"))
		for kv := range bytes.SplitSeq(env, []byte{0}) {
			if mark, ok := bytes.CutPrefix(kv, []byte("FORGE_RUN_ID=")); ok {
				runs[string(mark)] = true
			}
		}
	}
	return runs
}
