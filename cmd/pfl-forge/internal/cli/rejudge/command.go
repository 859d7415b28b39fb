// Package rejudge is the command rejudge: it has verdicts of the past given
// once more, and compares.
//
// It goes in four steps, each in a file: the journals are read for commands of the
// steps review and judge and for their results (past.go); a reviewer of this process
// gets each command again, with the agent, the model or the system prompt that is to
// be tried (ask.go); both answers are weighed by the rules of this program and laid
// side by side (compare.go); and the comparison is printed (this file).
//
// A comparison says nothing of who was right. It shows how often another model, or another
// prompt, comes to the same verdict, and on which requirement it does not, so that a person
// can look there. Asking without any replacement measures how steady the present reviewer is.
package rejudge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/complete"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/target"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
)

const help = `Ask reviewers and judges of the past once more, with exactly the inputs that they had, and
compare: on how many verdicts both agree, on which requirement or criterion they differ and why,
and what it cost. So a new model, another agent or a changed prompt is tried on real work before
it decides on any.

The inputs are those of the journal: the request, the requirements, the commit, what its commands
printed. The answer is judged by the rules of this program, with its evidence looked up in that
commit. Nothing else happens: no run is affected, no branch moves, nothing is merged.

The agents run here, in this repository, and are paid like any other call: --budget bounds what
they may cost in all.`

// flags are those of the command.
type flags struct {
	// role, since, until and limit select verdicts.
	role, since, until string
	limit              int
	// agent, model and prompt, a path, replace parts of the configuration.
	agent, model, prompt string
	// budget is for all calls together, in US dollars.
	budget float64
	format render.Format
}

// The roles, each with its step.
var roles = map[string]forge.Step{"review": forge.StepReview, "judge": forge.StepJudge}

// maxPrompt bounds a system prompt, in bytes.
const maxPrompt = 64 << 10

// Command returns the command rejudge.
func Command(a *kit.App) *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:   "rejudge [intent]...",
		Short: "repeat past reviews and judgments with another model, and compare",
		Long:  help,
		Example: "  pfl-forge rejudge --since 168h --model opus\n" +
			"  pfl-forge rejudge --role judge --agent codex --limit 5 -o json\n" +
			"  pfl-forge rejudge reset-link --role review --prompt-file stricter.md",
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: complete.Intents(a, complete.AnyIntent, 0),
		RunE: func(cmd *cobra.Command, args []string) error {
			q, o, err := f.parse(args, time.Now())
			if err != nil {
				return kit.Usage(err)
			}
			return rejudge(cmd.Context(), a, q, o, &f)
		},
	}
	set := cmd.Flags()
	set.StringVar(&f.role, "role", "", "only verdicts of a `role`: review, judge (default both)")
	set.StringVar(&f.since, "since", "", "only verdicts after a `time` such as 24h or 2026-03-01")
	set.StringVar(&f.until, "until", "", "only verdicts before a `time`")
	set.StringVar(&f.agent, "agent", "", "the `agent` to ask (default as the project configures)")
	set.StringVar(&f.model, "model", "", "the `model` to ask (default as the project configures)")
	set.StringVar(&f.prompt, "prompt-file", "", "a `file` whose text takes the place of the role's system prompt; needs --role")
	set.IntVar(&f.limit, "limit", 20, "how many verdicts to ask about, the newest `number`; 0 for all")
	set.Float64Var(&f.budget, "budget", 5, "what all calls together may cost, in US `dollars`")
	_ = cmd.RegisterFlagCompletionFunc("role", cobra.FixedCompletions([]string{"review", "judge"}, cobra.ShellCompDirectiveNoFileComp))
	kit.OutputFlag(cmd, &f.format)
	return cmd
}

// parse returns the query and the replacements that the flags and arguments
// make. Its errors name the flag.
func (f *flags) parse(args []string, now time.Time) (q *query, o *other, err error) {
	q, o = &query{limit: f.limit}, &other{agent: f.agent, model: f.model}
	if q.intents, err = kit.IntentIDs(args); err != nil {
		return nil, nil, err
	}
	switch step, ok := roles[f.role]; {
	case ok:
		q.steps = []forge.Step{step}
	case f.role != "":
		return nil, nil, fmt.Errorf("--role: %q is not one of review, judge", f.role)
	default:
		q.steps = []forge.Step{forge.StepReview, forge.StepJudge}
	}
	if q.since, err = kit.ParseSince(f.since, now); err != nil {
		return nil, nil, fmt.Errorf("--since: %w", err)
	}
	if q.until, err = kit.ParseSince(f.until, now); err != nil {
		return nil, nil, fmt.Errorf("--until: %w", err)
	}
	switch {
	case f.limit < 0:
		return nil, nil, errors.New("--limit: must not be negative")
	case !(f.budget > 0 && f.budget <= 10_000): // NaN is neither
		return nil, nil, errors.New("--budget: must be above 0, and at most 10000")
	case strings.HasPrefix(f.model, "-"):
		return nil, nil, errors.New("--model: must not start with a hyphen")
	case f.prompt != "" && f.role == "":
		return nil, nil, errors.New("--prompt-file: needs --role, whose prompt it is")
	case f.prompt != "":
		text, err := readPrompt(f.prompt)
		if err != nil {
			return nil, nil, fmt.Errorf("--prompt-file: %w", err)
		}
		o.system = map[forge.Step]string{roles[f.role]: text}
	}
	return q, o, nil
}

// readPrompt returns the text of a file.
func readPrompt(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxPrompt+1))
	switch {
	case err != nil:
		return "", err
	case len(text) > maxPrompt:
		return "", fmt.Errorf("%s is longer than %d bytes", path, maxPrompt)
	case strings.TrimSpace(string(text)) == "":
		return "", fmt.Errorf("%s is empty", path)
	}
	return string(text), nil
}

// rejudge asks again, one after the other, and prints the comparison. What was
// asked until Ctrl-C is printed, too.
func rejudge(ctx context.Context, a *kit.App, q *query, o *other, f *flags) error {
	t, err := target.Reader(ctx, a)
	if err != nil {
		return err
	}
	defer t.Close()
	if t.Repo == nil {
		return errors.New("the commits that were judged are read here: change to a clone of the repository")
	}
	r := report{Verdicts: []comparison{}}
	var list []question
	if t.Bus != nil {
		if list, r.Found, err = find(ctx, t, q); err != nil {
			return err
		}
	}
	if len(list) > 0 {
		if err := askAll(ctx, a, t, list, o, f, &r); err != nil {
			return err
		}
	}
	err = a.Print(f.format, r, nil, func() error { return text(a, &r) })
	if err == nil && ctx.Err() != nil {
		err = kit.ExitInterrupted
	}
	return err
}

// askAll asks every question again while there is money for it. The store is closed before: calls
// take long, and a run may begin meanwhile.
func askAll(ctx context.Context, a *kit.App, t *target.Target, list []question, o *other, f *flags, r *report) (err error) {
	t.Close()
	asker, err := newAsker(ctx, a, t, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, asker.close()) }()
	for i := range list {
		left := f.budget - r.CostUSD
		if left < smallestCall || ctx.Err() != nil {
			r.Unasked = len(list) - i
			return nil
		}
		at := list[i].command.Attempt
		a.Say("%d of %d: %s of %s", i+1, len(list), render.StepName(at), list[i].command.To.Intent)
		c := asker.ask(ctx, &list[i], left)
		if ctx.Err() != nil && c.Now == nil {
			r.CostUSD += c.CostUSD
			r.Unasked = len(list) - i
			return nil
		}
		r.add(&c)
	}
	return nil
}

// smallestCall is the least that a call is started with, in US dollars.
const smallestCall = 0.01

// text prints a report for a person: each verdict, where they differ the reasons, and the sums.
func text(a *kit.App, r *report) error {
	if r.Found == 0 {
		a.Say("no review or judgment by a model matches; reviews by recipes are not repeated. Which runs there are: pfl-forge history")
		return nil
	}
	columns := render.Columns{Header: []string{"TASK", "STEP", "BEFORE", "NOW", "BY", "COST", "WHY"}, Shrink: 6}
	for i := range r.Verdicts {
		c := &r.Verdicts[i]
		now, by, why := "no answer", "", c.Error
		if c.Now != nil {
			now, by, why = c.Now.Verdict, strings.Join(slices.DeleteFunc([]string{c.Now.Agent, c.Now.Model}, func(s string) bool { return s == "" }), " "), ""
		}
		if c.Now != nil && !c.Agrees {
			why = strings.Join(append(slices.Clone(c.Flips), firstReason(c)...), "; ")
		}
		name := string(c.Task)
		if name == "" {
			name = string(c.Intent)
		}
		columns.Add(name, render.StepName(forge.Attempt{Step: c.Step, Number: c.Attempt}), c.Before.Verdict, now, by, render.Cost(c.CostUSD), render.FirstLine(why))
	}
	if err := a.Table(&columns); err != nil {
		return err
	}
	fmt.Fprintln(a.Out, summary(r))
	if r.Unasked > 0 {
		a.Say("%s not asked: the budget is used up, or you stopped it; --budget raises it", render.Count(r.Unasked, "verdict"))
	}
	if n := r.Found - len(r.Verdicts) - r.Unasked; n > 0 {
		a.Say("%d older ones are left out; --limit 0 asks all", n)
	}
	return nil
}

// firstReason returns why the stricter of both verdicts is none, if no claim says it.
func firstReason(c *comparison) []string {
	if len(c.Flips) > 0 {
		return nil
	}
	for _, list := range [][]string{c.Now.Reasons, c.Before.Reasons} {
		if len(list) > 0 {
			return list[:1]
		}
	}
	return nil
}

// summary returns the sums in a line.
func summary(r *report) string {
	parts := []string{fmt.Sprintf("%d of %d agree", r.Agree, r.Asked)}
	if r.Asked > 0 {
		parts[0] += fmt.Sprintf(" (%d%%)", 100*r.Agree/r.Asked)
	}
	for _, p := range []struct {
		n    int
		text string
	}{{r.Stricter, "%d stricter now"}, {r.Laxer, "%d laxer now"}, {r.Failed, "%d without an answer"}} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf(p.text, p.n))
		}
	}
	if cost := render.Cost(r.CostUSD); cost != "" {
		parts = append(parts, cost)
	}
	return strings.Join(parts, ", ")
}
