package local

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
	"github.com/pfl-forge/pfl-forge/forgedir/layout"
	"github.com/pfl-forge/pfl-forge/internal/transcript"
)

// Observe reports to the observer the work of others until ctx ends, even while
// nothing can go on without a person. It changes nothing. Attempts that began
// before are shown with their last lines.
func Observe(ctx context.Context, b *bus.Bus, project forge.ProjectID, observer Observer) error {
	var parts sync.WaitGroup
	ctx, stop := context.WithCancel(ctx)
	defer parts.Wait()
	defer stop()
	o := catchUpObserver{Observer: observer, replay: func(all []forge.Summary) {
		parts.Go(func() { replayTranscripts(ctx, b, all, observer) })
	}}
	return newWatch(b, project, o).run(ctx)
}

// catchUpObserver also replays the progress of attempts that began before the start.
type catchUpObserver struct {
	Observer
	replay func([]forge.Summary)
}

// State implements Observer, and starts the replay of the attempts under way.
func (b catchUpObserver) State(all []forge.Summary) {
	b.Observer.State(all)
	b.replay(all)
}

// maxReplayed bounds the attempts that are replayed.
const maxReplayed = 50

// replayTranscripts reports the last transcript lines of attempts under way. One that
// cannot be read is reported with its next line.
func replayTranscripts(ctx context.Context, b *bus.Bus, all []forge.Summary, observer Observer) {
	left := maxReplayed
	for i := range all {
		for _, a := range all[i].Open {
			if left--; left < 0 {
				return
			}
			_, text, err := b.Transcripts.Last(ctx, subjects.TranscriptFilter{
				Project: all[i].Key.Project, Intent: all[i].Key.Intent, Task: a.Task, Step: a.Step, Number: a.Number,
			})
			if err != nil {
				return
			}
			lines := transcript.Parse(text)
			for j := range lines {
				if p, ok := progressOf(all[i].Key, a, &lines[j]); ok {
					observer.Progress(p)
				}
			}
		}
	}
}

// progressOf returns a transcript's line as progress of an attempt; false for a line
// of another claim.
func progressOf(key forge.Key, a forge.Attempt, l *transcript.Line) (forge.Progress, bool) {
	p := forge.Progress{To: key, Attempt: a, Replica: l.Replica, Kind: l.Kind, Text: l.Text, Agent: l.Agent}
	if l.Kind == forge.ProgressStarted {
		p.At = l.At
	}
	if l.Usage != nil {
		p.Usage = forge.Usage(*l.Usage)
	}
	return p, l.Claim == a.Claim
}

// ObserveRun is Observe for the run that goes on in another process in this repository.
// It also returns, without an error, when that process ends. Error: natsd.ErrNotRunning.
func ObserveRun(ctx context.Context, repo *Repository, observer Observer, log *slog.Logger) error {
	s, err := join(ctx, repo, log)
	if err != nil {
		return err
	}
	defer s.Close(ctx)
	watching, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- Observe(watching, s.Bus, repo.Project, observer) }()
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			return err
		case <-tick.C:
			if s.Gone(ctx) {
				stop()
				return <-ended
			}
		}
	}
}

// Written returns the time at which decisions were last written into the files
// of a repository; zero if they never were.
func (r *Repository) Written() time.Time {
	info, err := os.Stat(filepath.Join(r.Root, layout.Dir, layout.State))
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}
