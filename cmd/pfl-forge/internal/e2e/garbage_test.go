package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/pfl-forge/pfl-forge/internal/testsize"
)

// gated is a project with a recipe that waits until a file of the test is there.
func gated(gate string) map[string]string {
	return map[string]string{"pfl-forge.yaml": `recipes:
  good: {run: 'echo x > "$FORGE_INTENT.txt"'}
  gated:
    params: [{name: GATE, default: ` + gate + `}]
    run: |
      echo x >> "$GATE.reached"
      until test -e "$GATE"; do sleep 0.02; done
      echo x > "$FORGE_INTENT.txt"
`}
}

// Garbage on every subject is put aside, shown, and keeps nobody from their work.
func TestGarbageOnEverySubject(t *testing.T) {
	testsize.OnlyFull(t)
	t.Parallel()
	gate := filepath.Join(t.TempDir(), "gate")
	r := newUnconfined(t, gated(gate))
	r.draft("slow", "recipe: gated")
	r.draft("after", "recipe: good\ndepends_on: [slow]")
	run := r.start("run")
	run.until("the recipe runs", func() bool { return exists(gate + ".reached") })

	nc := connectTo(t, r)
	name := filepath.Base(r.dir)
	want := 0
	for _, data := range []string{"garbage", "", "\x00\xff\xfe", `{"id":1}`, strings.Repeat("\x0a\xff\xff\xff\xff\x0f", 20_000)} {
		for _, subject := range subjectsOf(name) {
			if err := nc.Publish(subject, []byte(data)); err != nil {
				t.Fatal(err)
			}
		}
		want++
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	r.must(0, "create", "late", "-t", "Late", "--recipe", "good")
	// One of each kind that somebody reads: an event, a result, a command, a wake.
	run.until("the dead letters are shown", func() bool { return r.status().Dead >= 4*want })
	contains(t, "doctor", r.must(0, "doctor").stdout, "messages that could not be handled", "FORGE_")
	contains(t, "status", r.must(0, "status").stderr, "messages that could not be handled")

	write(t, gate, "")
	run.wait(0)
	r.wantStatus("done", "slow", "after", "late")
	if s := r.status(); len(s.Intents) != 3 {
		t.Errorf("there are %+v", s.Intents)
	}
	if got := r.subjects(); len(got) != 4 {
		t.Errorf("main has %v", got)
	}
	r.draft("next", "recipe: good")
	r.must(0, "run")
	r.wantStatus("done", "next")
	r.tidy()
}

// subjectsOf are subjects of every shape, about an intent that there is and one
// that there is not.
func subjectsOf(project string) []string {
	list := []string{
		"forge.project." + project, "forge.wake." + project, "forge.timer." + project + ".-.x",
		"forge.epoch.commands", "forge.epoch.wakes", "forge.control." + project + ".-",
		"forge.dead.intents." + project, "forge.dead.results.-",
		"$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.FORGE_RESULTS.runner",
	}
	list = append(list, "forge.intent."+project+".submit", "forge.intent."+project+".from.ci.submit", "forge.intent.other.submit",
		"forge.api."+project+".submit", "forge.api."+project+".by.ada.list",
		"forge.api."+project+".by.ada.show", "forge.api."+project+".by.ada.read", "forge.api.UPPER.by.ada.show")
	for _, verb := range []string{"submit", "approve", "reject", "answer", "retry", "cancel", "edit", "pause", "resume", "reflect", "nonsense"} {
		list = append(list, "forge.intent."+project+".by.ada."+verb, "forge.intent.other.by.=zz."+verb)
	}
	for _, intent := range []string{"slow", "nobody"} {
		list = append(list,
			"forge.journal."+project+"."+intent, "forge.wake."+project+"."+intent, "forge.timer."+project+"."+intent+".park",
			"forge.progress."+project+"."+intent, "forge.control."+project+"."+intent,
		)
		for _, step := range []string{"analyze", "implement", "rebase", "review", "merge", "reflect", "nonsense"} {
			list = append(list,
				"forge.result."+step+"."+project+"."+intent,
				"forge.command."+step+".any."+project+"."+intent+".-.1.1",
				"forge.command."+step+".any."+project+"."+intent+"."+intent+"-001.7.7",
				"forge.command."+step+".on.local."+project+"."+intent+"."+intent+"-001.7.7",
			)
		}
	}
	return append(list,
		"forge.journal.UPPER.x", "forge.project.UPPER", "forge.result.x.UPPER.y", "forge.wake.UPPER", "forge.command.x", "forge.intent.UPPER.submit",
	)
}

// connectTo connects to the server of a repository in which a run goes on.
func connectTo(t *testing.T, r *repo) *nats.Conn {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(r.dir, ".forge/nats/client.json"))
	if err != nil {
		t.Fatal(err)
	}
	var at struct{ URL, Token string }
	if err := json.Unmarshal(text, &at); err != nil {
		t.Fatal(err)
	}
	nc, err := nats.Connect(at.URL, nats.Token(at.Token))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}
