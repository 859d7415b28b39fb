package runner

import (
	"context"
	"sync"
	"time"

	"github.com/pfl-forge/pfl-forge/bus/journal"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/service"
)

// factsFor is how long facts that were read are told: whoever asks for them makes no load.
const factsFor = 2 * time.Second

// Facts returns a function that reads what keeps work of projects waiting, from
// the last records of their journals. It reads by itself, and not what the
// metrics show, because metrics are up to a quarter of a minute old, and off on
// a laptop. Who asks while another one reads waits for that answer.
func Facts(j *journal.Journal) func(context.Context) ([]service.Fact, error) {
	var mu sync.Mutex
	var known []service.Fact
	var at time.Time
	return func(ctx context.Context) ([]service.Fact, error) {
		mu.Lock()
		defer mu.Unlock()
		if time.Since(at) < factsFor {
			return known, nil
		}
		projects, err := j.ProjectSummaries(ctx, "")
		if err != nil {
			return nil, err
		}
		known, at = nil, time.Now()
		for i := range projects {
			for _, f := range document.FactsOf(&projects[i], at) {
				known = append(known, service.Fact{Project: projects[i].Key.Project, Fact: f.Fact, Of: f.Of, Why: f.Why, Since: f.Since, Until: f.Until})
			}
		}
		return known, nil
	}
}
