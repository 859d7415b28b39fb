package repository

import (
	"time"

	"github.com/pfl-forge/pfl-forge"
)

// Observe adds what the agent noticed to the result, as noticed by the command's step.
func (j *Job) Observe(list []forge.Observation, at time.Time) {
	for _, o := range list {
		o.Source, o.IntentID, o.CreatedAt = j.Command.Attempt.Step, j.Command.To.Intent, at.UTC()
		j.Result.Observations = append(j.Result.Observations, o)
	}
}
