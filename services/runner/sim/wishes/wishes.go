// Package wishes has people who ask for changes of what waits for their approval,
// in some worlds of the simulator, and knows what has to follow from that.
//
// They take nothing from the chances of the other worlds. They name what they saw, or
// something else; who approved is among them, and some go on asking until they are refused.
package wishes

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/pathpattern"
)

// most bounds how often people ask in a world, so that it comes to rest although some
// would ask for ever. It is far above what the rules allow of one plan or change in a run.
const most = 60

// People are those who ask for changes in one world. Nil ones are of a world without any.
type People struct {
	rng *rand.Rand
	// eager says that they ask as long as anything waits.
	eager bool
	asked int
	// known is read from the journals of intents.
	known map[forge.Key]*known
}

// known is read from an intent's journal, without the rules of flow: by what was decided
// on, and which commands and requests to merge followed in the same record. Records of
// several events say of none of them what followed from it, so less is expected of these.
type known struct {
	// plan is the hash that the newest record shows.
	plan string
	// tasks has, of each task whose change was made again for a person, who
	// approved anything since.
	tasks map[forge.TaskID]map[string]bool
	// counts has the number of wishes since a run began, of a task, or of the plan without one.
	counts map[forge.TaskID]int
}

// New returns the people of a world: there are some in three of 32.
func New(seed uint64) *People {
	if !slices.Contains([]uint64{11, 23, 30}, seed%32) {
		return nil
	}
	rng := rand.New(rand.NewPCG(seed, 122))
	return &People{rng: rng, eager: rng.IntN(3) == 0, known: map[forge.Key]*known{}}
}

// Protects returns the paths that only people may change: in a world of these
// people there are some, so that they are asked.
func (p *People) Protects(paths []string) []string {
	if p == nil {
		return paths
	}
	return []string{"f0"}
}

// Ask returns a person's event about an intent; nil if they leave it alone.
// While there are faults, they may ask for something that cannot be.
func (p *People) Ask(v *forge.View, faults bool) *forge.Event {
	s := &v.Summary
	if p.asked >= most || s.Waiting != forge.WaitingApproval && s.Waiting != forge.WaitingClarification {
		return nil
	}
	if !p.eager && (!faults || p.rng.IntN(3) > 0) {
		return nil
	}
	m := &forge.RequestChanges{Hash: s.Plan, Words: fmt.Sprintf("otherwise, %d", p.asked)}
	if s.Waiting == forge.WaitingClarification {
		if m.Hash = disputed(v); m.Hash == "" {
			return nil
		}
	}
	p.asked++
	switch p.rng.IntN(10) {
	case 0:
		m.Hash = "0123456789ab"
	case 1:
		m.Words = ""
	case 2:
		m.Task = forge.NewTaskID(s.Key.Intent, 1+p.rng.IntN(3))
	}
	return &forge.Event{To: s.Key, Actor: fmt.Sprintf("p%d", p.rng.IntN(4)), Message: m}
}

// disputed returns the commit of a change that its reviewers disagree about;
// empty if there is none.
func disputed(v *forge.View) string {
	for _, c := range v.Intent.Clarifications {
		if c.Answer == nil && strings.Contains(c.Question, "disagree") {
			for i := range v.Tasks {
				if v.Tasks[i].ID == c.Task {
					return v.Tasks[i].Head
				}
			}
		}
	}
	return ""
}

// Same reports whether an agent comes to the same patch as before, whatever a person wants.
// Then an approval of the former one would fit the next one as well, if it was not forgotten.
func (p *People) Same(wish *forge.Wish) bool { return p != nil && wish != nil && p.rng.IntN(3) == 0 }

// Check returns an error if a decision about an intent takes a wish that is none, does not hand
// its words on, takes more of them than a run may have, or has a change of protected paths
// merged that was made again for one, with approvals since of fewer people than it takes.
func (p *People) Check(rec *forge.Record, protected []string, count int) error {
	if p == nil {
		return nil
	}
	key := rec.Summary.Key
	k := p.known[key]
	if k == nil {
		k = &known{tasks: map[forge.TaskID]map[string]bool{}, counts: map[forge.TaskID]int{}}
		p.known[key] = k
	}
	for i := range rec.Events {
		if err := k.learn(&rec.Events[i], rec); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	k.plan = rec.Summary.Plan
	for i := range rec.Effects.Outbox {
		m := forge.As[*forge.QueueMerge](rec.Effects.Outbox[i].Message)
		guarded := func(f string) bool { return pathpattern.Any(protected, f) }
		if m == nil || k.tasks[m.Task] == nil || !slices.ContainsFunc(m.Files, guarded) {
			continue
		}
		if n := len(k.tasks[m.Task]); n < count {
			return fmt.Errorf("%s is merged, %d people have approved it since a person asked for changes, and it takes %d", m.Task, n, count)
		}
	}
	return nil
}

// learn takes an event that was applied, of a record.
func (k *known) learn(ev *forge.Event, rec *forge.Record) error {
	switch m := ev.Message.(type) {
	case *forge.RequestChanges:
		return k.wished(m, ev.Actor, rec)
	case *forge.Approve:
		k.approved(ev.Actor)
	case *forge.Answer:
		k.approved(ev.Actor) // it may decide between reviewers
	case *forge.Retry, *forge.RunAdmitted:
		clear(k.counts)
	default:
	}
	return nil
}

// approved notes that a person approved something. Which hash that was of does not matter:
// what is counted here is that enough people looked after the change was made again.
func (k *known) approved(by string) {
	for _, people := range k.tasks {
		people[by] = true
	}
}

// wished takes a wish. The commands that follow from it say of which changes it
// is, and have its words; where they are held there are none.
func (k *known) wished(m *forge.RequestChanges, by string, rec *forge.Record) error {
	single := len(rec.Events) == 1
	if single && (m.Hash != k.plan || m.Hash == "") && !strings.HasPrefix(m.Hash, "c") { // a commit
		return fmt.Errorf("changes of %q were asked for, and %q waits", m.Hash, k.plan)
	}
	if m.Words == "" {
		return fmt.Errorf("changes of %q were asked for without words", m.Hash)
	}
	for i := range rec.Effects.Commands {
		c := &rec.Effects.Commands[i]
		if !single || c.Analyze().PolicyOnly {
			continue
		}
		if c.Wish == nil || c.Wish.Words != m.Words || c.Wish.Person != by {
			return fmt.Errorf("%s is not told what %s wants", c.Attempt, by)
		}
		if c.Attempt.Task != "" {
			k.tasks[c.Attempt.Task] = map[string]bool{}
		}
		if k.counts[c.Attempt.Task]++; k.counts[c.Attempt.Task] > 10 {
			return fmt.Errorf("%s is made for the %dth wish of a run", c.Attempt, k.counts[c.Attempt.Task])
		}
	}
	return nil
}
