package flow

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
)

// phase is where a run of an intent stands.
type phase string

const (
	phaseNone      phase = ""          // not submitted
	phaseEntering  phase = "entering"  // waits for the lane to admit it
	phaseAnalyzing phase = "analyzing" // waits for the analysis or what takes its place, or for a timer to repeat it
	phaseAsking    phase = "asking"    // waits for a person's answers
	phaseApproval  phase = "approval"  // waits for a person's approval
	phaseUnfunded  phase = "unfunded"  // there is no money to analyze it
	phaseDepending phase = "depending" // waits for other intents
	phaseWorking   phase = "working"   // tasks are under way
	phaseParts     phase = "parts"     // the intents that it was taken apart into are under way
	phaseClosed    phase = "closed"
)

// Intent is the state machine of one intent. The zero value is not ready: see
// NewIntent.
type Intent struct {
	key      forge.Key
	intent   forge.Intent
	declared forge.Risk // what the publisher said, or a person set later
	judged   forge.Risk // what the analysis said
	phase    phase
	run      int
	ends     int // how often the lane was told that a run ended
	policy   forge.Policy
	active   []forge.ActiveIntent
	past     []forge.PastRun
	unread   []forge.Observation // of the project, that no reflection has read
	vouched  bool                // a person approved the larger intent
	foreign  bool                // its budget is what another system asked for
	planHash string
	approved bool
	approver string
	depends  []dependency
	reason   string // why it waits or failed, for a person
	escalate bool   // some task of this run lost a conflict to an outsider

	step         forge.Step // that the intent as a whole is at, before its tasks
	insufficient string     // why the analysis was not sufficient
	patterns     []forge.Pattern
	audit        *forge.Audit
	tasks        []*task
	parts        []*part
	analyze      stepState
	talk         conversation // of the step
	instructions string
	pauses       pauses
	held         []forge.Command // not to be issued while there is a pause
	known        bool            // the policy is the project's own
	avoid        []avoided       // agents at a limit
	unfunded     []unfunded
	money        int             // messages about money to the lane, ever
	owed         []forge.Attempt // withdrawn, and their costs are still to come
	refreshing   bool            // the policy is being read again

	steps        []forge.StepRecord
	adjustments  []forge.Adjustment
	observations []forge.Observation
	observed     int                 // ever
	knows        []forge.Knowledge   // of the project, for a goal
	learned      []forge.Knowledge   // by a goal
	applied      []string            // ids of knowledge that helped, once for each execution
	told         [2]int              // of learned and applied: how many the lane was told of
	forecasts    map[forecastKey]int // numbers of the newest
	history      []forge.History
	usage        forge.Usage
	runStarted   time.Time
	updated      time.Time
	heard        map[string]bool // ids of what people asked: a redelivery must not be taken for a new wish

	open open
	eff  forge.Effects // of the step that is being taken
	now  time.Time
}

// dependency is another intent that has to be done before implementation.
type dependency struct {
	id     forge.IntentID
	status forge.Status
}

// stepState counts the attempts of a step.
type stepState struct {
	number int // of the last attempt issued
	claim  int // of that attempt
	errors int // consecutive agent errors
	parks  int // consecutive waits at a limit
}

// worked forgets what went wrong before.
func (st *stepState) worked() { st.errors, st.parks = 0, 0 }

// NewIntent returns the machine of an intent that was not submitted yet.
func NewIntent(key forge.Key) *Intent {
	return &Intent{key: key, policy: forge.DefaultPolicy(), step: forge.StepAnalyze, heard: map[string]bool{}, forecasts: map[forecastKey]int{}}
}

// Step decides on one event. The effects have to happen once the decision is
// durable. Unless the ruling is Applied, the state is as it was and nothing is
// to be journaled.
func (s *Intent) Step(ev forge.Event) (forge.Effects, forge.Ruling) {
	s.eff = forge.Effects{}
	s.now = ev.At
	decision, err := s.decide(ev)
	if decision == forge.Applied && personal(&ev) {
		s.heard[ev.ID] = true
	}
	r := forge.Ruling{EventID: ev.ID, Decision: decision, Intent: s.key.Intent}
	if err != nil {
		r.Reason = err.Error()
		if f, ok := errors.AsType[*forge.FieldError](err); ok {
			r.Field = f.Field
		}
	}
	if decision == forge.Applied {
		s.updated = ev.At
	}
	eff := s.eff
	s.eff, s.now = forge.Effects{}, time.Time{}
	return eff, r
}

// decide applies an event, or says why not. It must not change the state before
// it is certain to return Applied.
func (s *Intent) decide(ev forge.Event) (forge.Decision, error) {
	if forge.As[*forge.Submit](ev.Message) != nil {
		return s.submit(ev)
	}
	if s.phase == phaseNone {
		return refuse("there is no intent %q; `pfl-forge status` lists those that exist", s.key.Intent)
	}
	if personal(&ev) {
		if s.heard[ev.ID] {
			return ignore("this was asked and decided already")
		}
		return s.asked(&ev)
	}
	switch m := ev.Message.(type) {
	case *forge.Result:
		return s.result(m)
	case *forge.TimerFired:
		return s.timer(m)
	case *forge.RunAdmitted:
		return s.admitted(m)
	case *forge.DependencyEnded:
		return s.dependencyEnded(m)
	case *forge.FilesLocked:
		return s.reserved(m)
	case *forge.MergeEnded:
		return s.landed(m)
	case *forge.BudgetReserved:
		return s.funded(m)
	case *forge.ChildChanged:
		return s.partChanged(m)
	case *forge.RunReflected:
		return s.reflected(m)
	case *forge.OverlapChanged:
		return s.forecast(m)
	}
	return refuse("the event says nothing that an intent knows")
}

// personal reports whether an event is a wish about an intent that exists.
func personal(ev *forge.Event) bool {
	return forge.As[*forge.Edit](ev.Message) != nil || forge.As[*forge.Approve](ev.Message) != nil || forge.As[*forge.Reject](ev.Message) != nil || forge.As[*forge.Answer](ev.Message) != nil || forge.As[*forge.Retry](ev.Message) != nil || forge.As[*forge.Cancel](ev.Message) != nil ||
		forge.As[*forge.Pause](ev.Message) != nil || forge.As[*forge.Resume](ev.Message) != nil
}

func refuse(format string, args ...any) (forge.Decision, error) {
	return forge.Refused, fmt.Errorf(format, args...)
}

func ignore(format string, args ...any) (forge.Decision, error) {
	return forge.Ignored, fmt.Errorf(format, args...)
}

// result routes a worker's report to the step that waits for it. A report on an
// attempt that is not open any more changes nothing.
func (s *Intent) result(r *forge.Result) (forge.Decision, error) {
	if !s.open.wants(r.Attempt) {
		return s.bill(r)
	}
	if r.IsStart() {
		return s.started(r)
	}
	var t *task
	if r.Attempt.Task != "" {
		t = s.task(r.Attempt.Task)
	}
	if r.Failure() == nil && !r.Answers() {
		blank := *r
		blank.Output = &forge.Failure{Reason: forge.FailInvalidOutput, Message: "the result holds no answer for its step"}
		r = &blank
	}
	s.closeAttempt(r)
	if r.Failure() != nil {
		s.failed(t, r)
		return forge.Applied, nil
	}
	switch r.Attempt.Step {
	case forge.StepAnalyze, forge.StepArchitect:
		s.analyzed(r)
	case forge.StepAudit:
		s.audited(r)
	case forge.StepObserve:
		s.patternsFound(r)
	case forge.StepAbstract:
		s.abstracted(r)
	case forge.StepIntake:
		s.takenIn(r)
	case forge.StepImplement:
		s.implemented(t, r)
	case forge.StepExecute:
		s.executed(t, r)
	case forge.StepRebase:
		s.rebased(t, r)
	case forge.StepReview:
		s.reviewed(t, r)
	case forge.StepSummarize:
		s.summarized(t, r)
	case forge.StepJudge:
		s.goalJudged(t, r)
	case forge.StepMerge, forge.StepReflect: // the lane issues those
	}
	return forge.Applied, nil
}

// closeAttempt forgets an attempt's command and records what it cost.
func (s *Intent) closeAttempt(r *forge.Result) {
	budgeted := s.open.budget(r.Attempt) > 0
	s.open.closeAttempt(r.Attempt)
	s.open.cancelTimer(claimKey(r.Attempt))
	s.usage = s.usage.Add(r.Usage)
	s.steps = append(s.steps, s.stepRecord(r))
	if budgeted || r.Usage.CostUSD > 0 {
		s.settle()
		s.fund()
	}
	s.observe(r.Observations)
}

// Bounds of what is kept of one attempt's observations.
const (
	maxNoticed  = 50   // observations
	maxNotice   = 2000 // bytes of each
	maxEvidence = 20   // pieces of evidence of each
)

// observe keeps what an agent noticed, under ids that reflections refer to.
func (s *Intent) observe(list []forge.Observation) {
	for _, o := range list[:min(len(list), maxNoticed)] {
		s.observed++
		o.Content = strings.ToValidUTF8(shorten(o.Content, maxNotice), "")
		o.Evidence = o.Evidence[:min(len(o.Evidence), maxEvidence)]
		o.ID = fmt.Sprintf("%s/%d", s.key.Intent, s.observed)
		o.IntentID, o.Processed = s.key.Intent, false
		o.CreatedAt = s.now
		s.observations = append(s.observations, o)
	}
}

func (s *Intent) stepRecord(r *forge.Result) forge.StepRecord {
	outcome := "ok"
	if r.Failure() != nil {
		outcome = string(r.Failure().Reason)
	}
	return forge.StepRecord{
		Step: r.Attempt.Step, TaskID: r.Attempt.Task, Attempt: r.Attempt.Number, Outcome: outcome,
		Duration: r.Duration, Session: r.Session, Agent: r.Agent, Model: r.Model, Usage: r.Usage, At: s.now,
	}
}

// outcome corrects what the last recorded step came to.
func (s *Intent) outcome(what string) { s.steps[len(s.steps)-1].Outcome = what }

func (s *Intent) adjust(rule string, id forge.TaskID, format string, args ...any) {
	s.adjustments = append(s.adjustments, forge.Adjustment{
		Rule: rule, TaskID: id, Detail: fmt.Sprintf(format, args...), At: s.now,
	})
}

func (s *Intent) task(id forge.TaskID) *task {
	i := slices.IndexFunc(s.tasks, func(t *task) bool { return t.ID == id })
	if i < 0 {
		return nil
	}
	return s.tasks[i]
}
