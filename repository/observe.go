package repository

import (
	"time"

	"github.com/pfl-forge/pfl-forge"
)

// Observe adds what the agent noticed to the result.
func (j *Job) Observe(list []forge.Observation, at time.Time) {
	for _, o := range list {
		o.IntentID, o.CreatedAt = j.Command.To.Intent, at.UTC()
		j.Result.Observations = append(j.Result.Observations, o)
	}
}
