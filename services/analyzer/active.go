package analyzer

import (
	"context"
	"slices"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/jobs"
)

// Requests often come several at once. The first analysis of each waits until nothing new has come
// for a moment, so that the first of them knows of the last.
const (
	// moment is how long nothing new has to come.
	moment = 400 * time.Millisecond
	// moments bounds how often it is waited for.
	moments = 8
)

// activeFunc lists the intents under way for a call that is about to be made.
type activeFunc func(context.Context, *jobs.Job) ([]forge.Summary, error)

// active returns the intents of the project that have not ended, as they are
// now: the last records of their journals say so, as they do in every list.
func (a *Analyzer) active(ctx context.Context, j *jobs.Job) ([]forge.Summary, error) {
	if a.others == nil {
		return nil, nil
	}
	// A later attempt follows an answer of a person or a failure: what came
	// together with the intent has long been there, and nothing is waited for.
	// The second may be the first call: before it only the policy was read.
	first := j.Command.Attempt.Number <= 2 && !j.Command.Resume
	list, err := a.others(ctx, j.Command.To.Project)
	for known, n := 0, 0; err == nil && first && len(list) > known && n < moments; n++ {
		known = len(list)
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(moment):
		}
		list, err = a.others(ctx, j.Command.To.Project)
	}
	if err != nil {
		return nil, agent.Fail(forge.FailRepository, "cannot list the other requests: %v", err)
	}
	return slices.DeleteFunc(list, func(s forge.Summary) bool { return s.Status.Ended() || s.Key.Intent == j.Command.To.Intent }), nil
}
