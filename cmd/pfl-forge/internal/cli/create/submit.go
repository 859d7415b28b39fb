package create

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nuid"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/goalview"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/target"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/local"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/internal/slug"
)

// New returns an intent as this program asks for it, with a title, a text and nothing
// else. Prepare adds the rest.
// Its origin names this program, with an event id that is new for each.
func New(title, body string) *forge.Intent {
	return filled(forge.Intent{}, title, body)
}

// filled adds to the fields that were given those that every intent of this program has.
func filled(i forge.Intent, title, body string) *forge.Intent {
	i.Title, i.Body, i.Source, i.Status = title, body, forge.SourceHuman, forge.StatusProposed
	i.Origin, i.CreatedAt = forge.Origin{System: originSystem, EventID: nuid.Next()}, time.Now().UTC()
	return &i
}

// Prepare completes an intent for a project, with a free id if it has none, and checks
// everything about it that can be known before it is submitted. An organisation's
// project that is not known is refused. It writes nothing but i. Whether it is
// accepted the rules decide, which also see what was submitted meanwhile.
func Prepare(ctx context.Context, t *target.Target, i *forge.Intent) error {
	all, err := t.Summaries(ctx)
	if err != nil {
		return err
	}
	if err := t.CheckProject(ctx, len(all) > 0); err != nil {
		return err
	}
	i.Project, i.Origin.Actor = t.Project, t.Actor
	if t.ByHTTP() && i.ID != "" { // whether it is the same is for the gateway to say: the answer may have been lost
		all = slices.DeleteFunc(slices.Clone(all), func(s forge.Summary) bool { return s.Key.Intent == i.ID })
	}
	if err := place(i, all); err != nil {
		return err
	}
	return checkIntent(ctx, t, i)
}

// place gives an intent a free id if it has none, and refuses one that depends
// on intents that do not exist. all are the intents of the project. An id that
// is taken is an error, and no number is added to one that a person has chosen.
func place(i *forge.Intent, all []forge.Summary) error {
	taken := map[forge.IntentID]bool{}
	for k := range all {
		taken[all[k].Key.Intent] = true
	}
	switch {
	case i.ID == "":
		i.ID = freeID(i.Title, taken)
	case taken[i.ID]:
		return fmt.Errorf("id: %s is taken by another intent; choose another one, or omit it", i.ID)
	}
	for _, d := range i.DependsOn {
		if _, err := forge.ParseIntentID(string(d)); err != nil {
			return kit.Usage(fmt.Errorf("--depends-on: %w", err))
		}
		if !taken[d] && d != i.ID {
			return fmt.Errorf("--depends-on: %w", target.NoIntent(d))
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

// checkIntent returns the first mistake in an intent that can be known before it is
// submitted: without a repository the names of recipes and agents cannot.
func checkIntent(ctx context.Context, t *target.Target, i *forge.Intent) error {
	if e := i.Validate(); e != nil {
		return kit.Usage(e)
	}
	if len(i.With) > 0 && i.Recipe == "" {
		return kit.Usage(errors.New("--with needs --recipe"))
	}
	if i.Recipe == "" && i.Agent == "" || t.Repo == nil || t.Remote {
		return nil // the analysis says what is wrong
	}
	base, err := t.Repo.Base(ctx)
	if err != nil {
		return err
	}
	return local.CheckNames(base.Config, i)
}

// Store submits an intent. A refusal is an error; undecided is why no runner has ruled on it
// yet, and empty if one has.
// It prints nothing.
func Store(ctx context.Context, t *target.Target, i *forge.Intent) (undecided string, err error) {
	ruling, err := t.Ask(ctx, forge.Event{To: t.Key(i.ID), Message: &forge.Submit{Intent: *i}})
	if err == nil && ruling.Decision == forge.Refused {
		err = fmt.Errorf("%s: %s", i.ID, ruling.Reason)
	}
	if ruling.Decision == "" {
		undecided = ruling.Reason
	}
	return undecided, err
}

// Submit submits an intent, and prints its id and who goes on. The id, or with
// a format for programs the intent, goes to standard output. That no runner has
// ruled yet is no error: the wish is stored.
func Submit(ctx context.Context, a *kit.App, t *target.Target, i *forge.Intent, format render.Format) error {
	undecided, err := Store(ctx, t, i)
	if err != nil {
		return err
	}
	if format.Data() {
		err = Print(a, i, format)
	} else {
		_, err = fmt.Fprintln(a.Out, i.ID)
	}
	if err != nil {
		return err
	}
	if undecided != "" {
		a.Say("accepted; %s", undecided)
	}
	if t.Doubt != nil {
		a.Say("cannot find out whether project %s is served: %s", t.Project, kit.Safe(t.Doubt.Error()))
	}
	a.Say("%s", t.Next())
	return nil
}

// created is an intent that was or would be submitted, as programs read it.
type created struct {
	ID                forge.IntentID   `json:"id"                   yaml:"id"`
	Project           forge.ProjectID  `json:"project"              yaml:"project"`
	Title             string           `json:"title"                yaml:"title"`
	Type              string           `json:"type,omitempty"       yaml:"type,omitempty"`
	Risk              forge.Risk       `json:"risk,omitempty"       yaml:"risk,omitempty"`
	DependsOn         []forge.IntentID `json:"depends_on,omitempty" yaml:"depends_on,omitempty"`
	document.Settings `yaml:",inline"`
	Criteria          []string          `json:"criteria,omitempty"   yaml:"criteria,omitempty"`
	Goal              *goalview.Options `json:"goal,omitempty"       yaml:"goal,omitempty"`
	Body              string            `json:"body"                 yaml:"body"`
}

// Print prints an intent that was not submitted, or not yet: as YAML unless the format is another
// one for programs.
// It has the whole text, as it is sent.
func Print(a *kit.App, i *forge.Intent, format render.Format) error {
	if format == render.Name {
		_, err := fmt.Fprintln(a.Out, i.ID)
		return err
	}
	if format != render.JSON {
		format = render.YAML
	}
	return format.Write(a.Out, created{
		i.ID, i.Project, i.Title, i.Type, i.Risk, i.DependsOn, document.SettingsOf(i), i.Criteria, goalview.OptionsOf(i.Goal), i.Body,
	})
}
