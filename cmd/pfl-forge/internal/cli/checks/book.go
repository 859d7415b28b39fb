package checks

import (
	"cmp"
	"slices"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/verdict"
)

// Row is a command that decides over changes, as programs read it.
type Row struct {
	// Command is the command line. Secrets in it were taken out before it was reported.
	// Name is that of a check in pfl-forge.yaml, and empty for a verify command.
	Command string `json:"command"        yaml:"command"`
	Name    string `json:"name,omitempty" yaml:"name,omitempty"`
	// Runs are all, trials included, and Failed those that failed: for whatever reason, be it a change that
	// was broken.
	Runs   int `json:"runs"   yaml:"runs"`
	Failed int `json:"failed" yaml:"failed"`
	// Verified counts the times that a change met the command, however often it ran for it. Flaky are those in
	// which it gave both answers on one tree and failed without the change, too; Red those in which it
	// failed without the change each time.
	Verified  int     `json:"verified"   yaml:"verified"`
	Flaky     int     `json:"flaky"      yaml:"flaky"`
	FlakyRate float64 `json:"flaky_rate" yaml:"flaky_rate"` // Flaky of Verified
	Red       int     `json:"red"        yaml:"red"`
	// MedianSeconds is that of the runs that passed; 0 if none did.
	MedianSeconds float64 `json:"median_seconds" yaml:"median_seconds"`
	// FlakyAt and FlakyCommit are of the newest time that it was flaky.
	FlakyAt     time.Time `json:"flaky_at,omitzero"      yaml:"flaky_at,omitempty"`
	FlakyCommit string    `json:"flaky_commit,omitempty" yaml:"flaky_commit,omitempty"`

	// took has the durations of the runs that passed. One that fails may end early, or run into its
	// time limit, and says little of how long the command takes.
	took []time.Duration
}

// Book adds up what journals say of the commands that ran.
type Book struct {
	// Since bounds the time of a result; zero: nothing does.
	Since time.Time

	rows map[[2]string]*Row
}

// Add adds the next record of an intent's journal. Merges are told to the intents, too, so that those
// of projects would count twice.
func (b *Book) Add(key forge.Key, rec *forge.Record) {
	if key.IsProject() {
		return
	}
	for i := range rec.Events {
		ev := &rec.Events[i]
		if ev.At.Before(b.Since) {
			continue
		}
		switch m := ev.Message.(type) {
		case *forge.Result:
			if rb := forge.As[*forge.Rebase](m.Output); rb != nil {
				b.add(rb.Verify, rb.Head, ev.At)
			}
		case *forge.MergeEnded:
			if m.Result == nil {
				continue
			}
			commit := m.Result.Commit
			if m.Result.Candidate != nil {
				commit = m.Result.Candidate.Head
			}
			b.add(m.Result.Verify, commit, ev.At)
		default:
		}
	}
}

// add counts a report. One without runs is of a look at a red base, for which nothing ran.
func (b *Book) add(v *forge.VerifyReport, commit string, at time.Time) {
	if v == nil || len(v.Runs) == 0 && len(v.Checks) == 0 {
		return
	}
	for i := range v.Runs {
		b.run(&v.Runs[i]).Verified++
	}
	for i := range v.Checks {
		b.run(&v.Checks[i]).Verified++
	}
	b.trials(v)
	if len(v.Trials) == 0 {
		return
	}
	switch fault, row := verdict.Blame(v, v.Trials[0].Tree), b.row("", first(v.Trials)); fault {
	case verdict.FaultOfCheck:
		row.Flaky++
		row.FlakyAt, row.FlakyCommit = at, commit
	case verdict.FaultOfBase:
		row.Red++
	default:
	}
}

// trials counts the runs that are not reported one by one: all trials but the one that the report is of. Of one that passed, all
// commands ran; of one that did not, those before the one that failed are not known, and not counted.
func (b *Book) trials(v *forge.VerifyReport) {
	reported := slices.IndexFunc(v.Trials, func(t forge.CheckRun) bool { return t.Passed == v.Passed })
	for i := range v.Trials {
		t := &v.Trials[i]
		switch {
		case i == reported:
		case !t.Passed:
			row := b.row("", t.Command)
			row.Runs++
			row.Failed++
		default:
			for n := range v.Runs {
				b.row("", v.Runs[n].Command).Runs++
			}
		}
	}
}

// run counts one run.
func (b *Book) run(r *forge.CheckRun) *Row {
	row := b.row(r.Name, r.Command)
	row.Runs++
	if r.Passed {
		row.took = append(row.took, r.Duration)
	} else {
		row.Failed++
	}
	return row
}

// row returns the row of a command. A named check and a verify command with the same line are two: they
// run at other times, and for other reasons.
func (b *Book) row(name, command string) *Row {
	key := [2]string{name, command}
	if b.rows == nil {
		b.rows = map[[2]string]*Row{}
	}
	if b.rows[key] == nil {
		b.rows[key] = &Row{Name: name, Command: command}
	}
	return b.rows[key]
}

// first returns the command that failed first in trials.
func first(trials []forge.CheckRun) string {
	for i := range trials {
		if !trials[i].Passed {
			return trials[i].Command
		}
	}
	return ""
}

// Rows returns the commands, the flakiest first, then those that failed most.
func (b *Book) Rows() []Row {
	list := []Row{}
	for _, r := range b.rows {
		r.FlakyRate = float64(r.Flaky) / float64(max(r.Verified, 1))
		if slices.Sort(r.took); len(r.took) > 0 {
			r.MedianSeconds = r.took[(len(r.took)-1)/2].Seconds()
		}
		list = append(list, *r)
	}
	slices.SortFunc(list, func(a, b Row) int {
		return cmp.Or(cmp.Compare(b.FlakyRate, a.FlakyRate), cmp.Compare(b.Failed, a.Failed), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Command, b.Command))
	})
	return list
}
