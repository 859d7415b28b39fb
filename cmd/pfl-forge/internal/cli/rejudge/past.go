package rejudge

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/journal"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/target"
	"github.com/pfl-forge/pfl-forge/config"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/goal"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/task"
)

// question is a command that a reviewer or judge once got, with the answer of then.
type question struct {
	command forge.Command
	result  forge.Result
	at      time.Time
}

// query selects questions.
type query struct {
	// intents, if there are any, are the only ones that are read.
	intents []forge.IntentID
	// steps are those of the roles that are asked again.
	steps []forge.Step
	// since and until bound the time of the answer; zero: nothing does.
	since, until time.Time
	// limit is how many of the newest are taken; 0: all.
	limit int
}

// find reads whole journals, since a command is in a record before that of its
// result. Journals are small beside one call of a model.
//
// It returns the questions of a project that a model answered, the oldest first, and how many
// there would be without the limit.
func find(ctx context.Context, t *target.Target, q *query) (list []question, all int, err error) {
	scopes := []forge.Key{{Project: t.Project}}
	if len(q.intents) > 0 {
		scopes = nil
		for _, id := range q.intents {
			scopes = append(scopes, t.Key(id))
		}
	}
	for _, scope := range scopes {
		c := collector{query: q, open: map[string]forge.Command{}}
		err := t.Bus.Journal.Each(ctx, scope, func(e *journal.Entry) error {
			if e.Record != nil && !e.Key.IsProject() && (scope.Intent == "" || e.Key == scope) {
				c.add(e.Record)
			}
			return nil
		})
		if err != nil {
			return nil, 0, err
		}
		list = append(list, c.list...)
	}
	slices.SortStableFunc(list, func(a, b question) int { return a.at.Compare(b.at) })
	all = len(list)
	if q.limit > 0 {
		list = list[max(0, len(list)-q.limit):]
	}
	return list, all, nil
}

// collector pairs commands with the results that were decided on. An attempt
// that was withdrawn, or that failed, has a command and no verdict: it is left
// out, and so is a judgment that commands made alone. One that a lost worker's
// replacement repeated has one command for each claim, of which one is answered.
type collector struct {
	*query
	// open are the commands that have no answer yet, by their ids.
	open map[string]forge.Command
	list []question
}

// add takes the next record of an intent: first its events, which answer
// commands of records before.
func (c *collector) add(rec *forge.Record) {
	for i := range rec.Events {
		ev := &rec.Events[i]
		r, ok := ev.Message.(*forge.Result)
		if !ok || r.IsStart() {
			continue
		}
		id := (&forge.Command{To: r.To, Attempt: r.Attempt}).ID()
		cmd, asked := c.open[id]
		delete(c.open, id)
		if asked && answered(r) && r.Agent != "" && r.Agent != config.AgentRecipe && !ev.At.Before(c.since) && (c.until.IsZero() || ev.At.Before(c.until)) {
			c.list = append(c.list, question{cmd, *r, ev.At})
		}
	}
	for i := range rec.Effects.Commands {
		if cmd := rec.Effects.Commands[i]; slices.Contains(c.steps, cmd.Attempt.Step) {
			c.open[cmd.ID()] = cmd
		}
	}
}

// answered reports whether a result has a verdict.
func answered(r *forge.Result) bool {
	rv := forge.As[*forge.Review](r.Output)
	return rv != nil && (rv.Verdict != "" || len(rv.Asked) == 0) || forge.As[*forge.Judgment](r.Output) != nil
}

// verdict is an answer as the rules of this program weigh it.
type verdict struct {
	// Agent and Model gave the answer.
	Agent string `json:"agent" yaml:"agent"`
	Model string `json:"model" yaml:"model"`
	// Verdict is approved or rejected; of a judge, complete or incomplete.
	Verdict string `json:"verdict" yaml:"verdict"`
	// Reasons say why not; empty if it is approved or complete.
	Reasons []string `json:"reasons,omitempty" yaml:"reasons,omitempty"`

	claims []forge.Claim
}

// weigh returns the verdict of an answer, and leaves the answer as it is. Both
// answers are weighed by the same rules, which may be stricter than those of then: a
// comparison is of answers, not of rules. least is the confidence that a claim needs.
func weigh(c *forge.Command, r *forge.Result, least float64) verdict {
	v := verdict{Agent: r.Agent, Model: r.Model}
	if rv := forge.As[*forge.Review](r.Output); rv != nil {
		decided := *rv
		decided.Claims, decided.Issues = slices.Clone(rv.Claims), slices.Clone(rv.Issues)
		task.Decide(&decided, &c.Task, false, least)
		v.Verdict, v.Reasons, v.claims = string(decided.Verdict), decided.Issues, decided.Claims
		return v
	}
	j := *forge.As[*forge.Judgment](r.Output)
	j.Claims = slices.Clone(j.Claims)
	goal.Decide(&j, c.Iteration().Goal.Criteria, least)
	v.Verdict, v.claims = "complete", j.Claims
	if !j.Complete {
		v.Verdict, v.Reasons = "incomplete", []string{cmp.Or(j.NextAction, j.Reason)}
	}
	return v
}
