package config

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/internal/schedules"
)

// Schedule has an intent submitted again and again. The file alone does
// nothing: a person applies it, and becomes the requester of these intents.
type Schedule struct {
	// Name names it: letters in lower case, digits and hyphens.
	Name string `yaml:"name"`
	// Cron says when: minute, hour, day of the month, month and day of the
	// week, or @hourly, @daily, @weekly, @monthly or @yearly.
	Cron string `yaml:"cron"`
	// Zone is the time zone of Cron, such as Europe/Berlin. Empty means UTC.
	Zone string `yaml:"zone"`
	// Missed says what becomes of the times at which nothing was running: once
	// (one intent for all of them) or skip. Empty means once.
	Missed string `yaml:"missed"`
	// Intent has the settings of the intents.
	Intent ScheduledIntent `yaml:"intent"`
}

// ScheduledIntent is the intent of a schedule, with the keys of a draft.
type ScheduledIntent struct {
	document.Draft `yaml:",inline"`

	// Body says what should change, and why. Empty means the title.
	Body string `yaml:"body"`
}

// Schedule returns the schedule as the rules take it: with a body, which they ask of every intent.
// For a recipe the title says all there is to say, so it stands for a body that is left out.
func (s *Schedule) Schedule() forge.Schedule {
	in := s.Intent.Draft.Intent()
	in.Body = cmp.Or(s.Intent.Body, in.Title)
	return forge.Schedule{Name: s.Name, Cron: s.Cron, Zone: s.Zone, Missed: s.Missed, Intent: in}
}

// ScheduleNames returns the names of the project's schedules, in the order of the file.
func (p *Project) ScheduleNames() []string {
	var list []string
	for i := range p.Schedules {
		list = append(list, p.Schedules[i].Name)
	}
	return list
}

// schedules checks the schedules by the rules' own measure, and that what their
// intents name is there: a recipe, an agent and checks of the same file. The rules
// do not know the file, so nothing else would find that before the first night. A
// name that is gone by then fails the analysis of the intent, as with any other.
func (c *checker) schedules(p *Project) {
	if n := len(p.Schedules); n > schedules.Max {
		c.fail("schedules", "has %d entries; at most %d are allowed", n, schedules.Max)
	}
	names := p.ScheduleNames()
	for i := range p.Schedules {
		s, field := &p.Schedules[i], fmt.Sprintf("schedules[%d]", i)
		in := &s.Intent
		as := s.Schedule()
		if e := schedules.Validate(&as); e != nil {
			c.fail(field+"."+e.Field, "%s", e.Reason)
		} else if slices.Index(names, s.Name) < i {
			c.fail(field+".name", "%q is the name of another one, too", s.Name)
		}
		if e := document.CheckCriteria(in.Criteria); e != nil {
			c.fail(field+".intent."+e.Field, "%s", e.Reason)
		}
		if _, there := p.Recipes[in.Recipe]; in.Recipe != "" && !there {
			c.fail(field+".intent.recipe", "no recipe is called %q%s", in.Recipe, suggestion("; ", in.Recipe, p.RecipeNames()))
		}
		if in.Recipe == "" && len(in.With) > 0 {
			c.fail(field+".intent.with", "needs a recipe")
		}
		if in.Agent != "" && !slices.Contains(p.AgentNames(), in.Agent) {
			c.fail(field+".intent.agent", "no agent is called %q%s", in.Agent, suggestion("; ", in.Agent, p.AgentNames()))
		}
		for _, criterion := range in.Criteria {
			if _, there := p.Checks[criterion.Check]; criterion.Check != "" && !there {
				c.fail(field+".intent.criteria", "no check is called %q%s", criterion.Check, suggestion("; ", criterion.Check, p.CheckNames()))
			}
		}
	}
}
