package status

import (
	"context"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/document"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/target"
	"github.com/pfl-forge/pfl-forge/internal/transcript"
)

// maxRunning bounds how many running attempts are looked at.
const maxRunning = 50

// running adds to items the attempts under way, with what their transcripts say that they
// have used so far. all and list have the same intents in the same order. Each attempt is one
// request, for its newest message alone. An attempt that has written nothing yet is left out.
func running(ctx context.Context, t *target.Target, all []forge.Summary, list []document.Item) error {
	left := maxRunning
	for i := range all {
		for _, a := range all[i].Open {
			if left--; left < 0 {
				return nil
			}
			like := subjects.TranscriptFilter{
				Project: all[i].Key.Project, Intent: all[i].Key.Intent, Task: a.Task, Step: a.Step, Number: a.Number,
			}
			_, lines, err := t.Bus.Transcripts.Last(ctx, like)
			if err != nil {
				return err
			}
			if r := document.RunningAttempt(a, transcript.Parse(lines)); r != nil {
				list[i].Running = append(list[i].Running, *r)
			}
		}
	}
	return nil
}
