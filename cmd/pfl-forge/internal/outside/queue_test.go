package outside

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/quota"
	"github.com/pfl-forge/pfl-forge/services/gateway"
)

// queueOf returns what the API says of the merge queue of the project.
func (w *world) queueOf() (q document.Queue) {
	w.t.Helper()
	got := w.request("viewer", http.MethodGet, "/api/v1/projects/shop/queue", "")
	got.wants(w.t, "the queue", http.StatusOK)
	if err := json.Unmarshal([]byte(got.text), &q); err != nil {
		w.t.Fatal(err)
	}
	return q
}

// approved has bob approve an intent of ada whose body says what to do.
func (w *world) approved(body string) (path string) {
	w.t.Helper()
	path = w.request("ada", http.MethodPost, intents, `{"title": "Change `+body+`", "body": "`+body+`"}`).header.Get("Location")
	var plan string
	wait.Until(w.t, "it waits for approval", func() bool {
		shown := w.request("ada", http.MethodGet, path, "")
		plan, _ = shown.body["plan"].(string)
		return shown.body["waiting"] == "approval" && plan != ""
	})
	w.request("bob", http.MethodPost, path+"/approve", `{"plan": "`+plan+`"}`).wants(w.t, "approve", http.StatusOK)
	return path
}

// TestQueueIsTold: whoever may look is told the changes in the merge queue in
// their order, with what each waits for, and what keeps all work of the project
// waiting, by the API and on the board, as it is now; nobody else is.
func TestQueueIsTold(t *testing.T) {
	t.Parallel()
	w := start(t, gateway.Settings{Console: gateway.Console{Key: filepath.Join(t.TempDir(), "k"), Projects: []string{"shop"}}})
	w.decides(quota.Limits{})
	const address = "/api/v1/projects/shop/queue"
	vic := w.signIn("viewer")
	if q := w.queueOf(); q.Paused || len(q.Facts)+len(q.Changes) > 0 || q.Parallel != 1 || q.Batch != 1 {
		t.Errorf("before anything it is %+v", q)
	}
	p := vic.get("/console/board")
	p.wants(t, "before anything", http.StatusOK, `<div id="facts" data-part></div>`, `<div id="train" data-part></div>`)
	release := make(chan struct{})
	free := sync.OnceFunc(func() { close(release) })
	t.Cleanup(free)
	w.carries(func(ctx context.Context, c *forge.Command) (forge.Output, []byte) {
		switch {
		case c.Attempt.Step == forge.StepMerge:
			select {
			case <-release:
			case <-ctx.Done():
				return nil, nil
			}
		case c.Attempt.Step == forge.StepImplement && c.Intent.Body == "refused":
			return &forge.Failure{Reason: forge.FailAuth, Message: "the key has ended <script>" + hides}, nil
		case c.Attempt.Step == forge.StepImplement:
			return produced(c), changed(c.Attempt.Number)
		}
		return produced(c), nil
	})
	paths := []string{w.approved("one"), w.approved("two"), w.approved("three")}
	var q document.Queue
	wait.Until(t, "three changes are in the queue", func() bool { q = w.queueOf(); return len(q.Changes) == 3 })
	for i, c := range q.Changes {
		words := []string{"is being merged", "second in the merge queue", "third in the merge queue"}[i]
		state := []document.QueueState{document.QueueMerging, document.QueueQueued, document.QueueQueued}[i]
		if c.Position != i+1 || c.Words != words || c.State != state || !strings.HasPrefix(string(c.Task), string(c.Intent)+"-") || c.Seconds != nil {
			t.Errorf("change %d is %+v", i, c)
		}
	}
	p = vic.get("/console/board")
	p.wants(t, "with a queue", http.StatusOK, `Merge queue <span class="count">3</span>`, "is being merged", "third in the merge queue")
	for i, c := range q.Changes {
		p.wants(t, "with a queue", http.StatusOK, fmt.Sprintf(`<td class="num">%d</td>`, i+1), "<code>shop/"+string(c.Task)+"</code>")
	}
	w.approved("refused")
	wait.Until(t, "the account refuses", func() bool { q = w.queueOf(); return len(q.Facts) == 1 })
	if f := q.Facts[0]; f.Fact != forge.FailAuth || f.Of != "claude" || !strings.HasPrefix(f.Why, "the key has ended") || f.Since.IsZero() || f.Until != nil {
		t.Errorf("the fact is %+v", f)
	}
	p = vic.get("/console/board?search=nothing+is+like+this")
	p.wants(t, "with a fact", http.StatusOK, "calls no agent of claude, whose account refuses", "the key has ended &lt;script&gt;", "No intent is like this")
	if strings.Contains(p.text, "<script>") || strings.Contains(p.text, "\u202e") {
		t.Error("the words of an account are HTML, or hide")
	}
	w.request("ada", http.MethodPost, paths[2]+"/cancel", "{}").wants(t, "cancel", http.StatusOK)
	wait.Until(t, "it is gone", func() bool { return len(w.queueOf().Changes) == 2 })
	free()
	wait.Until(t, "the queue is empty", func() bool { return len(w.queueOf().Changes) == 0 })
	w.request("banker", http.MethodGet, address, "").wants(t, "another project", http.StatusForbidden)
	w.request("", http.MethodGet, address, "").wants(t, "without a token", http.StatusUnauthorized)
	w.request("viewer", http.MethodGet, address+"?of=x", "").wants(t, "a parameter", http.StatusBadRequest, `"of"`)
}

// TestBoardWithoutARunnersQueue: where a queue cannot be told, the board says
// so, and the rest of it is there.
func TestBoardWithoutARunnersQueue(t *testing.T) {
	t.Parallel()
	w := bookkeeping(t)
	w.accounts(func(forge.ProjectID, document.CostsRequest) (document.Costs, error) {
		return document.Costs{Rows: []document.CostRow{}}, nil
	})
	w.signIn("viewer").get("/console/board").wants(t, "with a runner that has no queue", http.StatusOK,
		"What these wait for, and their merge queues, cannot be read now: <code>shop</code>", "No intent is like this")
}
