package reviewer

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/config"
	"github.com/pfl-forge/pfl-forge/internal/environ"
	"github.com/pfl-forge/pfl-forge/internal/redact"
	"github.com/pfl-forge/pfl-forge/internal/term"
	"github.com/pfl-forge/pfl-forge/jobs"
	"github.com/pfl-forge/pfl-forge/jobs/sessions"
)

// inquiry holds the checks of the project that a review asked for, and may ask for.
//
// They run elsewhere. Here a model reads the change of another one, with keys of the
// project around it, so nothing of the change is run here.
type inquiry struct {
	// Ran are those that ran for this review so far.
	Ran []forge.CheckRun
	// Offered are those that it may ask for.
	Offered []offer
	// MayAsk is for how many.
	MayAsk int

	// project is the configuration of the base branch.
	project *config.Project
}

// offer is a check that a reviewer may ask for.
type offer struct{ Name, Command string }

// newInquiry returns the checks that a command tells of and lets the review ask for, as the
// base branch has them: a change of pfl-forge.yaml offers nothing and takes nothing away.
func newInquiry(cmd *forge.Command, p *config.Project) inquiry {
	in := cmd.Review()
	q := inquiry{Ran: in.Asked, project: p}
	if in.MayAsk == 0 {
		return q
	}
	// A name that is a secret of the environment is taken out of all that
	// leaves a worker, so the rules would not see what is asked for.
	secret := redact.New(redact.Environ(environ.All())...)
	for _, name := range p.CheckNames() {
		if !q.ran(name) && secret.Text(name) == name {
			q.Offered = append(q.Offered, offer{name, p.Checks[name].Command})
		}
	}
	q.MayAsk = min(in.MayAsk, len(q.Offered))
	return q
}

// ran reports whether the review was told of a run of a check.
func (q *inquiry) ran(name string) bool {
	return slices.ContainsFunc(q.Ran, func(r forge.CheckRun) bool { return r.Name == name })
}

// begun reports whether the review asked or may ask, so that its session is kept.
func (q *inquiry) begun() bool { return len(q.Ran) > 0 || q.MayAsk > 0 }

// pick returns those of the checks that an answer asks for which it may have. In wrong it says
// in words why it may not have the others. The rules count for themselves; this is for
// the model, which can be told at once.
func (q *inquiry) pick(asked []forge.CheckRun) (list []forge.CheckRun, wrong []string) {
	for i := range asked {
		name := asked[i].Name
		switch {
		case slices.ContainsFunc(list, func(r forge.CheckRun) bool { return r.Name == name }):
		case q.ran(name):
			wrong = append(wrong, fmt.Sprintf("%q has run already", name))
		case !slices.ContainsFunc(q.Offered, func(o offer) bool { return o.Name == name }):
			wrong = append(wrong, fmt.Sprintf("there is no check %q to ask for", term.Short(name, maxShown)))
		case len(list) == q.MayAsk:
			wrong = append(wrong, fmt.Sprintf("%q is more than the %d that are left", name, q.MayAsk))
		default:
			list = append(list, forge.CheckRun{Name: name})
		}
	}
	return list, wrong
}

// refuse returns why an answer that asks for nothing that it may have is asked for once
// more; nil if it is not.
func (q *inquiry) refuse(h *claimCheck, answer []byte, wrong []string) error {
	if len(wrong) == 0 || h.first != nil {
		return nil
	}
	h.first = answer
	return agent.Fail(forge.FailInvalidOutput, "nothing ran: %s. Give your verdict, with every requirement",
		strings.Join(wrong[:min(len(wrong), maxWrong)], "; "))
}

// converse has the call take place in the command's session, which goes on when checks have
// run. A review that has not asked for any begins anew, also where it is repeated: no
// earlier try of it is to be heard.
func (h *claimCheck) converse(ctx context.Context, j *jobs.Job, call *agent.Call, c *reviewData) error {
	call.StateDir = j.StateDir(stateOf(j.Command.Attempt.Task))
	if len(c.Ran) == 0 {
		if err := j.DropSession(call.StateDir); err != nil {
			return err
		}
	} else if _, err := j.FetchSession(ctx, call.StateDir); err != nil {
		return err
	}
	h.prompts = func(o sessions.Start) (system, text string, err error) {
		if system, text, err = render(c); err == nil && o == sessions.Resumed {
			text, err = reviewPrompt.Render("resume", c)
		}
		return system, text, err
	}
	return nil
}

// stateSuffix ends the names of the state directories of reviews. No task has such a name,
// and no step of an intent.
const stateSuffix = "-review"

// stateOf returns the name of the directory with the session of a task's review.
func stateOf(task forge.TaskID) string { return string(task) + stateSuffix }

// sweep removes sessions that the process before this one left. A review that goes on
// begins anew then, with all that its checks said.
func sweep(_ context.Context, r *jobs.Repository) error {
	return r.Forget(func(name string) bool { return !strings.HasSuffix(name, stateSuffix) })
}
