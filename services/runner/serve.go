package runner

import (
	"context"
	"sync"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/requests"
	"github.com/pfl-forge/pfl-forge/bus/signed"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/document/setup"
	"github.com/pfl-forge/pfl-forge/services/runner/flow"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/projects"
	"github.com/pfl-forge/pfl-forge/services/runner/machine"
	"github.com/pfl-forge/pfl-forge/services/runner/report"
)

// View returns everything that is known of an intent, made of its whole journal. Error:
// bus.ErrNotFound for an intent without a journal.
func View(ctx context.Context, b *bus.Bus, key forge.Key) (forge.View, error) {
	records, head, err := b.Journal.Load(ctx, key)
	if err != nil {
		return forge.View{}, err
	}
	if len(records) == 0 {
		return forge.View{}, bus.ErrNotFound
	}
	view := machine.Fold(key, records).(*flow.Intent).View()
	view.Seq = head.Seq
	return view, nil
}

// Report returns everything that is known of an intent, and what became of it,
// made of its whole journal, with the errors of View.
func Report(ctx context.Context, b *bus.Bus, key forge.Key) (forge.View, document.Work, error) {
	records, head, err := b.Journal.Load(ctx, key)
	if err != nil {
		return forge.View{}, document.Work{}, err
	}
	if len(records) == 0 {
		return forge.View{}, document.Work{}, bus.ErrNotFound
	}
	view, work := report.Of(key, records)
	view.Seq = head.Seq
	return view, work, nil
}

// Knowledge returns the pieces of knowledge of a project, made of its whole
// journal; see projects.Project.Knows.
func Knowledge(ctx context.Context, b *bus.Bus, project forge.ProjectID, about string) ([]forge.Knowledge, error) {
	key := forge.Key{Project: project}
	records, _, err := b.Journal.Load(ctx, key)
	if err != nil {
		return nil, err
	}
	return machine.Fold(key, records).(*projects.Project).Knows(about), nil
}

// serve answers other systems' requests until ctx ends. An error is only logged:
// decisions go on without it.
func (r *runner) serve(ctx context.Context, authors *signed.Keys) {
	var reading sync.WaitGroup
	defer reading.Wait()
	reading.Go(func() {
		if err := r.bus.Submissions.ServeReads(ctx, requests.ReadsConfig{Idle: r.bus.Events.IdleIn, Refused: r.metrics.ReadRefused}); err != nil {
			r.log.ErrorContext(ctx, "reads of people are not answered: their commands show nothing", "error", err)
		}
	})
	told := func(ctx context.Context, key forge.Key) (forge.View, document.Work, error) {
		return Report(ctx, r.bus, key)
	}
	changed := func(ctx context.Context, project forge.ProjectID, req document.DiffRequest) (document.Diff, error) {
		d, err := Diff(ctx, r.bus, project, req)
		d.Page(req)
		return d, err
	}
	done := func(ctx context.Context, project forge.ProjectID, req document.TranscriptRequest) (document.Transcript, error) {
		return Transcript(ctx, r.bus, project, req)
	}
	went := func(ctx context.Context, project forge.ProjectID, req document.TimelineRequest) (document.Timeline, error) {
		return Timeline(ctx, r.bus, project, req)
	}
	who := func(ctx context.Context, project forge.ProjectID, req document.AuditRequest) (document.Audit, error) {
		return Audit(ctx, r.bus, project, req)
	}
	set := func(ctx context.Context, project forge.ProjectID, _ setup.Request) (setup.InForce, error) {
		return Settings(ctx, r.bus.Journal, project, r.notify, r.ballot.Active())
	}
	spent := NewSpending(r.bus.Journal)
	if err := r.bus.Submissions.Serve(ctx, requests.ServeConfig{
		Report: told, Diff: changed, Transcript: done, Timeline: went, Audit: who, Costs: spent.Costs, By: spent.By, Settings: set,
		Health: Health(r.bus.Journal), Queue: newQueues(r.driver, r.bus.Journal).read, Turns: r.bus.Turns.Of,
		Whole: wholes{r.bus, r.bus.Journal.NewLists()}.answer, Authors: authors,
	}); err != nil {
		r.log.ErrorContext(ctx, "requests of other systems are not answered; their submissions to the stream are", "error", err)
	}
}
