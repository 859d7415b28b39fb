package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/local"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
	"github.com/pfl-forge/pfl-forge/internal/slug"
)

// prepare makes an intent of the target's project that can be submitted.
func (a *app) prepare(ctx context.Context, t *target, i *forge.Intent) error {
	all, err := t.summaries(ctx)
	if err != nil {
		return err
	}
	i.Project, i.Origin.Actor = t.project, t.actor
	if err := place(i, all); err != nil {
		return err
	}
	return a.checkIntent(ctx, t, i)
}

// place gives an intent an id that is free, if it has none, and looks for those
// that it depends on.
func place(i *forge.Intent, all []forge.Summary) error {
	taken := map[forge.IntentID]bool{}
	for k := range all {
		taken[all[k].Key.Intent] = true
	}
	switch {
	case i.ID == "":
		i.ID = freeID(i.Title, taken)
	case taken[i.ID]:
		return fmt.Errorf("id: %s is taken by another intent; choose another one, or leave it out", i.ID)
	}
	for _, d := range i.DependsOn {
		if _, err := forge.ParseIntentID(string(d)); err != nil {
			return usageError{fmt.Errorf("--depends-on: %w", err)}
		}
		if !taken[d] && d != i.ID {
			return fmt.Errorf("--depends-on: %w", noIntent(d))
		}
	}
	return nil
}

// freeID returns an id that is spelled like the title and that no intent has yet.
func freeID(title string, taken map[forge.IntentID]bool) forge.IntentID {
	const room = 12 // for a number, and for the numbers of tasks
	name := slug.Named("intent", title)
	if len(name) > forge.MaxIDLength-room {
		name = strings.TrimRight(name[:forge.MaxIDLength-room], "-")
	}
	id := forge.IntentID(name)
	for n := 2; taken[id]; n++ {
		id = forge.IntentID(name + "-" + strconv.Itoa(n))
	}
	return id
}

// checkIntent looks at everything that can be known to be wrong before an intent
// is submitted.
func (a *app) checkIntent(ctx context.Context, t *target, i *forge.Intent) error {
	if e := i.Validate(); e != nil {
		return usageError{e}
	}
	if len(i.With) > 0 && i.Recipe == "" {
		return usageError{errors.New("--with needs --recipe")}
	}
	if i.Recipe == "" && i.Agent == "" || t.repo == nil || t.remote {
		return nil // the analysis says what is wrong
	}
	base, err := t.repo.Base(ctx)
	if err != nil {
		return err
	}
	return local.CheckNames(base.Config, i)
}

// store submits an intent. It is false if no runner has decided yet.
func (t *target) store(ctx context.Context, i *forge.Intent) (decided bool, err error) {
	ruling, err := t.ask(ctx, forge.Event{To: t.key(i.ID), Message: &forge.Submit{Intent: *i}})
	if err == nil && ruling.Decision == forge.Refused {
		err = fmt.Errorf("%s: %s", i.ID, ruling.Reason)
	}
	return ruling.Decision != "", err
}

// submit stores an intent and prints its id.
func (a *app) submit(ctx context.Context, t *target, i *forge.Intent, format render.Format) error {
	decided, err := t.store(ctx, i)
	if err != nil {
		return err
	}
	if format.Data() {
		err = a.printIntent(i, format)
	} else {
		_, err = fmt.Fprintln(a.out, i.ID)
	}
	if err != nil {
		return err
	}
	if !decided {
		a.say("accepted; no runner has decided yet")
	}
	a.say("%s", t.next())
	return nil
}

// created is an intent that is, or would be, submitted, as programs read it.
type created struct {
	ID        forge.IntentID    `json:"id"                   yaml:"id"`
	Project   forge.ProjectID   `json:"project"              yaml:"project"`
	Title     string            `json:"title"                yaml:"title"`
	Type      string            `json:"type,omitempty"       yaml:"type,omitempty"`
	Risk      forge.Risk        `json:"risk,omitempty"       yaml:"risk,omitempty"`
	DependsOn []forge.IntentID  `json:"depends_on,omitempty" yaml:"depends_on,omitempty"`
	Labels    []string          `json:"labels,omitempty"     yaml:"labels,omitempty"`
	Priority  int               `json:"priority,omitempty"   yaml:"priority,omitempty"`
	Agent     string            `json:"agent,omitempty"      yaml:"agent,omitempty"`
	Budget    float64           `json:"budget_usd,omitempty" yaml:"budget_usd,omitempty"`
	Recipe    string            `json:"recipe,omitempty"     yaml:"recipe,omitempty"`
	With      map[string]string `json:"with,omitempty"       yaml:"with,omitempty"`
	Criteria  []string          `json:"criteria,omitempty"   yaml:"criteria,omitempty"`
	Goal      *goalOptions      `json:"goal,omitempty"       yaml:"goal,omitempty"`
	Body      string            `json:"body"                 yaml:"body"`
}

func (a *app) printIntent(i *forge.Intent, format render.Format) error {
	if format == render.Name {
		_, err := fmt.Fprintln(a.out, i.ID)
		return err
	}
	if format != render.JSON {
		format = render.YAML
	}
	return format.Write(a.out, created{
		i.ID, i.Project, i.Title, i.Type, i.Risk, i.DependsOn, i.Labels, i.Priority, i.Agent, i.BudgetUSD, i.Recipe, i.With,
		i.Criteria, goalOptionsOf(i.Goal), i.Body,
	})
}
