package jobs

import (
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
)

// Observe adds observations of the agent to the result, with the command's step as
// their source.
func (j *Job) Observe(list []forge.Observation, at time.Time) {
	for _, o := range list {
		o.Source, o.IntentID, o.CreatedAt = j.Command.Attempt.Step, j.Command.To.Intent, at.UTC()
		o.Evidence = j.Places(o.Evidence)
		j.Result.Observations = append(j.Result.Observations, o)
	}
}

// Places returns evidence with paths relative to the repository's root. Agents also
// name files with the directory of their checkout, which is gone later.
func (j *Job) Places(list []forge.Evidence) []forge.Evidence {
	out := slices.Clone(list)
	for i, e := range out {
		if e.Type == forge.EvidenceFile {
			ref := strings.TrimSpace(e.Ref)
			if j.dir != "" {
				ref = strings.TrimPrefix(ref, filepath.ToSlash(j.dir)+"/")
			}
			out[i].Ref = strings.TrimPrefix(ref, "./")
		}
	}
	return out
}
