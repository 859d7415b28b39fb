package render

import (
	"fmt"
	"strings"

	"github.com/pfl-forge/pfl-forge"
)

// Counts has the number of intents in each state. Each intent is counted once.
type Counts struct {
	Open      int `json:"open"      yaml:"open"`      // on their way
	Waiting   int `json:"waiting"   yaml:"waiting"`   // for a person: approval, answers, files
	Done      int `json:"done"      yaml:"done"`      //
	Failed    int `json:"failed"    yaml:"failed"`    // blocked or error
	Cancelled int `json:"cancelled" yaml:"cancelled"` // or rejected
}

// CountIntents returns how many intents are in which state.
func CountIntents(all []forge.Summary) Counts {
	var c Counts
	for i := range all {
		switch s := &all[i]; {
		case s.Status == forge.StatusDone:
			c.Done++
		case s.Status.Failed():
			c.Failed++
		case s.Status.Ended():
			c.Cancelled++
		case s.Waiting != "":
			c.Waiting++
		default:
			c.Open++
		}
	}
	return c
}

// Tally says the same in words: "2 open, 1 waits for you, 5 done". Those that came to
// no good end are counted by how they ended.
func Tally(all []forge.Summary) string {
	c := CountIntents(all)
	var parts []string
	add := func(n int, what string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, what))
		}
	}
	add(c.Open, "open")
	if c.Waiting == 1 {
		add(1, "waits for you")
	} else {
		add(c.Waiting, "wait for you")
	}
	add(c.Done, "done")
	ended := map[forge.Status]int{}
	for i := range all {
		ended[all[i].Status]++
	}
	add(ended[forge.StatusBlocked], "blocked")
	add(ended[forge.StatusError], "failed")
	add(ended[forge.StatusRejected], "rejected")
	add(ended[forge.StatusCancelled], "cancelled")
	if len(parts) == 0 {
		return "no intents"
	}
	return strings.Join(parts, ", ")
}
