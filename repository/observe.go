package repository

import (
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
)

// Observe adds what the agent noticed to the result, as noticed by the command's step.
func (j *Job) Observe(list []forge.Observation, at time.Time) {
	for _, o := range list {
		o.Source, o.IntentID, o.CreatedAt = j.Command.Attempt.Step, j.Command.To.Intent, at.UTC()
		o.Evidence = j.Places(o.Evidence)
		j.Result.Observations = append(j.Result.Observations, o)
	}
}

// Places returns evidence with files named from the repository's root. An agent also
// names them with the directory that it worked in.
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
