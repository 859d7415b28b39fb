package runner_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

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

// office is a server with an account for each service and for asker, with the permissions that auth init
// writes. Where it signs, each account signs what it sends, and the runner believes nothing else.
type office struct {
	b        *testing.B
	url      string
	accounts []access.Account
	signs    bool
}

// openOffice starts the server. Every write is fsynced.
func openOffice(b *testing.B, signs bool) *office {
	b.Helper()
	o := &office{b: b, signs: signs}
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

// key returns the signing key of an account.
func (o *office) key(account string) *proof.Key {
	o.b.Helper()
	k, err := proof.Derive([]byte(strings.Repeat(account+"-", 32)), account)
	if err != nil {
		o.b.Fatal(err)
	}
	return k
}

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
		k := o.key(account)
		cfg.Key = func() (*proof.Key, error) { return k, nil }
	}
	conn, err := bus.Connect(o.b.Context(), cfg)
	if err != nil {
		o.b.Fatal(err)
	}
	o.b.Cleanup(conn.Close)
	return conn
}

// authors returns the keys of the accounts, nil where nothing is signed.
func (o *office) authors() *signed.Keys {
	o.b.Helper()
	if !o.signs {
		return nil
	}
	var list proof.Signers
	for _, a := range o.accounts {
		if proof.Sends(string(a.Role)) {
			list = append(list, o.key(a.Name).AccountSigner(string(a.Role)))
		}
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

// system returns a runner in the office, with bare workers that have the account of their service each.
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

// BenchmarkOrchestrationSigned measures what it costs that every sender signs and the runner checks that: intents
// per second at saturation with and without, in turn, on two servers with the same accounts. Each round's
// ratio is taken by itself, because the machine's disk is not the same in each.
func BenchmarkOrchestrationSigned(b *testing.B) {
	service.CollectSeldom(os.Getenv) // as every main does
	with, without := openOffice(b, true).system(), openOffice(b, false).system()
	const many = 500
	var rate, bare, ratios []float64
	round := 0
	for b.Loop() {
		round++
		first, second := with, without
		if round%2 == 0 { // neither always has the warmer caches
			first, second = without, with
		}
		a, c := saturate(b, first, round, many), saturate(b, second, round, many)
		if round%2 == 0 {
			a, c = c, a
		}
		rate, bare, ratios = append(rate, a), append(bare, c), append(ratios, a/c)
	}
	for _, list := range [][]float64{rate, bare, ratios} {
		slices.Sort(list)
	}
	b.ReportMetric(rate[len(rate)/2], "intents/s")
	b.ReportMetric(bare[len(bare)/2], "unsigned-intents/s")
	b.ReportMetric(ratios[len(ratios)/2], "signed-ratio")
}
