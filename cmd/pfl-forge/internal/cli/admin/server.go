package admin

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/document"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/target"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
)

// examineServer checks the server that the command line names, or else the repository's
// own and the files of which it has the intents. It also returns the replicas that work for an organisation.
//
// An organisation without any runner yet is broken, although its server answers. A repository in which nothing was
// submitted has no server, which is healthy. One that answers no ping is broken, and its other checks are made all the
// same.
func examineServer(ctx context.Context, a *kit.App, deep bool) ([]finding, []replica) {
	t, err := target.Reader(ctx, a)
	if errors.Is(err, bus.ErrNoRunner) {
		return []finding{{"server", healthy, "connected", ""}, {"runner", broken, err.Error(), "a run cannot start before"}}, nil
	}
	if err != nil {
		return []finding{{"server", broken, err.Error(), ""}}, nil
	}
	defer t.Close()
	var files []finding
	if !t.Remote {
		files = append(checkStore(ctx, t), checkFiles(ctx, t)...)
	}
	if t.Bus == nil {
		return append(files, finding{"server", healthy, "not used yet: the first intent starts it", ""}), nil
	}
	detail := "starts when it is needed"
	switch {
	case t.Remote:
		detail = "connected, project " + string(t.Project)
	case !t.Owner:
		pid, since := t.Session.Holder()
		detail = fmt.Sprintf("running (process %d, since %s)", pid, since.Local().Format(time.DateTime))
	}
	found := []finding{{"server", healthy, detail, ""}}
	if err := ping(ctx, t); err != nil {
		found[0] = finding{"server", broken, err.Error(), ""}
	}
	var replicas []replica
	if t.Remote {
		var more []finding
		more, replicas = checkServices(ctx, t)
		found = slices.Concat(found, checkCertificate(t.Bus.Certificate(), time.Now()), more)
	}
	if deep {
		found = append(found, checkHistory(ctx, a, t)...)
	}
	return slices.Concat(files, found, checkJournals(ctx, t), checkAccounts(ctx, t), checkDead(ctx, t)), replicas
}

const (
	// soon is how long before its end a certificate is told of, and lastPart the part of its life that this is at most: one that lives
	// for days is renewed every day.
	soon, lastPart = 30 * 24 * time.Hour, 6
)

// checkCertificate warns of a server's certificate that ends soon: from then on every connection is refused, of services and of people.
// c is nil on a connection without TLS, and then there is no finding, as for a certificate that is good for long
// enough: 30 days, or a sixth of its life if that is shorter.
func checkCertificate(c *x509.Certificate, now time.Time) []finding {
	if c == nil || c.NotAfter.Sub(now) > min(soon, c.NotAfter.Sub(c.NotBefore)/lastPart) {
		return nil
	}
	return []finding{{
		"certificate", warning, "the server's ends on " + c.NotAfter.Local().Format(time.DateTime) + ", and then no service and no person connects",
		"renew it (pfl-forge auth init --role server, if that made it), and reload the server",
	}}
}

// checkAccounts names the accounts of agents that refuse calls, so that none is made.
// The rules note such an account as a fact of the project (ADR-0068), which is read here; no account is tried.
func checkAccounts(ctx context.Context, t *target.Target) (found []finding) {
	projects, err := t.Bus.Journal.ProjectSummaries(ctx, t.Project)
	if err != nil {
		return []finding{{"accounts", warning, err.Error(), ""}}
	}
	// Healthy ones are not listed: which accounts there are is not known before they are called.
	for _, a := range document.Accounts(projects) {
		found = append(found, finding{"account of " + a.Agent, warning, a.Line(), ""})
	}
	return found
}

// checkDead names the messages that no replica could handle, the last ones one by one.
// They are a warning: what they asked for did not happen, and all else goes on. Those that are shown are the newest,
// the oldest of them first.
func checkDead(ctx context.Context, t *target.Target) []finding {
	dead, err := t.Dead(ctx)
	if err != nil {
		return []finding{{"dead letters", warning, err.Error(), ""}}
	}
	if len(dead) == 0 {
		return []finding{{"dead letters", healthy, "none", ""}}
	}
	found := []finding{{
		"dead letters", warning, render.Count(len(dead), "message") + " that could not be handled",
		"they have no effect, and are removed after 90 days",
	}}
	for i := range dead[max(0, len(dead)-shownDead):] {
		d := &dead[max(0, len(dead)-shownDead)+i]
		found = append(found, finding{"dead letter", warning, fmt.Sprintf("%s %s/%d %s: %s",
			d.At.Local().Format(time.DateTime), d.Stream, d.Seq, d.Subject, d.Reason), ""})
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
