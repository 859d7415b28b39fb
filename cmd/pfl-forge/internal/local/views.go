package local

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/journal/chain"
	"github.com/pfl-forge/pfl-forge/internal/rules"
	"github.com/pfl-forge/pfl-forge/services/runner/flow"
	"github.com/pfl-forge/pfl-forge/services/runner/machine"
)

// views folds the journals of every machine of a project. It is safe for concurrent
// use.
type views struct {
	mu       sync.Mutex
	machines map[forge.Key]*machineView
	// records counts the records that were applied, so that a reader sees
	// whether there are new ones.
	records int
}

// machineView is a machine that was folded up to a record of its journal.
type machineView struct {
	machine machine.Machine
	seq     uint64
	// broken says that the chain of its journal is.
	broken bool
	// lost is the last known summary if records are missing or the chain is
	// broken; then machine may be wrong.
	lost *forge.Summary
}

// summary returns the machine's summary, or, if it is wrong, the last one in
// the journal, as that of an intent on which nothing is decided any more.
func (f *machineView) summary() forge.Summary {
	if f.lost == nil {
		return f.machine.Summary()
	}
	s := *f.lost
	s.Idle, s.Open, s.Reason = true, nil, machine.ErrDamaged.Error()
	return s
}

func newViews() *views { return &views{machines: map[forge.Key]*machineView{}} }

// apply adds a record and returns the summaries before and after it; before is
// zero for the first one.
func (v *views) apply(key forge.Key, seq uint64, rec *forge.Record) (before, after forge.Summary) {
	v.mu.Lock()
	defer v.mu.Unlock()
	f := v.of(key)
	if f.seq > 0 {
		before = f.summary()
	}
	for _, ev := range rec.Events {
		f.machine.Step(rules.Of(rec), ev)
	}
	f.seq = seq
	v.records++
	if f.broken || !machine.Intact(f.machine, []forge.Record{*rec}) {
		f.lost = &rec.Summary
	}
	return before, f.summary()
}

// of returns the view of a machine, a new one if there is none yet. The caller holds mu.
func (v *views) of(key forge.Key) *machineView {
	f := v.machines[key]
	if f == nil {
		f = &machineView{machine: machine.New(key)}
		v.machines[key] = f
	}
	return f
}

// breaks notes that the chain of a machine's journal is broken, so that nothing is decided on it.
func (v *views) breaks(key forge.Key, _ chain.Break) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.of(key).broken = true
}

// damaged returns the machines of which records are missing or whose chain is broken, sorted.
func (v *views) damaged() []forge.Key {
	v.mu.Lock()
	defer v.mu.Unlock()
	var keys []forge.Key
	for key, f := range v.machines {
		if f.lost != nil {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b forge.Key) int { return strings.Compare(a.String(), b.String()) })
	return keys
}

// view returns the present view of an intent; false for one that is not known,
// or damaged.
func (v *views) view(key forge.Key) (forge.View, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	f := v.machines[key]
	if f == nil {
		return forge.View{}, false
	}
	intent, ok := f.machine.(*flow.Intent)
	if !ok || f.lost != nil {
		return forge.View{}, false
	}
	view := intent.View()
	view.Seq = f.seq
	return view, true
}

// seqs returns the last sequence of every intent, and how many records they all
// come from.
func (v *views) seqs() (map[forge.IntentID]uint64, int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	seqs := make(map[forge.IntentID]uint64, len(v.machines))
	for key, f := range v.machines {
		if !key.IsProject() {
			seqs[key.Intent] = f.seq
		}
	}
	return seqs, v.records
}

// due reports whether a machine that counts as idle has a timer whose time has
// come, such as the one that looks whether a red base branch is mended: of such
// a timer nothing is known before it fires, which it does once the server runs.
func (v *views) due(now time.Time, concerns func(forge.Key) bool) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	for key, f := range v.machines {
		if f.lost != nil || !concerns(key) {
			continue
		}
		if slices.ContainsFunc(f.machine.Pending().Timers, func(t forge.Timer) bool { return !t.At.After(now) }) {
			return true
		}
	}
	return false
}

// projectSeq returns the sequence of the last record of a project; 0 if there is none.
func (v *views) projectSeq(project forge.ProjectID) uint64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	if f := v.machines[forge.Key{Project: project}]; f != nil {
		return f.seq
	}
	return 0
}

// known returns every intent, with the intents that it depends on.
func (v *views) known() map[forge.IntentID][]forge.IntentID {
	v.mu.Lock()
	defer v.mu.Unlock()
	all := make(map[forge.IntentID][]forge.IntentID, len(v.machines))
	for key, f := range v.machines {
		if intent, ok := f.machine.(*flow.Intent); ok {
			all[key.Intent] = intent.View().Intent.DependsOn
		}
	}
	return all
}

// summaries returns the summaries of all intents, by their ids, and whether
// every machine is idle: then nothing can go on without a person.
func (v *views) summaries() (intents []forge.Summary, settled bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	settled = true
	for key, f := range v.machines {
		s := f.summary()
		settled = settled && s.Idle
		if !key.IsProject() {
			intents = append(intents, s)
		}
	}
	slices.SortFunc(intents, func(a, b forge.Summary) int { return strings.Compare(string(a.Key.Intent), string(b.Key.Intent)) })
	return intents, settled
}

// projects returns the summaries of the projects.
func (v *views) projects() []forge.Summary {
	v.mu.Lock()
	defer v.mu.Unlock()
	var projects []forge.Summary
	for key, f := range v.machines {
		if key.IsProject() {
			projects = append(projects, f.summary())
		}
	}
	return projects
}

// shows reports whether a machine's last decision, as its summary has it, is in
// the views.
func (v *views) shows(s *forge.Summary) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	f := v.machines[s.Key]
	if f == nil {
		return false
	}
	mine := f.summary()
	return mine.UpdatedAt.Equal(s.UpdatedAt)
}
