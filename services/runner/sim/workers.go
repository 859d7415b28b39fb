package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/sim/facts"
	"github.com/pfl-forge/pfl-forge/services/runner/sim/trunk"
)

// job is a command that a worker has.
type job struct {
	*command
	// cancelled says that the worker was told to stop.
	cancelled bool
}

// workers remembers the choices of workers, so that all attempts of a task
// belong together, as those of an agent do that works on one thing.
type workers struct {
	measured

	train train

	// files are those that a task changes.
	files map[forge.TaskID][]string
	// asked has the requirements of what was reviewed.
	asked map[reviewed][]string
	// ran has the checks that a reviewer asked for and that passed.
	ran map[askedRun]bool
	// verified maps a head to the parent that it was verified on.
	verified map[string]string
	// made counts the implementations of a task.
	made map[forge.TaskID]int
}

// take gives a random command to a worker, which drops it if it is not wanted.
// It returns false if there is none, or only slow ones and these are not to be
// begun. Now and then a command is given to two workers, as after a lost lease.
func (w *world) take(slow bool) bool {
	var free []*command
	for _, c := range w.commands {
		if !c.acked && (!c.leased || w.chance(20)) && (slow || !w.isSlow(c)) {
			free = append(free, c)
		}
	}
	if len(free) == 0 {
		return false
	}
	c := free[w.rng.IntN(len(free))]
	if !w.wanted(&c.Command) {
		w.log("worker drops %s: nobody wants it", c.ID())
		if n := w.repo.Merged(c.Attempt.Task); n != nil && c.Attempt.Step == forge.StepMerge {
			w.report(c, &forge.Result{Output: w.mergedAs(n)}) // whoever had it died after the push
		}
		c.acked = true
		return true
	}
	if c.Replica != "" && w.chance(3) {
		return true // its replica is away
	}
	c.leased = true
	w.jobs = append(w.jobs, &job{command: c})
	w.log("worker takes %s", c.ID())
	if c.Replica != "" {
		w.report(c, &forge.Result{Output: &forge.Started{}})
	}
	return true
}

// work lets a worker finish a job, or die with it before or after it is done,
// and returns false if there is none. A result may be reported twice.
func (w *world) work() bool {
	if len(w.jobs) == 0 {
		return false
	}
	i := w.rng.IntN(len(w.jobs))
	j := w.jobs[i]
	w.jobs = slices.Delete(w.jobs, i, i+1)
	j.leased = false
	switch {
	case w.chance(15):
		w.log("worker dies with %s", j.ID())
		return true
	case j.cancelled:
		w.log("worker stops %s", j.ID())
		j.acked = true
		w.report(j.command, w.billed(&j.Command, &forge.Result{
			Output: &forge.Failure{Reason: forge.FailKilled, Message: "nobody wants it any more"},
		}))
		return true
	}
	r := w.billed(&j.Command, worker{w}.perform(&j.Command))
	if w.chance(20) {
		w.log("worker dies after %s", j.ID())
		return true
	}
	w.report(j.command, r)
	j.acked = true
	if w.chance(10) {
		w.report(j.command, r)
	}
	return true
}

// report puts a result on the stream. As on the bus, its event has the same id
// whenever the result is repeated, by the same replica.
func (w *world) report(c *command, r *forge.Result) {
	r.To, r.Attempt, r.Replica = c.To, c.Attempt, forge.ReplicaID(fmt.Sprintf("r%d", w.rng.IntN(2)))
	r.Session = c.Session
	if !r.IsStart() && r.Observations == nil && w.chance(10) {
		r.Observations = []forge.Observation{{Content: "something"}}
	}
	kind := "result"
	if r.IsStart() {
		kind = "started"
	}
	w.inputs = append(w.inputs, &input{Event: forge.Event{ID: c.ID() + "/" + kind + "/" + string(r.Replica), To: r.Machine(), Message: r}})
	w.log("worker reports %s: %s", c.ID(), facts.DescribeResult(r))
}

// A worker carries out the commands of a world.
type worker struct{ *world }

// perform carries out a command, well or badly, and returns its result.
func (w worker) perform(c *forge.Command) *forge.Result {
	if n := w.repo.Merged(c.Attempt.Task); n != nil && c.Attempt.Step == forge.StepMerge && !c.Merge().Trial {
		return &forge.Result{Output: w.mergedAs(n)}
	}
	if r := w.failAttempt(c); r != nil {
		return r
	}
	switch c.Attempt.Step {
	case forge.StepAnalyze, forge.StepArchitect:
		return &forge.Result{Output: w.analysis(c)}
	case forge.StepImplement:
		return &forge.Result{Output: w.implementation(c)}
	case forge.StepRebase:
		if a := c.Rebase().Adopted; a != nil && a.Author == "" {
			return &forge.Result{Output: atForge(w).taken(c, a)}
		}
		if len(c.Rebase().Asked) > 0 {
			return &forge.Result{Output: w.runAsked(c)}
		}
		if c.Task.Head == c.Task.Base { // a goal that has changed nothing
			return &forge.Result{Output: w.unchanged(c.Task.Checks)}
		}
		return &forge.Result{Output: w.rebase(w.repo.Heads[c.Task.Head], c)}
	case forge.StepReview:
		return w.review(c)
	case forge.StepProbe:
		return &forge.Result{Output: &forge.Probed{}}
	case forge.StepMerge:
		if c.Merge().Trial {
			return &forge.Result{Output: w.try(c)}
		}
		return w.merge(c)
	case forge.StepOpenPull, forge.StepMergePull:
		return atForge(w).step(c)
	case forge.StepReflect:
		return &forge.Result{Output: w.reflection(c)}
	case forge.StepAudit, forge.StepObserve, forge.StepAbstract:
		return w.inspect(c)
	default:
		return w.goalStep(c)
	}
}

// failAttempt returns the result of an attempt that fails, and nil if this one does not.
func (w worker) failAttempt(c *forge.Command) *forge.Result {
	if r := w.outage(c); r != nil {
		return r
	}
	if facts.CallsAgent(c) && c.BudgetUSD == 0 && w.money.limited() {
		return &forge.Result{Policy: w.money.policy(), Output: &forge.Failure{Reason: forge.FailUnreserved, Message: "nothing is reserved"}}
	}
	agent := fmt.Sprintf("agent%d", min(len(c.LimitedAgents), w.money.fallbacks))
	if facts.CallsAgent(c) && slices.Contains(c.ClosedAgents, agent) {
		return &forge.Result{Output: &forge.Failure{Reason: forge.FailHeld, Message: "its account refuses calls"}, Agent: agent}
	}
	// A bad key is refused for a while, whoever calls. That every fourth call
	// is enough: the rest are then on their way, or held.
	if w.money.refuses && facts.CallsAgent(c) && agent == "agent0" && w.chance(4) {
		return &forge.Result{Output: &forge.Failure{Reason: forge.FailAuth, Message: "no such key"}, Agent: agent}
	}
	if c.Patience > 0 && facts.Sick(w.seed) && w.chance(2) {
		return &forge.Result{Output: w.sickness(), Agent: agent}
	}
	if w.chance(12) {
		reasons := []forge.FailureReason{
			forge.FailCrashed, forge.FailTimeout, forge.FailLostSession, forge.FailConfig, forge.FailQuota, forge.FailRateLimited,
			forge.FailOverloaded, forge.FailRefused, forge.FailBudget, forge.FailPromptTooLong,
			map[bool]forge.FailureReason{false: forge.FailInterrupted, true: forge.FailReplica}[c.Patience > 0 && c.Attempt.Number%2 == 0], forge.FailLost,
		}
		f := forge.Failure{Reason: reasons[w.rng.IntN(len(reasons))], Message: "the agent failed"}
		if f.Reason == forge.FailQuota && w.rng.IntN(2) == 0 {
			f.Until = w.now.Add(time.Hour)
		}
		return &forge.Result{Output: &f, Agent: agent}
	}
	if w.chance(40) {
		return &forge.Result{} // garbage: an answer without an answer
	}
	if f := w.money.spend(w.world, c); f != nil {
		return &forge.Result{Output: f}
	}
	return nil
}

// sickness returns the failure of an attempt that meets a replica which cannot do it, or not to
// its end.
func (w worker) sickness() *forge.Failure {
	ended := forge.FailUnwell
	if facts.Kills(w.seed) {
		ended = forge.FailKilledReplica
	}
	return &forge.Failure{Reason: []forge.FailureReason{ended, forge.FailReplica}[w.rng.IntN(2)], Message: "no space left"}
}

// inspect carries out the steps that read the project and change nothing.
func (w worker) inspect(c *forge.Command) *forge.Result {
	switch c.Attempt.Step {
	case forge.StepAudit:
		return &forge.Result{Output: &forge.Audit{Summary: "fine"}, Policy: w.money.policy()}
	case forge.StepObserve:
		r := &forge.Result{Output: &forge.Observed{NothingFound: "nothing comes back"}, Policy: w.money.policy()}
		if w.rng.IntN(2) == 0 {
			r.Output = &forge.Observed{Patterns: []forge.Pattern{{Name: "a pattern"}}}
		}
		return r
	default:
		if w.chance(4) {
			return &forge.Result{Output: &forge.Abstraction{NothingNew: "all of it is known"}}
		}
		return &forge.Result{Output: &forge.Abstraction{Skills: []forge.Skill{{Name: "a skill", Description: "d", Body: "b"}}}}
	}
}

// analysis returns a plan with tasks or children, questions, or nothing to do.
func (w worker) analysis(c *forge.Command) *forge.Analysis {
	if c.Analyze().PolicyOnly {
		return &forge.Analysis{Policy: w.money.policy()}
	}
	a := &forge.Analysis{Risk: forge.RiskLow, Type: "fix", Policy: w.money.policy()}
	switch {
	case c.Intent.Recipe != "":
		a.Tasks = []forge.TaskPlan{{Name: "0", Title: "task"}}
		return a
	case len(c.Intent.Clarifications) < 2 && w.chance(8):
		a.Clarifications = []forge.Clarification{{Question: fmt.Sprintf("what, %d?", len(c.Intent.Clarifications))}}
		return a
	case c.Attempt.Step == forge.StepAnalyze && w.chance(15):
		a.Insufficient = "it is deep"
		return a
	case c.Intent.Depth < 2 && (w.deep && w.rng.IntN(5) == 0 || w.chance(10)):
		a.Children = w.childPlans()
		return a
	case w.chance(6):
		a.Risk = forge.RiskMed
	case w.chance(30):
		a.NothingToDo = "all is well"
		return a
	}
	for i := range 1 + w.rng.IntN(3) {
		t := forge.TaskPlan{Name: fmt.Sprint(i), Title: "task", Complexity: w.complexity(i)}
		if w.rng.IntN(2) == 0 {
			t.Requirements = []string{"it works", "it is tested"}
		}
		if i > 0 && w.rng.IntN(3) == 0 {
			t.DependsOn = []string{fmt.Sprint(w.rng.IntN(i))}
		}
		a.Tasks = append(a.Tasks, t)
	}
	if w.chance(6) {
		a.DependsOn = []forge.IntentID{w.people.anyIntent(w.world)}
	}
	return a
}

// childPlans returns one to three children, some of which depend on one before them.
func (w worker) childPlans() (list []forge.ChildPlan) {
	for i := range 1 + w.rng.IntN(3) {
		p := forge.ChildPlan{Name: fmt.Sprint(i), Title: "part", Body: "b"}
		if i > 0 && w.rng.IntN(2) == 0 {
			p.DependsOn = []string{fmt.Sprint(w.rng.IntN(i))}
		}
		list = append(list, p)
	}
	return list
}

// reflection reads some of the observations, and now and then proposes an intent.
func (w worker) reflection(c *forge.Command) *forge.Reflection {
	r := &forge.Reflection{}
	for _, o := range c.Reflect().Observations {
		if w.rng.IntN(4) > 0 {
			r.Read = append(r.Read, o.ID)
		}
	}
	if w.chance(5) {
		r.Proposals = append(r.Proposals, forge.Intent{
			Settings: forge.Settings{Title: fmt.Sprintf("improve number %d", w.rng.IntN(3)), Body: "b", Risk: forge.RiskLow},
		})
	}
	return r
}

// implementation commits a change of the task's files, or now and then nothing.
func (w worker) implementation(c *forge.Command) *forge.Implementation {
	id := c.Task.ID
	if w.workers.files[id] == nil || w.chance(10) {
		w.workers.files[id] = w.repo.Pick(w.rng)
	}
	w.workers.made[id]++
	im := &forge.Implementation{Base: w.repo.Tip(), Head: w.repo.Tip()}
	if w.chance(8) {
		im.Blocked = &forge.Clarification{Question: fmt.Sprintf("and now, %d?", w.workers.made[id]), Context: "nothing says"}
		if w.chance(2) {
			return im
		}
	}
	if w.chance(12) {
		im.Unchanged = w.chance(3)
		if w.chance(2) {
			im.NothingToDo = "it is there already"
		}
		return im
	}
	if before := w.repo.Heads[c.Task.Head]; before.ID != "" && !c.Implement().Fresh && w.chance(4) {
		im.Base, im.Head = before.Parent, before.ID // nothing was added to the attempt before
		return im
	}
	n := w.repo.Change(id, w.workers.files[id])
	if before := w.repo.Heads[c.Task.Head]; before.ID != "" && w.wishes.Same(c.Wish) {
		n.Patch, n.Files = before.Patch, before.Files
		w.repo.Heads[n.ID] = n
	}
	im.Base, im.Head, im.Commits, im.Files, im.Overlaps = n.Parent, n.ID, 1, n.Files, w.overlaps(n)
	return im
}

// overlaps now and then names a task that a commit does not merge with.
func (w worker) overlaps(c trunk.Commit) []forge.Overlap {
	if !w.chance(4) {
		return nil
	}
	id := w.people.ids[w.rng.IntN(len(w.people.ids))]
	return []forge.Overlap{{TaskID: forge.NewTaskID(id, 1+w.rng.IntN(2)), Files: c.Files}}
}
