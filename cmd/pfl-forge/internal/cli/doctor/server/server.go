// Package server has doctor's checks of the server that a project is at, and of
// the services that work for it.
//
// Examine makes them for a repository's own server (server.go, journals.go) and
// for an organisation's, where a runner is asked which replicas are up
// (services.go, executors.go); deep.go has the slow ones. Repair, in
// journals.go, is the only one that changes anything, and asks before it does.
package server

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/doctor/diagnosis"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/document"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/target"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
)

// Examine checks the server that the command line names, or else the repository's own and the
// files of which it has the intents. It also returns the replicas that work for an organisation.
//
// An organisation without any runner yet is broken, although its server answers.
// A repository in which nothing was submitted has no server, which is healthy.
// One that answers no ping is broken, and its other checks are made all the same.
func Examine(ctx context.Context, a *kit.App, deep bool) ([]diagnosis.Finding, []Replica) {
	t, err := target.Reader(ctx, a)
	if errors.Is(err, bus.ErrNoRunner) {
		return []diagnosis.Finding{
			diagnosis.New("server", diagnosis.Healthy, "connected", ""),
			diagnosis.New("runner", diagnosis.Broken, err.Error(), "a run cannot start before"),
		}, nil
	}
	if err != nil {
		return []diagnosis.Finding{diagnosis.New("server", diagnosis.Broken, err.Error(), "")}, nil
	}
	defer t.Close()
	var files []diagnosis.Finding
	if !t.Remote {
		files = append(checkStore(ctx, t), checkFiles(ctx, t)...)
	}
	if t.Bus == nil {
		return append(files, diagnosis.New("server", diagnosis.Healthy, "not used yet: the first intent starts it", "")), nil
	}
	detail := "starts when it is needed"
	switch {
	case t.Remote:
		detail = "connected, project " + string(t.Project)
	case !t.Owner:
		pid, since := t.Session.Holder()
		detail = fmt.Sprintf("running (process %d, since %s)", pid, since.Local().Format(time.DateTime))
	}
	found := []diagnosis.Finding{diagnosis.New("server", diagnosis.Healthy, detail, "")}
	if err := ping(ctx, t); err != nil {
		found[0] = diagnosis.New("server", diagnosis.Broken, err.Error(), "")
	}
	var replicas []Replica
	if t.Remote {
		var more []diagnosis.Finding
		more, replicas = checkServices(ctx, t)
		found = slices.Concat(found, checkCertificate(t.Bus.Certificate(), time.Now()), more)
	}
	if deep {
		found = append(found, checkHistory(ctx, a, t)...)
	}
	return slices.Concat(files, found, checkJournals(ctx, t), checkAccounts(ctx, t), checkDead(ctx, t)), replicas
}

// shownDead bounds the dead letters that are shown one by one.
const shownDead = 5

const (
	// soon is how long before its end a certificate is told of, and lastPart the part
	// of its life that this is at most: one that lives for days is renewed every day.
	soon, lastPart = 30 * 24 * time.Hour, 6
)

// checkCertificate warns of a server's certificate that ends soon: from then on
// every connection is refused, of services and of people. c is nil on a
// connection without TLS, and then there is no finding, as for a certificate that
// is good for long enough: 30 days, or a sixth of its life if that is shorter.
func checkCertificate(c *x509.Certificate, now time.Time) []diagnosis.Finding {
	if c == nil || c.NotAfter.Sub(now) > min(soon, c.NotAfter.Sub(c.NotBefore)/lastPart) {
		return nil
	}
	return []diagnosis.Finding{diagnosis.New(
		"certificate", diagnosis.Warning,
		"the server's certificate expires on "+c.NotAfter.Local().Format(time.DateTime)+"; after that no service and no person can connect",
		"renew it (pfl-forge auth init --role server, if that made it), and reload the server",
	)}
}

// checkAccounts names the accounts of agents that refuse calls, so that none is
// made. The rules note such an account as a fact of the project (ADR-0068),
// which is read here; no account is tried.
func checkAccounts(ctx context.Context, t *target.Target) (found []diagnosis.Finding) {
	projects, err := t.Bus.Journal.ProjectSummaries(ctx, t.Project)
	if err != nil {
		return []diagnosis.Finding{diagnosis.New("accounts", diagnosis.Warning, err.Error(), "")}
	}
	// Healthy ones are not listed: which accounts there are is not known before they are called.
	for _, a := range document.Accounts(projects) {
		found = append(found, diagnosis.New("account of "+a.Agent, diagnosis.Warning, a.Line(), ""))
	}
	return found
}

// checkDead names the messages that no replica could handle, the last ones one
// by one. They are a warning: what they asked for did not happen, and all else
// goes on. Those that are shown are the newest, the oldest of them first.
func checkDead(ctx context.Context, t *target.Target) []diagnosis.Finding {
	dead, err := t.Dead(ctx)
	if err != nil {
		return []diagnosis.Finding{diagnosis.New("dead letters", diagnosis.Warning, err.Error(), "")}
	}
	if len(dead) == 0 {
		return []diagnosis.Finding{diagnosis.New("dead letters", diagnosis.Healthy, "none", "")}
	}
	found := []diagnosis.Finding{diagnosis.New(
		"dead letters", diagnosis.Warning, render.Count(len(dead), "message")+" that could not be handled",
		"they have no effect, and are removed after 90 days",
	)}
	for i := range dead[max(0, len(dead)-shownDead):] {
		d := &dead[max(0, len(dead)-shownDead)+i]
		found = append(found, diagnosis.New("dead letter", diagnosis.Warning, fmt.Sprintf("%s %s/%d %s: %s",
			d.At.Local().Format(time.DateTime), d.Stream, d.Seq, d.Subject, d.Reason), ""))
	}
	return found
}

// ping returns the error of a server that does not answer, and nil if it does.
// A run of this repository is asked through its session, an organisation's server by a ping.
func ping(ctx context.Context, t *target.Target) error {
	if t.Session != nil {
		return t.Session.Healthy(ctx)
	}
	if t.Bus == nil {
		return errors.New("no connection")
	}
	return t.Bus.Ping(ctx)
}

// checkFiles returns the problems of the files that a person wrote for pfl-forge. Each is a warning
// with its line, if it has one: drafts that are wrong are not taken in, and the rest goes on.
func checkFiles(ctx context.Context, t *target.Target) []diagnosis.Finding {
	look, err := t.Repo.Look(t.Bus, false)
	if err != nil {
		return []diagnosis.Finding{diagnosis.New("files", diagnosis.Warning, err.Error(), "")}
	}
	list, err := t.FileProblems(ctx, look)
	if err = errors.Join(err, look.Close()); err != nil {
		return []diagnosis.Finding{diagnosis.New("files", diagnosis.Warning, err.Error(), "")}
	}
	var found []diagnosis.Finding
	for i := range list {
		p := &list[i]
		where := p.Path
		if p.Line > 0 {
			where = fmt.Sprintf("%s:%d", where, p.Line)
		}
		found = append(found, diagnosis.New("files", diagnosis.Warning, strings.TrimSpace(where+" "+p.Field+" "+p.Reason), p.Hint))
	}
	return found
}
