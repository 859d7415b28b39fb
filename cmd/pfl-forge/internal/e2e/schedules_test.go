package e2e

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// TestSchedulesSurviveKills kills run -9 again and again around the times at which a
// schedule is due: each time leads to one intent at most, and to one change on main.
func TestSchedulesSurviveKills(t *testing.T) {
	testsize.OnlyFull(t) // a schedule is due once a minute
	t.Parallel()
	r := newRepo(t, map[string]string{"pfl-forge.yaml": `agent: recipe
recipes: {stamp: {run: date +%s%N > stamp.txt}}
schedules:
  - {name: stamp, cron: '* * * * *', intent: {title: Stamp, recipe: stamp}}
  - {name: never, cron: 0 0 29 2 *, intent: {title: Never, recipe: stamp}}
`})
	r.must(0, "schedules", "apply")
	rng := rand.New(rand.NewPCG(1, 2))
	after := 0 // kills since the first intent
	for kills := 0; after < 6; kills++ {
		if kills > 200 {
			t.Fatal("a schedule of each minute was not due while run was killed 200 times")
		}
		cmd := r.command(context.Background(), "run", "--watch")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() {
			_ = cmd.Wait()
			close(ended)
		}()
		select {
		case <-ended:
			t.Fatal("run --watch ended by itself")
		case <-wait.Moment(rng, 20*time.Millisecond, 4*time.Second):
			_ = cmd.Process.Kill()
			<-ended
		}
		if len(stamps(r)) > 0 {
			after++
		}
	}
	r.must(0, "schedules", "pause", "stamp")
	r.must(0, "run")
	intents, merged := stamps(r), 0
	for _, subject := range r.subjects() {
		if subject == "Stamp" {
			merged++
		}
	}
	if len(intents) != merged {
		t.Errorf("%d intents %v led to %d changes", len(intents), intents, merged)
	}
	var list []struct {
		Name, Skipped string
		LastIntent    string `json:"last_intent"`
	}
	if err := json.Unmarshal([]byte(r.must(0, "schedules", "-o", "json").stdout), &list); err != nil {
		t.Fatal(err)
	}
	if list[0].LastIntent == "" && list[0].Skipped == "" || list[1].LastIntent != "" {
		t.Errorf("the schedules are %+v", list)
	}
	r.tidy()
}

// stamps lists the intents of the schedule.
func stamps(r *repo) (ids []string) {
	for id := range strings.Lines(r.must(0, "status", "-o", "name").stdout) {
		ids = append(ids, strings.TrimSpace(id))
	}
	return ids
}
