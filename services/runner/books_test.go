package runner_test

import (
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

// installed returns the connection of a runner's account to a server with the rights that auth init writes.
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

// TestSumsAsInstalled asks a runner that has the rights of its account, and no more, for the sums of its journals, again and again while
// they grow.
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
