package obstacle

import (
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge"
)

// TestCloses: a failure closes an account if every other call would have it
// too; the end of a quota is believed for some days.
func TestCloses(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		failure forge.Failure
		want    bool
	}{
		"credentials":     {forge.Failure{Reason: forge.FailAuth}, true},
		"the origin":      {forge.Failure{Reason: forge.FailOrigin}, true},
		"the base branch": {forge.Failure{Reason: forge.FailBase}, true},
		"a quota":         {forge.Failure{Reason: forge.FailQuota, Until: now.Add(time.Hour)}, true},
		"which is over":   {forge.Failure{Reason: forge.FailQuota, Until: now}, false},
		"for years":       {forge.Failure{Reason: forge.FailQuota, Until: now.Add(longest + 1)}, false},
		"of no end":       {forge.Failure{Reason: forge.FailQuota}, false},
		"a limit":         {forge.Failure{Reason: forge.FailRateLimited, Until: now.Add(time.Hour)}, false},
		"a crash":         {forge.Failure{Reason: forge.FailCrashed}, false},
	} {
		if got := Closes(&test.failure, now); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestLongestRefusalStays: of several refusals of one account the one stays
// that lasts longest, since when the first came; a person is asked before all.
func TestLongestRefusalStays(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	quota := func(d time.Duration) *forge.ObstacleReported {
		return &forge.ObstacleReported{Agent: "claude", Failure: forge.Failure{Reason: forge.FailQuota, Until: now.Add(d)}}
	}
	auth := &forge.ObstacleReported{Agent: "claude", Failure: forge.Failure{Reason: forge.FailAuth}}
	var s State
	for i, step := range []struct {
		report *forge.ObstacleReported
		until  time.Time
	}{
		{quota(time.Hour), now.Add(time.Hour)},
		{quota(2 * time.Hour), now.Add(2 * time.Hour)},
		{quota(time.Hour), now.Add(2 * time.Hour)},
		{auth, time.Time{}},
		{quota(3 * time.Hour), time.Time{}},
	} {
		s.close(step.report, now.Add(time.Duration(i)*time.Minute))
		if len(s.Closed) != 1 || !s.Closed[0].Until.Equal(step.until) || !s.Closed[0].Since.Equal(now) {
			t.Errorf("after %d refusals: %+v, want one until %s", i+1, s.Closed, step.until)
		}
	}
	if !s.Blocks() {
		t.Error("refused credentials wait for no person")
	}
}

// TestWhoLooks: the intent that was asked least looks at a red base branch, of
// these the one that came last; none that owes an answer.
func TestWhoLooks(t *testing.T) {
	var r Red
	if got := r.next(); got != "" {
		t.Errorf("%s looks, and none waits", got)
	}
	r.join("one", 1)
	r.join("two", 1)
	if got := r.next(); got != "two" {
		t.Errorf("%s looks, want the last", got)
	}
	r.join("two", 1)
	if got := r.next(); got != "one" {
		t.Errorf("%s looks, want the one that was asked least", got)
	}
	r.Waits[0].Silent = true
	if got := r.next(); got != "two" {
		t.Errorf("%s looks, want the one that answers", got)
	}
	r.For = "two"
	if r.leave("two"); r.next() != "" || r.For != "" {
		t.Errorf("%s looks for %s, and is gone", r.next(), r.For)
	}
	if r.join("one", 0); r.next() != "one" {
		t.Error("one that has answered is not asked again")
	}
}

// TestRests: looks in vain follow each other ever more slowly, within a bound.
func TestRests(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var r Red
	last := time.Duration(0)
	for range 20 {
		r.rest(now)
		pause := r.NextAt.Sub(now)
		if pause < last || pause > longestPause || last == 0 && pause != firstPause {
			t.Errorf("a pause of %s after one of %s", pause, last)
		}
		last = pause
	}
	if last != longestPause {
		t.Errorf("the last pause is %s, want %s", last, longestPause)
	}
}

// TestLearn: a step goes on when its account is open, by a message that was sent after the
// project heard why it waits; the one that is asked to look goes on beside the others.
func TestLearn(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	closed := func(agents ...string) (list []forge.Obstacle) {
		for _, a := range agents {
			list = append(list, forge.Obstacle{Agent: a, Since: now})
		}
		return list
	}
	tasks := func(free []Hold) (ids []forge.TaskID) {
		for _, h := range free {
			ids = append(ids, h.Task)
		}
		return ids
	}
	for name, test := range map[string]struct {
		told forge.ObstaclesChanged
		want []forge.TaskID
	}{
		"not heard yet":  {forge.ObstaclesChanged{Heard: 1}, nil},
		"all are closed": {forge.ObstaclesChanged{Heard: 2, Closed: closed("claude", "codex", forge.GitBase)}, nil},
		"one is open":    {forge.ObstaclesChanged{Heard: 2, Closed: closed("codex", forge.GitBase)}, []forge.TaskID{"a-001"}},
		"all are open":   {forge.ObstaclesChanged{Heard: 2}, []forge.TaskID{"a-001", "a-002", "a-003", "a-004"}},
		"asked to look":  {forge.ObstaclesChanged{Heard: 2, Look: 1, Closed: closed("claude", "codex", forge.GitBase)}, []forge.TaskID{"a-003"}},
		"a quota is over": {
			forge.ObstaclesChanged{Heard: 2, Closed: append(closed("codex", forge.GitBase), forge.Obstacle{Agent: "claude", Until: now})},
			[]forge.TaskID{"a-001"},
		},
	} {
		k := Known{Reports: 2}
		for task, agent := range map[forge.TaskID]string{"a-001": "claude", "a-002": "codex"} {
			k.Hold(Hold{Task: task, Agent: agent})
		}
		k.Hold(Hold{Task: "a-003", Agent: forge.GitBase})
		k.Hold(Hold{Task: "a-004", Agent: forge.GitBase})
		free := map[forge.TaskID]bool{}
		for _, id := range tasks(k.Learn(&test.told, now)) {
			free[id] = true
		}
		if len(free) != len(test.want) || len(k.Held) != 4-len(test.want) {
			t.Errorf("%s: %v go on and %v wait, want %v", name, free, k.Held, test.want)
		}
		for _, id := range test.want {
			if !free[id] {
				t.Errorf("%s: %s waits", name, id)
			}
		}
	}
}
