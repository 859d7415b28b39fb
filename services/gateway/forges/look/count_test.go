package look

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/services/gateway/intake"
)

const limited = "rules: [{name: few, do: ask, project: shop, limit: {per: author, count: 3}}]"

// counting returns a watcher that counts, and asks no forge.
func counting(t *testing.T, b *bus.Bus, rules string) *Watcher {
	t.Helper()
	parsed, err := intake.Parse("intake.yaml", []byte(rules))
	if err != nil {
		t.Fatal(err)
	}
	return New(Config{Name: "work", Rules: parsed, Intakes: b.Intakes})
}

// letIn decides on the first trigger of an issue of ada, and counts it, as a
// look does up to where it is submitted. It returns why not.
func letIn(t *testing.T, w *Watcher, number int64) (refused string, err error) {
	t.Helper()
	s := &seen{}
	s.Repository.ID, s.Repository.Name, s.Number = 7, "shop/web", number
	trigger := intake.Trigger{
		Forge: "work", Repository: "shop/web", RepositoryID: 7, Number: number, Event: intake.Issue,
		Author: intake.Account{ID: 1, Login: "ada", Kind: intake.Member, Permission: intake.Write},
	}
	d, err := w.decide(wait.Context(t), s, &trigger, 1)
	if err == nil {
		err = w.count(wait.Context(t), s, &trigger, 1, &d)
	}
	return d.Refused, err
}

// goes checks that an issue is let in, or why it is not.
func goes(t *testing.T, w *Watcher, number int64, want string) {
	t.Helper()
	if refused, err := letIn(t, w, number); err != nil || refused != want {
		t.Errorf("issue %d: refused %q, %v; want %q", number, refused, err, want)
	}
}

const reached = "the limit of 3 a day for each author is reached"

// TestCountsOutliveAGateway: a gateway that is killed behind the counting of an intent has lifted
// no limit when it begins again. What was counted and not submitted has its place, and counts once.
func TestCountsOutliveAGateway(t *testing.T) {
	t.Parallel()
	srv := bustest.StartServer(t)
	for range 3 { // each begins anew, and does the first ones again
		w := counting(t, srv.Connect(t), limited)
		goes(t, w, 1, "")
		goes(t, w, 2, "")
	}
	srv.Restart(t)
	w := counting(t, srv.Connect(t), limited)
	goes(t, w, 3, "")
	goes(t, w, 4, reached)
	goes(t, counting(t, srv.Connect(t), limited), 4, reached)
	goes(t, counting(t, srv.Connect(t), limited), 1, "")
}

// TestGatewaysShareLimits: two gateways that look at many issues at once let in
// no more than one does, and both the same event.
func TestGatewaysShareLimits(t *testing.T) {
	t.Parallel()
	srv := bustest.StartServer(t)
	a, b := counting(t, srv.Connect(t), limited), counting(t, srv.Connect(t), limited)
	var in atomic.Int64
	var running sync.WaitGroup
	for i, w := range []*Watcher{a, b} {
		running.Go(func() {
			for n := range int64(10) {
				refused, err := letIn(t, w, 1+2*n+int64(i))
				if err == nil && refused == "" {
					in.Add(1)
				} else if err != nil && !strings.Contains(err.Error(), "other gateways were in the way") {
					t.Error(err)
				}
			}
		})
	}
	running.Wait()
	if in.Load() != 3 {
		t.Errorf("%d were let in, want 3", in.Load())
	}

	same := bustest.StartServer(t)
	a, b = counting(t, same.Connect(t), limited), counting(t, same.Connect(t), limited)
	for _, w := range []*Watcher{a, b} {
		running.Go(func() { goes(t, w, 1, "") })
	}
	running.Wait()
	goes(t, a, 2, "")
	goes(t, b, 3, "")
	goes(t, a, 4, reached)
}

// TestTheServersClockCounts: a gateway whose clock is years behind, or ahead,
// gets no allowance of another day.
func TestTheServersClockCounts(t *testing.T) {
	t.Parallel()
	srv := bustest.StartServer(t)
	for n, clock := range []string{"2001-01-01", "2100-01-01", "2001-01-01"} {
		day, err := time.Parse(time.DateOnly, clock)
		if err != nil {
			t.Fatal(err)
		}
		w := counting(t, srv.Connect(t), limited)
		w.counter.now = func() time.Time { return day }
		goes(t, w, int64(n)+1, "")
	}
	for range 2 {
		goes(t, counting(t, srv.Connect(t), limited), 4, reached)
	}
	behind := counting(t, srv.Connect(t), limited)
	behind.counter.now = func() time.Time { return time.Time{}.AddDate(2000, 0, 0) }
	goes(t, behind, 4, reached)
}

// TestWhatCannotBeCountedIsNotLetIn: while what was let in cannot be read, or no more can be noted,
// nothing comes in that a limit counts, and the error says why. What no limit counts goes on.
func TestWhatCannotBeCountedIsNotLetIn(t *testing.T) {
	t.Parallel()
	const free = "rules: [{do: ask, project: shop}]"
	for what, spoil := range map[string]func(*bustest.Server){
		"cannot be read":    func(srv *bustest.Server) { srv.DeleteStream(t, "FORGE_INTAKE") },
		"cannot be counted": func(srv *bustest.Server) { srv.Fill(t, "FORGE_INTAKE") },
	} {
		srv := bustest.StartServer(t)
		w := counting(t, srv.Connect(t), limited)
		goes(t, w, 1, "")
		spoil(srv)
		if _, err := letIn(t, w, 2); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%v, want: %s", err, what)
		}
		goes(t, counting(t, srv.Connect(t), free), 3, "")
	}
}

// TestManyAuthorsCountApart: what is let in of one author takes no place of
// another one, and what a rule without a limit lets in is not noted.
func TestManyAuthorsCountApart(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	w := counting(t, b,
		"rules: [{name: free, when: {author_id: 1}, do: ask, project: shop}, {name: few, do: ask, project: shop, limit: {per: author, count: 1}}]")
	for n := range int64(3) {
		goes(t, w, n+1, "")
	}
	if w.counter.last != 0 {
		t.Error("what no limit counts was read or noted")
	}
}
