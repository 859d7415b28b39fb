package queue

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/mergequeue"
)

// place returns a place of a line: "merging 10" has been under way for 10 s,
// "trying 30 b" verifies b as well.
func place(n int, text string) (mergequeue.Place, time.Duration) {
	words := strings.Fields(text)
	p := mergequeue.Place{Task: forge.TaskID(fmt.Sprintf("%c-001", 'a'+n)), Position: n + 1}
	p.Attempt = forge.Attempt{Task: p.Task, Step: forge.StepMerge, Number: 1}
	var elapsed time.Duration
	for i, w := range words {
		switch {
		case i == 0 && w == "merging":
			p.Merging = true
		case i == 0 && w == "pull":
			p.Position = 0
		case i == 0 && w != "queued":
			p.Trial = mergequeue.CarState(w)
		case i == 1:
			elapsed, _ = time.ParseDuration(w + "s")
		case i > 1:
			p.With = append(p.With, forge.TaskID(w+"-001"))
		}
	}
	return p, elapsed
}

// TestPace: the estimates of queues in all states, with a trial of 60 s and a merge of 10 s.
func TestPace(t *testing.T) {
	for name, one := range map[string]struct {
		parallel, batch int
		trial           int // in seconds
		line            []string
		want            string
	}{
		"nothing":                           {1, 1, 60, nil, "[]"},
		"one":                               {1, 1, 0, []string{"merging 4"}, "[6]"},
		"overdue":                           {1, 1, 0, []string{"merging 400", "queued"}, "[0 10]"},
		"one after the other":               {1, 1, 60, []string{"merging 4", "queued", "queued"}, "[6 16 26]"},
		"a train whose trials nobody knows": {4, 1, 0, []string{"merging 0", "queued", "queued"}, "[10 20 30]"},
		"a train":                           {3, 1, 60, []string{"merging 5", "trying 20", "trying 10", "queued"}, "[5 50 60 75]"},
		"passed":                            {3, 1, 60, []string{"merging 5", "passed", "passed", "trying 50"}, "[5 15 25 35]"},
		"untested":                          {2, 1, 60, []string{"merging 0", "untested", "stopped"}, "[10 70 80]"},
		"a batch":                           {2, 3, 60, []string{"merging 0", "riding", "riding", "trying 30 b c", "queued", "queued"}, "[10 40 50 60 80 90]"},
		"nothing is under way":              {2, 1, 60, []string{"queued", "queued", "queued"}, "[70 80 130]"},
		"a pull request":                    {2, 1, 60, []string{"merging 0", "pull"}, "[10 0]"},
		"more trials than places":           {1, 1, 60, []string{"merging 0", "trying 1", "trying 1", "queued"}, "[10 20 30 40]"},
	} {
		l := mergequeue.Line{Parallel: one.parallel, Batch: one.batch}
		since := map[forge.Attempt]time.Duration{}
		for i, text := range one.line {
			p, elapsed := place(i, text)
			l.Places, since[p.Attempt] = append(l.Places, p), elapsed
		}
		pace, got := Pace{Trial: time.Duration(one.trial) * time.Second, Merge: 10 * time.Second}, []int{}
		for _, left := range pace.Left(l, func(a forge.Attempt) time.Duration { return since[a] }) {
			got = append(got, int(left.Seconds()))
		}
		if fmt.Sprint(got) != one.want {
			t.Errorf("%s: %v, want %s", name, got, one.want)
		}
	}
}

// TestPaceHasAnOrder: nothing is merged before what is ahead of it, however
// long things took, and nothing is due in the past.
func TestPaceHasAnOrder(t *testing.T) {
	states := []string{"queued", "trying 10", "trying 1000000", "passed", "riding", "stopped", "untested"}
	for seed := range 5000 {
		n := seed
		l := mergequeue.Line{Parallel: n % 5, Batch: n % 4}
		since := map[forge.Attempt]time.Duration{}
		for i := range 1 + n%7 {
			p, elapsed := place(i, states[n%len(states)])
			p.Merging = i == 0 && seed%2 == 0
			l.Places, since[p.Attempt] = append(l.Places, p), elapsed
			n = n*31 + 7
			n &= 0xffff
		}
		pace := Pace{Trial: time.Duration(seed%3) * time.Minute, Merge: time.Duration(1+seed%11) * time.Second}
		last := time.Duration(-1)
		for i, left := range pace.Left(l, func(a forge.Attempt) time.Duration { return since[a] }) {
			if left < 0 || left < last {
				t.Fatalf("seed %d: %d is merged in %v, the one before in %v", seed, i, left, last)
			}
			last = left
		}
	}
}
