package outside

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/work"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/internal/transcript"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/quota"
	"github.com/pfl-forge/pfl-forge/services/gateway"
)

// does writes lines of an attempt, as a worker does.
func (w *world) does(to forge.Key, a forge.Attempt, from, n int, pad string) {
	w.t.Helper()
	out := transcript.New(transcript.Config{Bus: w.bus.Transcripts, Log: slog.New(slog.DiscardHandler)}, to, a)
	for i := range n {
		out.Add(transcript.Of(&forge.Progress{To: to, Attempt: a, Replica: "one", Kind: forge.ProgressText, Text: fmt.Sprint(from+i, pad)}))
	}
	if !out.Close() {
		w.t.Fatal("lines are not stored")
	}
}

// transcript reads a page of a transcript.
func (w *world) transcript(who, path, query string) (p document.Transcript) {
	w.t.Helper()
	got := w.request(who, http.MethodGet, path+"/transcript?"+query, "")
	got.wants(w.t, query, http.StatusOK)
	if err := json.Unmarshal([]byte(got.text), &p); err != nil {
		w.t.Fatal(err)
	}
	if len(got.text) > 512<<10 {
		w.t.Errorf("%s: a page has %d bytes", query, len(got.text))
	}
	return p
}

// TestTranscript reads what was done in attempts with a token that may only
// look, page by page, while no worker runs and while one does; another
// project's reader gets nothing, and a place that was made up leads nowhere.
func TestTranscript(t *testing.T) {
	t.Parallel()
	w := start(t, gateway.Settings{})
	path, _ := w.done("told")
	to := forge.Key{Project: "shop", Intent: forge.IntentID(path[strings.LastIndexByte(path, '/')+1:])}
	a := forge.Attempt{Task: forge.TaskID(to.Intent + "-001"), Step: forge.StepImplement, Number: 2, Claim: 1}
	const lines = 100 // of 16 KB
	w.does(to, a, 0, lines/2, strings.Repeat(" word", 3200))
	w.does(to, a, lines/2, lines/2, strings.Repeat(" word", 3200))
	a.Number = 3
	w.does(to, a, 3000, 1, "")
	w.does(to, forge.Attempt{Step: forge.StepAnalyze, Number: 1, Claim: 1}, 4000, 1, "")
	n, count := 0, 0
	for query := "step=implement&attempt=2"; ; count++ {
		p := w.transcript("viewer", path, query)
		if p.Task != a.Task || p.Step != a.Step || p.Attempt != 2 || p.Running || p.Later != "" {
			t.Fatalf("%+.300v", p)
		}
		for _, l := range p.Lines {
			if !strings.HasPrefix(l.Text, fmt.Sprint(n, " word")) || l.Kind != "text" || l.Replica != "one" || l.Claim != 1 {
				t.Fatalf("line %d is %+.100v", n, l)
			}
			n++
		}
		if p.Next == "" {
			break
		}
		query = "step=implement&attempt=2&after=" + p.Next
	}
	if n != lines || count < 5 {
		t.Errorf("%d lines on %d pages", n, count)
	}
	for query, want := range map[string]string{"step=implement": "3000", "step=analyze&attempt=1": "4000"} {
		if p := w.transcript("scanner", path, query); len(p.Lines) != 1 || p.Lines[0].Text != want {
			t.Errorf("%s: %+v", query, p)
		}
	}
	for query, want := range map[string]string{
		"step=sleep": `"field":"step"`, "attempt=0": `"field":"attempt"`, "attempt=-1": `"field":"attempt"`, "after=12": `"field":"after"`,
		"after=w-1": `"field":"after"`, "after=s1.0": `"field":"after"`, "after=w1%0a": `"field":"after"`, "task=*": `"field":"task"`, "last=1": `"field":"last"`,
		"after=w99999999999999999999": `"field":"after"`, "step=implement&step=review": `"field":"step"`,
	} {
		w.request("viewer", http.MethodGet, path+"/transcript?"+query, "").wants(t, query, http.StatusBadRequest, want)
	}
	for _, after := range []string{"w1000", "s1.0.deadbeef", "s18446744073709551615.0.00000001"} {
		w.request("viewer", http.MethodGet, path+"/transcript?step=implement&after="+after, "").wants(t, after, http.StatusConflict, `"field":"after"`)
	}
	w.request("viewer", http.MethodGet, path+"/transcript?attempt=7", "").wants(t, "no attempt", http.StatusNotFound, `"field":"attempt"`)
	w.request("viewer", http.MethodGet, path+"/transcript?task=other-001", "").wants(t, "another's task", http.StatusNotFound, "no such attempt")
	w.request("viewer", http.MethodGet, path+"/transcript?step=rebase", "").wants(t, "none stored", http.StatusNotFound, "has no transcript")
	w.request("banker", http.MethodGet, path+"/transcript", "").wants(t, "of another project", http.StatusForbidden)
	other := strings.Replace(path, "/shop/", "/bank/", 1)
	w.request("banker", http.MethodGet, other+"/transcript?step=implement", "").wants(t, "its name elsewhere", http.StatusNotFound, "there is no intent")
}

// TestTranscriptOfARunningAttempt: who reads a transcript that is being written
// gets what is there, and where to go on later.
func TestTranscriptOfARunningAttempt(t *testing.T) {
	t.Parallel()
	w := start(t, gateway.Settings{})
	w.decides(quota.Limits{})
	path, plan := w.proposed("running")
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	begun := make(chan *forge.Command, 1)
	ended := make(chan error, 1)
	go func() {
		cfg := work.Config{Step: forge.StepImplement, Replica: "one", Parallel: 1}
		ended <- w.bus.Commands.Consume(ctx, cfg, func(ctx context.Context, j *work.Job) error {
			select {
			case begun <- &j.Command:
			default: // it comes again while the consumer ends
			}
			<-ctx.Done()
			return ctx.Err()
		})
	}()
	w.request("bob", http.MethodPost, path+"/approve", `{"plan": "`+plan+`"}`).wants(t, "approve", http.StatusOK)
	c := wait.For(t, begun)
	if p := w.transcript("viewer", path, ""); !p.Running || p.Step != forge.StepImplement || len(p.Lines) != 0 || p.Next+p.Later != "" {
		t.Errorf("before the first line there is %+v", p)
	}
	w.does(c.To, c.Attempt, 0, 2, "")
	p := w.transcript("viewer", path, "")
	if !p.Running || len(p.Lines) != 2 || p.Later == "" || p.Next != "" {
		t.Fatalf("there is %+v", p)
	}
	if again := w.transcript("viewer", path, "after="+p.Later); len(again.Lines) != 0 || again.Later != p.Later {
		t.Errorf("nothing is new, and there is %+v", again)
	}
	w.does(c.To, c.Attempt, 2, 1, "")
	if more := w.transcript("viewer", path, "after="+p.Later); len(more.Lines) != 1 || more.Lines[0].Text != "2" || more.Later == p.Later {
		t.Errorf("later there is %+v", more)
	}
	cancel()
	if err := wait.For(t, ended); err != nil {
		t.Error(err)
	}
}
