package document

import (
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document/asked"
)

// Work tells readers how an intent was carried out. Each list is bounded, and so is
// every text: Truncated has all that is left out. The lists have the oldest first.
type Work struct {
	PlanTasks []Task `json:"work,omitempty"` // in the order of the plan
	// Candidates are the changes that wait for a person's word: while the intent waits for
	// the approval of changes, it is one of all those here that wait for it, by their ids.
	Candidates []Candidate  `json:"candidates,omitempty"`
	Parts      []Part       `json:"parts,omitempty"`   // the child intents of the plan, as it has them
	Reviews    []Review     `json:"reviews,omitempty"` // those of all tasks
	Verified   []Verified   `json:"verify,omitempty"`  // each time that a change was put on the base branch, and verified there
	Steps      []StepRecord `json:"steps,omitempty"`   // every attempt of all runs that has ended
	Costs      []Cost       `json:"costs,omitempty"`   // their sums
	// Adjustments are the rules that changed the course, such as one that has a change made again.
	Adjustments []Adjustment `json:"adjustments,omitempty"`
	// Decisions are the acts of people and systems that were granted, and through whom they came.
	Decisions []Decided `json:"decisions,omitempty"`
	// Asked is all that is approved while the request waits to be analyzed: the
	// hash is made of it and of nothing else. It is empty otherwise.
	Asked []asked.Part `json:"asked,omitempty"`
	// Text names the text that was taken, and the one that there is now where it came from.
	Text *asked.Text `json:"text,omitempty"`
	// Comments are those that were told; left out where none are heard of.
	Comments  *asked.Heard `json:"comments,omitempty"`
	Truncated []Truncated  `json:"truncated,omitempty"`
}

// Task is a task of a plan, with what it produced.
type Task struct {
	ID     forge.TaskID     `json:"id"             yaml:"id"`
	Title  string           `json:"title"          yaml:"title"`
	Status forge.TaskStatus `json:"status"         yaml:"status"`
	Plan   string           `json:"plan,omitempty" yaml:"plan,omitempty"`
	// Steps are those of its plan.
	Steps []string `json:"steps,omitempty" yaml:"steps,omitempty"`
	// Requirements are answered by reviews, by their numbers from 1.
	Requirements []string `json:"requirements,omitempty" yaml:"requirements,omitempty"`
	Item         string   `json:"item,omitempty"         yaml:"item,omitempty"`
	// Files are those that its plan names.
	Files     []string       `json:"files,omitempty"      yaml:"files,omitempty"`
	DependsOn []forge.TaskID `json:"depends_on,omitempty" yaml:"depends_on,omitempty"`
	// Write is a file that it writes without an agent.
	Write    *Write `json:"write,omitempty" yaml:"write,omitempty"`
	Attempts int    `json:"attempts"        yaml:"attempts"`
	Product  `yaml:",inline"`
	// Failure says why it failed or waits.
	Failure string `json:"failure,omitempty" yaml:"failure,omitempty"`
}

// Write is a whole file of a plan.
type Write struct {
	Path    string `json:"path"    yaml:"path"`
	Content string `json:"content" yaml:"content"`
}

// Candidate is a task whose change was verified and reviewed, and waits for a person.
type Candidate struct {
	Task  forge.TaskID `json:"task"`
	Title string       `json:"title"`
	// Waiting is approval, or clarification where its reviewers disagree and a person decides.
	Waiting forge.Waiting `json:"waiting"`
	// Reason says why it waits, such as the protected paths that it changes.
	Reason string `json:"reason,omitempty"`
	// Base and Head are its commits, and PatchID identifies it; empty where the
	// reviewers disagree whether anything has to be changed.
	Base    string `json:"base,omitempty"`
	Head    string `json:"head,omitempty"`
	PatchID string `json:"patch_id,omitempty"`
}

// Product is the newest change of a task.
type Product struct {
	// Base is the commit that it is on.
	Base string `json:"base,omitempty" yaml:"base,omitempty"`
	// Head is its last commit.
	Head    string `json:"head,omitempty"     yaml:"head,omitempty"`
	PatchID string `json:"patch_id,omitempty" yaml:"patch_id,omitempty"`
	// Commit is the one that reached the base branch.
	Commit string `json:"commit,omitempty" yaml:"commit,omitempty"`
	// Changed are the paths that it touches.
	Changed []string `json:"changed,omitempty" yaml:"changed,omitempty"`
}

// TaskOf returns a task with its newest change, of which the task knows the commits.
func TaskOf(t *forge.Task, p Product) Task {
	p.Base, p.Head, p.Commit = t.Base, t.Head, t.Commit
	out := Task{
		ID: t.ID, Title: t.Title, Status: t.Status, Plan: t.Plan, Steps: t.Steps, Requirements: t.Requirements, Item: t.Item, Files: t.RelevantFiles,
		DependsOn: t.DependsOn, Attempts: t.Attempts, Product: p, Failure: t.Failure,
	}
	if t.Write != nil {
		out.Write = &Write{t.Write.Path, t.Write.Content}
	}
	return out
}

// Part is a child intent as the plan of its parent has it.
type Part struct {
	ID        forge.IntentID   `json:"id"`
	Title     string           `json:"title"`
	Body      string           `json:"body"`
	Type      string           `json:"type,omitempty"`
	Risk      forge.Risk       `json:"risk,omitempty"`
	DependsOn []forge.IntentID `json:"depends_on,omitempty"`
}

// Verified tells how it went to put a change on the tip of the base branch.
type Verified struct {
	Task forge.TaskID `json:"task" yaml:"task"`
	// Step is rebase or merge.
	Step    forge.Step `json:"step"               yaml:"step"`
	At      time.Time  `json:"at"                 yaml:"at"`
	Base    string     `json:"base,omitempty"     yaml:"base,omitempty"`
	Head    string     `json:"head,omitempty"     yaml:"head,omitempty"`
	Tree    string     `json:"tree,omitempty"     yaml:"tree,omitempty"`
	PatchID string     `json:"patch_id,omitempty" yaml:"patch_id,omitempty"`
	// Conflicts are paths; then nothing was verified.
	Conflicts []string `json:"conflicts,omitempty" yaml:"conflicts,omitempty"`

	// Guarded says, a phrase each, why a person has to approve the change,
	// besides by the paths that it touches.
	Guarded []string `json:"guarded,omitempty" yaml:"guarded,omitempty"`
	// Passed says that every command passed. It is left out where none ran.
	Passed *bool `json:"passed,omitempty" yaml:"passed,omitempty"`
	// Command is the first one that failed.
	Command string `json:"command,omitempty" yaml:"command,omitempty"`
	// Output is the end of what it printed.
	Output string  `cut:"end"             json:"output,omitempty" yaml:"output,omitempty"`
	Runs   []Check `json:"runs,omitempty" yaml:"runs,omitempty"`
}

// StepRecord is an attempt of a step that has ended.
type StepRecord struct {
	// Run is that of the intent, from 1.
	Run  int          `json:"run"            yaml:"run"`
	Task forge.TaskID `json:"task,omitempty" yaml:"task,omitempty"`
	// Step is the role of the agent as well, where one was called.
	Step    forge.Step `json:"step"    yaml:"step"`
	Attempt int        `json:"attempt" yaml:"attempt"`

	// Outcome is ok, rejected, conflict and the like, or why it failed.
	Outcome string    `json:"outcome"         yaml:"outcome"`
	Agent   string    `json:"agent,omitempty" yaml:"agent,omitempty"`
	Model   string    `json:"model,omitempty" yaml:"model,omitempty"`
	Seconds float64   `json:"seconds"         yaml:"seconds"`
	EndedAt time.Time `json:"ended_at"        yaml:"ended_at"`
	Used    `yaml:",inline"`
}

// Used is the consumption of calls of agents.
type Used struct {
	// InputTokens are those that were sent and not cached.
	InputTokens      int64   `json:"input_tokens"       yaml:"input_tokens"`
	OutputTokens     int64   `json:"output_tokens"      yaml:"output_tokens"`
	CacheReadTokens  int64   `json:"cache_read_tokens"  yaml:"cache_read_tokens"`
	CacheWriteTokens int64   `json:"cache_write_tokens" yaml:"cache_write_tokens"`
	Turns            int64   `json:"turns"              yaml:"turns"`
	CostUSD          float64 `json:"cost_usd"           yaml:"cost_usd"`
}

// UsedOf returns a consumption as readers are told.
func UsedOf(u *forge.Usage) Used {
	return Used{u.InputTokens, u.OutputTokens, u.CacheReadTokens, u.CacheWriteTokens, u.Turns, u.CostUSD}
}

// Usage returns it as rules count it.
func (u *Used) Usage() forge.Usage {
	return forge.Usage{
		InputTokens: u.InputTokens, OutputTokens: u.OutputTokens, CacheReadTokens: u.CacheReadTokens, CacheWriteTokens: u.CacheWriteTokens,
		Turns: u.Turns, CostUSD: u.CostUSD,
	}
}

// add returns the sum of two consumptions.
func (u *Used) add(v *Used) Used {
	return Used{
		u.InputTokens + v.InputTokens, u.OutputTokens + v.OutputTokens, u.CacheReadTokens + v.CacheReadTokens,
		u.CacheWriteTokens + v.CacheWriteTokens, u.Turns + v.Turns, u.CostUSD + v.CostUSD,
	}
}

// StepOf returns an attempt of a run.
func StepOf(run int, r *forge.StepRecord) StepRecord {
	return StepRecord{
		Run: run, Task: r.TaskID, Step: r.Step, Attempt: r.Attempt, Outcome: r.Outcome, Agent: r.Agent, Model: r.Model,
		Seconds: r.Duration.Seconds(), EndedAt: r.At.UTC(), Used: UsedOf(&r.Usage),
	}
}

// Cost adds up the attempts of a step by one model.
type Cost struct {
	Step     forge.Step `json:"step"            yaml:"step"`
	Agent    string     `json:"agent,omitempty" yaml:"agent,omitempty"`
	Model    string     `json:"model,omitempty" yaml:"model,omitempty"`
	Attempts int        `json:"attempts"        yaml:"attempts"`
	Seconds  float64    `json:"seconds"         yaml:"seconds"`
	Used     `yaml:",inline"`
}

// CostsOf adds up attempts by step, agent and model, in the order in which they come first.
func CostsOf(steps []StepRecord) (list []Cost) {
	type of struct {
		step         forge.Step
		agent, model string
	}
	place := map[of]int{}
	for i := range steps {
		s := &steps[i]
		key := of{s.Step, s.Agent, s.Model}
		n, known := place[key]
		if !known {
			n = len(list)
			place[key] = n
			list = append(list, Cost{Step: s.Step, Agent: s.Agent, Model: s.Model})
		}
		c := &list[n]
		c.Attempts++
		c.Seconds += s.Seconds
		c.Used = c.add(&s.Used)
	}
	return list
}

// Adjustment is a rule that changed the course of a run.
type Adjustment struct {
	Run    int          `json:"run"              yaml:"run"`
	Rule   string       `json:"rule"             yaml:"rule"`
	Task   forge.TaskID `json:"task,omitempty"   yaml:"task,omitempty"`
	Detail string       `json:"detail,omitempty" yaml:"detail,omitempty"`
	At     time.Time    `json:"at"               yaml:"at"`
}

// Decided is an act of a person or system that was granted.
type Decided struct {
	// What is submit, edit, approve, request_changes, reject, answer, retry, cancel, pause or
	// resume; or edit_at_origin, where a publisher sent another text after the first was taken,
	// or comments, where a system told of some.
	What string `json:"what" yaml:"what"`
	// By is the person or system.
	By string `json:"by" yaml:"by"`
	// Via is the gateway that they came through; empty if they came by themselves.
	Via string    `json:"via,omitempty" yaml:"via,omitempty"`
	At  time.Time `json:"at"            yaml:"at"`

	// Plan is the hash that an approval, or a wish for changes, names, or the
	// commit that a retry adopts.
	Plan     string       `json:"plan,omitempty"     yaml:"plan,omitempty"`
	Task     forge.TaskID `json:"task,omitempty"     yaml:"task,omitempty"`
	Question string       `json:"question,omitempty" yaml:"question,omitempty"`
	Answer   string       `json:"answer,omitempty"   yaml:"answer,omitempty"`
	// Reason is also the instructions of a retry, and the words of a wish for changes.
	Reason string  `json:"reason,omitempty"     yaml:"reason,omitempty"`
	Budget float64 `json:"budget_usd,omitempty" yaml:"budget_usd,omitempty"`
	// Fields are those that an edit changed.
	Fields []string `json:"fields,omitempty" yaml:"fields,omitempty"`
}

// AddRun adds the attempts of a run and what changed its course.
func (w *Work) AddRun(run int, steps []forge.StepRecord, adjustments []forge.Adjustment) {
	for i := range steps {
		w.Steps = append(w.Steps, StepOf(run, &steps[i]))
	}
	for _, a := range adjustments {
		w.Adjustments = append(w.Adjustments, Adjustment{run, a.Rule, a.TaskID, a.Detail, a.At.UTC()})
	}
}

// VerifiedOf returns a report about a change on the tip of the base branch, without the time.
func VerifiedOf(task forge.TaskID, step forge.Step, r *forge.Rebase) Verified {
	v := Verified{Task: task, Step: step, Base: r.Base, Head: r.Head, Tree: r.Tree, PatchID: r.PatchID, Conflicts: r.Conflicts, Guarded: r.Guarded}
	v.Add(r.Verify)
	return v
}

// Add adds the report of the commands, if any ran.
func (v *Verified) Add(r *forge.VerifyReport) {
	if r == nil {
		return
	}
	v.Passed, v.Command, v.Output = &r.Passed, r.Command, r.Output
	v.Runs = ChecksOf(r.Runs)
	if r.Proof != nil {
		v.Runs = append(v.Runs, ChecksOf([]forge.CheckRun{*r.Proof})...)
	}
}
