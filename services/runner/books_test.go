package runner_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/access"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/journal/chain"
	"github.com/pfl-forge/pfl-forge/document"
	documents "github.com/pfl-forge/pfl-forge/document/figures"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/services/runner"
)

// installed returns the connection of a runner's account to a server with the
// rights that auth init writes.
func installed(t *testing.T) *bus.Bus {
	t.Helper()
	var users []access.User
	for _, role := range access.Services() {
		account, err := access.NewAccount(role, "")
		if err != nil {
			t.Fatal(err)
		}
		users = append(users, access.User{Account: account, Proof: fmt.Sprintf("user: %s, password: %s", account.Name, account.Name)})
	}
	path := filepath.Join(t.TempDir(), "nats.conf")
	if err := os.WriteFile(path, []byte(access.Conf(users, access.Accounts(users))), 0o600); err != nil {
		t.Fatal(err)
	}
	name := string(access.Runner)
	b, err := bus.Connect(wait.Context(t), bus.Config{
		URL:         strings.Replace(bustest.StartConf(t, path), "://", "://"+name+":"+name+"@", 1),
		InboxPrefix: access.Inbox(name), Replicas: 1, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	if err := b.Ensure(wait.Context(t)); err != nil {
		t.Fatal(err)
	}
	return b
}

// TestSumsAsInstalled asks a runner that has the rights of its account, and no
// more, for the sums of its journals, again and again while they grow.
func TestSumsAsInstalled(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	b := installed(t)
	costs, health := runner.NewSpending(b.Journal), runner.Health(b.Journal)
	of, head := forge.Key{Project: project, Intent: "one"}, chain.Head{}
	for n := range 3 {
		c, err := costs.Costs(ctx, project, document.CostsRequest{})
		if err != nil || c.Total.Calls != int64(n) {
			t.Errorf("after %d calls costs count %d, %v", n, c.Total.Calls, err)
		}
		h, err := health(ctx, project, documents.HealthRequest{})
		if err != nil || h.Total.Done != min(n, 1) {
			t.Errorf("after %d records health counts %d, %v", n, h.Total.Done, err)
		}
		rec := forge.Record{
			Events: []forge.Event{{ID: fmt.Sprint(n), To: of, At: time.Now(), Message: &forge.Result{
				Attempt: forge.Attempt{Step: forge.StepReview, Number: n + 1}, Agent: "claude", Usage: forge.Usage{Calls: 1, CostUSD: 1},
			}}},
			Summary: forge.Summary{
				Key: of, UpdatedAt: time.Now(), Status: forge.StatusDone, Usage: forge.Usage{Calls: int64(n + 1), CostUSD: float64(n + 1)},
			},
			Previous: head.Hash.String(),
		}
		if head, err = b.Journal.Append(ctx, of, head, rec); err != nil {
			t.Fatal(err)
		}
	}
}

// counter counts records, and calls a function with their number.
type counter struct {
	n    int
	each func(n int)
}

func (c *counter) Add(forge.Key, *forge.Record) {
	c.n++
	c.each(c.n)
}

// TestSumsGoOn ends a request when all records of intents are read and none of the
// project's own is: the next one goes on there, and does not begin anew. Otherwise
// journals that take about as long as a request may take could never be summed up.
func TestSumsGoOn(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	of := forge.Key{Project: project, Intent: "one"}
	const records = 3
	for _, key := range []forge.Key{of, of.ProjectKey()} {
		var head chain.Head
		for n := range records {
			rec := forge.Record{
				Events:   []forge.Event{{ID: fmt.Sprint(n), To: key, At: time.Now(), Message: &forge.Pause{}}},
				Summary:  forge.Summary{Key: key, Status: forge.StatusExecuting},
				Previous: head.Hash.String(),
			}
			var err error
			if head, err = b.Journal.Append(t.Context(), key, head, rec); err != nil {
				t.Fatal(err)
			}
		}
	}
	ending, end := context.WithCancel(t.Context())
	begun := 0
	open := runner.OpenBooks(b.Journal, func() *counter {
		begun++
		return &counter{each: func(n int) {
			if n == records {
				end()
			}
		}}
	})
	if _, _, err := open(ending, project); err == nil {
		t.Fatal("a request goes on after its end")
	}
	sum, release, err := open(t.Context(), project)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	if sum.n != 2*records || begun != 1 {
		t.Errorf("%d records are counted, want %d; it was begun %d times", sum.n, 2*records, begun)
	}
}
