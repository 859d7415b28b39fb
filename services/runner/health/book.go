package health

import (
	"cmp"
	"slices"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document/figures"
	"github.com/pfl-forge/pfl-forge/verdict"
)

// row is a command that decides over changes.
type row struct {
	figures.CheckStat

	// took has the durations of the runs that passed. One that fails may end early, or run into its
	// time limit, and says little of how long the command takes.
	took []time.Duration
}

// Book adds up what journals say of the commands that ran.
type Book struct {
	// Since bounds the time of a result; zero: nothing does.
	Since time.Time

	rows map[[2]string]*row
}

// Add adds the next record of an intent's journal. Merges are told to the
// intents, too, so that those of projects would count twice.
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

// trials counts the runs that are not reported one by one: all trials but the
// one that the report is of. Of one that passed, all commands ran; of one that
// did not, those before the one that failed are not known, and not counted.
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
func (b *Book) run(r *forge.CheckRun) *row {
	row := b.row(r.Name, r.Command)
	row.Runs++
	if r.Passed {
		row.took = append(row.took, r.Duration)
	} else {
		row.Failed++
	}
	return row
}

// row returns the row of a command. A named check and a verify command with the
// same line are two: they run at other times, and for other reasons.
func (b *Book) row(name, command string) *row {
	key := [2]string{name, command}
	if b.rows == nil {
		b.rows = map[[2]string]*row{}
	}
	if b.rows[key] == nil {
		b.rows[key] = &row{CheckStat: figures.CheckStat{Name: name, Command: command}}
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

// Merge adds the runs of another book.
func (b *Book) Merge(o *Book) {
	for key, other := range o.rows {
		r := b.row(key[0], key[1])
		r.Runs, r.Failed, r.Verified, r.Flaky, r.Red = r.Runs+other.Runs, r.Failed+other.Failed, r.Verified+other.Verified, r.Flaky+other.Flaky, r.Red+other.Red
		r.took = append(r.took, other.took...)
		if other.FlakyAt.After(r.FlakyAt) {
			r.FlakyAt, r.FlakyCommit = other.FlakyAt, other.FlakyCommit
		}
	}
}

// Rows returns the commands, the flakiest first, then those that failed most.
func (b *Book) Rows() []figures.CheckStat {
	list := []figures.CheckStat{}
	for _, r := range b.rows {
		r.FlakyRate = float64(r.Flaky) / float64(max(r.Verified, 1))
		r.MedianSeconds = figures.DurationsOf("", r.took).P50
		list = append(list, r.CheckStat)
	}
	slices.SortFunc(list, func(a, b figures.CheckStat) int {
		return cmp.Or(cmp.Compare(b.FlakyRate, a.FlakyRate), cmp.Compare(b.Failed, a.Failed), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Command, b.Command))
	})
	return list
}
