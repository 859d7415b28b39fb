// Package figures has the documents that say how well the work of a project went, by week:
// what is asked for and what is answered, on the bus, by HTTP and by the command line.
//
// A runner fills a Health from the journals (services/runner); bus/requests, the
// gateway's API and the CLI pass it on as it is. Every answer fits into one message:
// Bound leaves out the commands and texts that have no room, and says how many.
package figures

import (
	"fmt"
	"slices"
	"strings"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/cmdline"
)

const (
	// HealthWeeks is the number of weeks that are told unless it is said.
	HealthWeeks = 8
	// MostHealthWeeks bounds the number of weeks that can be asked for.
	MostHealthWeeks = 26
	// checks bounds the commands of an answer, and commandText the text of each, in bytes.
	checks, commandText = 100, 300
)

// HealthRequest asks how well the work of a project went.
type HealthRequest struct {
	// Weeks is how many weeks it is about, the present one included; 0 stands for 8.
	Weeks int `json:"weeks,omitempty"`
}

// Check returns the mistakes of the request.
func (r *HealthRequest) Check() []forge.FieldError {
	if r.Weeks < 0 || r.Weeks > MostHealthWeeks {
		return []forge.FieldError{{Field: "weeks", Reason: fmt.Sprintf("is %d; it can be 1 to %d", r.Weeks, MostHealthWeeks)}}
	}
	return nil
}

// Of returns no intent: the health is a project's.
func (*HealthRequest) Of() forge.IntentID { return "" }

// Health has figures of the work of a project: how it ended, how often it was
// made again, how long steps took and what was waited for, by week. A week
// begins on Monday, in UTC; what lasted counts in the week in which it ended.
type Health struct {
	// Weeks are all that were asked for, the oldest first.
	Weeks []HealthWeek `json:"weeks" yaml:"weeks"`
	// Total is of all of them together.
	Total HealthWeek `json:"total" yaml:"total"`
	// Checks are the commands that decide over changes, the flakiest first, over all the weeks.
	Checks []CheckStat `json:"checks" yaml:"checks"`
	// LeftOut counts the commands that there was no room for.
	LeftOut int `json:"left_out,omitempty" yaml:"left_out,omitempty"`
}

// HealthWeek has the figures of a week, or of all.
type HealthWeek struct {
	// Week is its Monday, such as 2026-03-02; empty for all.
	Week string `json:"week,omitempty" yaml:"week,omitempty"`
	// Done, Failed, Rejected and Cancelled count the runs of intents that ended
	// so; failed are those in error and blocked.
	Done      int `json:"done"      yaml:"done"`
	Failed    int `json:"failed"    yaml:"failed"`
	Rejected  int `json:"rejected"  yaml:"rejected"`
	Cancelled int `json:"cancelled" yaml:"cancelled"`
	// Made counts the changes that were made, and MadeAgain those of them that
	// took the place of another one of their task. The second of two that are
	// made for code to choose from is not made again.
	Made      int `json:"made"       yaml:"made"`
	MadeAgain int `json:"made_again" yaml:"made_again"`
	// ReviewsRejected, VerifyFailed and Conflicts count results that sent a change back.
	// A verify that failed because a check is flaky, or the base branch red, is none.
	ReviewsRejected int `json:"reviews_rejected" yaml:"reviews_rejected"`
	VerifyFailed    int `json:"verify_failed"    yaml:"verify_failed"`
	Conflicts       int `json:"conflicts"        yaml:"conflicts"`
	// Steps says how long attempts took, by step, trials in the merge queue as
	// TrialKey; Waits how long was waited, by what for, as kinds of spans have it.
	Steps []Durations `json:"steps" yaml:"steps"`
	Waits []Durations `json:"waits" yaml:"waits"`
}

// TrialKey is the key of the durations of trials in the merge queue, which run
// the commands and merge nothing. Those of merges have their step.
const TrialKey = "merge_trial"

// Ended counts the runs that ended.
func (w *HealthWeek) Ended() int { return w.Done + w.Failed + w.Rejected + w.Cancelled }

// Durations are percentiles of some durations, in seconds.
type Durations struct {
	// Key is the step, or what was waited for.
	Key string `json:"key" yaml:"key"`
	// Count is how many there were.
	Count int `json:"count" yaml:"count"`
	// P50, P90 and P99 are those that so many percent did not exceed.
	P50 float64 `json:"p50" yaml:"p50"`
	P90 float64 `json:"p90" yaml:"p90"`
	P99 float64 `json:"p99" yaml:"p99"`
}

// DurationsOf returns the percentiles of durations, which it sorts: each is one of them.
func DurationsOf(key string, list []time.Duration) Durations {
	slices.Sort(list)
	d := Durations{Key: key, Count: len(list)}
	for percent, into := range map[int]*float64{50: &d.P50, 90: &d.P90, 99: &d.P99} {
		if n := len(list); n > 0 {
			*into = list[(n*percent+99)/100-1].Seconds()
		}
	}
	return d
}

// CheckStat is a command that decides over changes.
type CheckStat struct {
	// Command is the command line. Secrets that the worker knows were taken out before it was
	// reported. Name is that of a check in pfl-forge.yaml, and empty for a verify command.
	Command string `json:"command"        yaml:"command"`
	Name    string `json:"name,omitempty" yaml:"name,omitempty"`
	// Runs are all, trials included, and Failed those that failed: for whatever
	// reason, be it a change that was broken.
	Runs   int `json:"runs"   yaml:"runs"`
	Failed int `json:"failed" yaml:"failed"`
	// Verified counts the times that a change met the command, however often it ran for
	// it. Flaky are those in which it gave both answers on one tree and failed without
	// the change, too; Red those in which it failed without the change each time.
	Verified  int     `json:"verified"   yaml:"verified"`
	Flaky     int     `json:"flaky"      yaml:"flaky"`
	FlakyRate float64 `json:"flaky_rate" yaml:"flaky_rate"` // Flaky of Verified
	Red       int     `json:"red"        yaml:"red"`
	// MedianSeconds is that of the runs that passed; 0 if none did.
	MedianSeconds float64 `json:"median_seconds" yaml:"median_seconds"`
	// FlakyAt and FlakyCommit are of the newest time that it was flaky.
	FlakyAt     time.Time `json:"flaky_at,omitzero"      yaml:"flaky_at,omitempty"`
	FlakyCommit string    `json:"flaky_commit,omitempty" yaml:"flaky_commit,omitempty"`
}

// Bound leaves out commands, and the ends of their texts, that an answer has no
// room for, and of command lines what may be a secret.
func (h *Health) Bound() {
	if extra := len(h.Checks) - checks; extra > 0 {
		h.LeftOut, h.Checks = extra, h.Checks[:checks]
	}
	Shown(h.Checks)
	for i := range h.Checks {
		if c := &h.Checks[i]; len(c.Command) > commandText {
			c.Command = strings.ToValidUTF8(c.Command[:commandText], "") + cmdline.Left
		}
	}
}

// Shown leaves out of command lines what may be a secret, as package cmdline
// says: they are told to people who cannot read the file that they are in.
func Shown(list []CheckStat) {
	for i := range list {
		list[i].Command = cmdline.Shown(list[i].Command)
	}
}
