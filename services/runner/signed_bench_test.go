package runner_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/access"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/signed"
	"github.com/pfl-forge/pfl-forge/proof"
	"github.com/pfl-forge/pfl-forge/service"
	"github.com/pfl-forge/pfl-forge/services/runner"
)

const (
	// asker is the person who submits.
	asker = "ada"
	// watcher is who sees everything, to know when intents end.
	watcher = "watcher"
)

// office is a server with an account for each service and for asker, with the
// permissions that auth init writes, and the files of their nkeys.
type office struct {
	b        *testing.B
	url      string
	accounts []access.Account
	// folder has the nkeys. signs says that each account signs what it sends,
	// and checks that the runner believes nothing else.
	folder        string
	signs, checks bool
}

// openOffice starts the server. Every write is fsynced.
func openOffice(b *testing.B, signs, checks bool) *office {
	b.Helper()
	o := &office{b: b, folder: b.TempDir(), signs: signs, checks: checks}
	var users []access.User
	for _, role := range access.Roles() {
		if role == access.Submitter || role == access.Follower {
			continue // nothing is asked for by a system
		}
		name := ""
		if role == access.Operator {
			name = asker
		}
		account, err := access.NewAccount(role, name)
		if err != nil {
			b.Fatal(err)
		}
		o.accounts = append(o.accounts, account)
		o.writeKey(account.Name)
		users = append(users, access.User{Account: account, Proof: fmt.Sprintf("user: %s, password: %s", account.Name, account.Name)})
	}
	path := filepath.Join(b.TempDir(), "nats.conf")
	all := "users: [ { user: " + watcher + ", password: " + watcher + " }"
	conf := strings.Replace(access.Conf(users, o.accounts), "users: [", all, 1) + "\njetstream { sync_interval: always }\n"
	if err := os.WriteFile(path, []byte(conf), 0o600); err != nil {
		b.Fatal(err)
	}
	o.url = bustest.StartConf(b, path)
	return o
}

// writeKey makes the nkey of an account. Its file is an hour old, as those of
// an installation are older than a moment.
func (o *office) writeKey(account string) {
	o.b.Helper()
	_, seed, err := access.NewKey()
	if err == nil {
		err = os.WriteFile(o.keyFile(account), seed, 0o600)
	}
	if err == nil {
		then := time.Now().Add(-time.Hour)
		err = os.Chtimes(o.keyFile(account), then, then)
	}
	if err != nil {
		o.b.Fatal(err)
	}
}

// keyFile returns the path of the nkey of an account.
func (o *office) keyFile(account string) string { return filepath.Join(o.folder, account) }

// connect returns the connection of an account.
func (o *office) connect(account string) *bus.Bus {
	o.b.Helper()
	cfg := bus.Config{
		URL: strings.Replace(o.url, "://", "://"+account+":"+account+"@", 1), InboxPrefix: access.Inbox(account),
		Replicas: 1, Logger: slog.New(slog.DiscardHandler),
	}
	if account == asker {
		cfg.Person, cfg.Project = account, projectOf(0)
	}
	if o.signs {
		cfg.Key = bus.SigningKey(o.keyFile(account), account)
	}
	conn, err := bus.Connect(o.b.Context(), cfg)
	if err != nil {
		o.b.Fatal(err)
	}
	o.b.Cleanup(conn.Close)
	return conn
}

// authors returns the keys of the accounts, nil where nothing is checked.
func (o *office) authors() *signed.Keys {
	o.b.Helper()
	if !o.checks {
		return nil
	}
	var list proof.Signers
	for _, a := range o.accounts {
		if !proof.Sends(string(a.Role)) {
			continue
		}
		key, err := bus.SigningKey(o.keyFile(a.Name), a.Name)()
		if err != nil {
			o.b.Fatal(err)
		}
		list = append(list, key.AccountSigner(string(a.Role)))
	}
	path := filepath.Join(o.b.TempDir(), "allowed_signers")
	if err := os.WriteFile(path, []byte(list.String()), 0o600); err != nil {
		o.b.Fatal(err)
	}
	keys, err := signed.OpenKeys(path, nil)
	if err != nil {
		o.b.Fatal(err)
	}
	return keys
}

// system returns a runner in the office, with bare workers that have the
// account of their service each.
func (o *office) system() *forgeSystem {
	o.b.Helper()
	conns := map[string]*bus.Bus{}
	for _, step := range forge.Steps() {
		if name := step.Service(); conns[name] == nil {
			conns[name] = o.connect(name)
		}
	}
	f := &forgeSystem{bus: o.connect("runner"), asks: o.connect(asker), name: asker, sees: o.connect(watcher), meet: newMeeting(), projects: 1}
	f.start(o.b, runner.Config{Authors: o.authors()}, func(ctx context.Context, _ testing.TB, _ *bus.Bus, meet *meeting) {
		var group sync.WaitGroup
		for _, step := range forge.Steps() {
			group.Go(func() { bareWorker(ctx, step, conns[step.Service()], meet) })
		}
		group.Wait()
	})
	return f
}

// figures are what rounds of one system measured: intents per second, and the
// processor time of an intent.
type figures struct{ rates, costs []float64 }

// BenchmarkOrchestrationSigned measures what signatures cost, in three systems with the same
// accounts: in one of them nothing is signed, in one all senders sign, and in one the runner
// checks that, too. Intents come in small heaps, to one system after the other in an order
// that changes from round to round, so that nothing that comes at intervals, such as
// collections of garbage, always meets the same one. Of intents per second the median of all
// rounds' ratios is reported. The processor time of the process, which other processes
// disturb less, is compared over all rounds. Server, runner, workers and senders are one
// process here and share its processors; in an installation only the checks are the runner's.
func BenchmarkOrchestrationSigned(b *testing.B) {
	service.CollectSeldom(os.Getenv) // as every main does
	systems := []*forgeSystem{openOffice(b, false, false).system(), openOffice(b, true, false).system(), openOffice(b, true, true).system()}
	const heap, heaps = 150, 4
	got := make([]figures, len(systems))
	for turn, s := range systems { // what happens once: consumers, tables, the first collections
		saturate(b, s, -1-turn, heap)
	}
	order := rand.New(rand.NewPCG(1, 2))
	round := 0
	for b.Loop() {
		for range heaps {
			round++
			for _, k := range order.Perm(len(systems)) {
				before := processorTime(b)
				got[k].rates = append(got[k].rates, saturate(b, systems[k], round, heap))
				got[k].costs = append(got[k].costs, (processorTime(b)-before).Seconds()/heap)
			}
		}
	}
	bare, signs, checks := got[0], got[1], got[2]
	b.ReportMetric(median(checks.rates), "intents/s")
	b.ReportMetric(median(bare.rates), "unsigned-intents/s")
	b.ReportMetric(median(ratios(checks.rates, signs.rates)), "checked-ratio")
	b.ReportMetric(median(ratios(checks.rates, bare.rates)), "signed-ratio")
	b.ReportMetric(mean(signs.costs)/mean(checks.costs), "checked-cpu-ratio")
	b.ReportMetric(mean(bare.costs)/mean(checks.costs), "signed-cpu-ratio")
	b.ReportMetric(1000*mean(bare.costs), "unsigned-cpu-ms/intent")
}

// processorTime returns the processor time that the process has used.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// ratios divides the figures of one list by those of another, round by round.
func ratios(a, b []float64) []float64 {
	list := slices.Clone(a)
	for i := range list {
		list[i] /= b[i]
	}
	return list
}

// median returns the one in the middle.
func median(list []float64) float64 {
	list = slices.Sorted(slices.Values(list))
	return list[len(list)/2]
}

// mean returns the average.
func mean(list []float64) float64 {
	sum := 0.0
	for _, x := range list {
		sum += x
	}
	return sum / float64(len(list))
}
