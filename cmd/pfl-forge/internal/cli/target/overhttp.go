package target

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/connect"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/local"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/overhttp"
	"github.com/pfl-forge/pfl-forge/document/whole"
	"github.com/pfl-forge/pfl-forge/internal/telemetry"
)

// byHTTP is the connection of a target to a gateway, with a cache of its answers: a
// command reads an intent, or the list, more than once, and prints one state of it.
type byHTTP struct {
	*overhttp.Client

	list  *whole.List
	whole map[forge.IntentID]*read
	// say tells a person what is missing in what a command shows.
	say func(format string, args ...any)
}

// read is an intent that was read.
type read struct {
	*whole.Intent

	records []forge.Record
}

// connectHTTP opens a target at the gateway that --server names. It asks for
// nothing yet: the first thing that a command reads shows whether there is a
// gateway, and whether the token counts there. Credentials of NATS are refused
// where they were typed, so that no person takes them for what lets them in.
func connectHTTP(ctx context.Context, a *kit.App) (*Target, error) {
	for flag, value := range map[string]string{
		"--creds": a.Creds, "--nkey": a.NKey, "--tls-cert": a.TLSCert, "--tls-key": a.TLSKey, "--person": a.Person,
	} {
		if value != "" {
			return nil, kit.Usage(fmt.Errorf("%s: is for a NATS server; by HTTP a token says who you are", flag))
		}
	}
	t := &Target{Remote: true}
	var err error
	if t.traces, err = telemetry.ParseTraceURL(a.TraceURL); err != nil {
		return nil, kit.Usage(fmt.Errorf("--trace-url (FORGE_TRACE_URL): %w", err))
	}
	if repo, err := local.OpenRepository(ctx, a.Dir); err == nil {
		t.Repo, t.Project = repo, repo.Project
	}
	if t.Project, err = connect.Project(a, t.Project); err != nil {
		return nil, err
	}
	cfg := overhttp.Config{Server: a.Server, CA: a.TLSCA, Project: t.Project, Log: a.Log(), Say: a.Say}
	if err := connect.Identify(a, &cfg); err != nil {
		return nil, err
	}
	client, err := overhttp.New(cfg)
	if err != nil {
		return nil, kit.Usage(err)
	}
	t.web, t.close = &byHTTP{Client: client, whole: map[forge.IntentID]*read{}, say: a.Say}, client.Close
	return t, nil
}

// ByHTTP reports whether the target is asked by HTTP. Its Bus is nil.
func (t *Target) ByHTTP() bool { return t.web != nil }

// Empty reports whether nothing was ever submitted in the repository, so that
// there is nothing to ask.
func (t *Target) Empty() bool { return t.Bus == nil && t.web == nil }

// overview returns all intents as they were when they were last asked for; with
// anew they are asked for again.
func (t *Target) overview(ctx context.Context, anew bool) (*whole.List, error) {
	if t.web.list == nil || anew {
		list, err := t.web.Overview(ctx)
		if err != nil {
			return nil, err
		}
		t.web.list = &list
	}
	return t.web.list, nil
}

// read returns an intent as it was when it was first asked for: what a command prints of
// it is of one moment, however many of the methods it calls. Error: the one of NoIntent.
func (t *Target) read(ctx context.Context, id forge.IntentID) (*read, error) {
	if known := t.web.whole[id]; known != nil {
		return known, nil
	}
	d, records, err := t.web.Whole(ctx, id, 0)
	if errors.Is(err, overhttp.ErrNoIntent) {
		return nil, NoIntent(id)
	}
	if err != nil {
		return nil, err
	}
	t.web.whole[id] = &read{d, records}
	return t.web.whole[id], nil
}

// askHTTP sends an event of a person. What was read before may be another now, and
// is read anew. Who the person is follows from the token, whatever the event says.
func (t *Target) askHTTP(ctx context.Context, ev forge.Event) (forge.Ruling, error) {
	if forge.As[*forge.Answer](ev.Message) != nil { // the question is repeated as it was asked
		if _, err := t.read(ctx, ev.To.Intent); err != nil {
			return forge.Ruling{}, err
		}
	}
	t.web.list = nil
	clear(t.web.whole)
	return t.web.Ask(ctx, ev)
}

// history returns the views of the intents that have a finished run, those first on
// which something was decided last. It reads no more of them than enough wants: it
// is called with each view, and with the time after which nothing was decided on
// those that follow. One that is too large is left out, and a person is told so.
func (t *Target) history(ctx context.Context, enough func(v *forge.View, rest *forge.Summary) bool) error {
	list, err := t.overview(ctx, true)
	if err != nil {
		return err
	}
	all := slices.Clone(list.Intents)
	slices.SortFunc(all, func(x, y forge.Summary) int {
		return cmp.Or(y.UpdatedAt.Compare(x.UpdatedAt), strings.Compare(string(x.Key.Intent), string(y.Key.Intent)))
	})
	for i := range all {
		d, err := t.read(ctx, all[i].Key.Intent)
		if errors.Is(err, overhttp.ErrLarge) {
			t.web.say("left out: %v", err)
			continue
		}
		if err != nil {
			return err
		}
		var rest *forge.Summary
		if i+1 < len(all) {
			rest = &all[i+1]
		}
		if enough(&d.View, rest) {
			return nil
		}
	}
	return nil
}
