package runner

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/journal"
	"github.com/pfl-forge/pfl-forge/config"
	"github.com/pfl-forge/pfl-forge/document/setup"
	"github.com/pfl-forge/pfl-forge/internal/rules"
	"github.com/pfl-forge/pfl-forge/notify"
	"github.com/pfl-forge/pfl-forge/services/runner/machine"
)

// mostSearched bounds the intents whose journals are read for the newest settings.
// Each that was analyzed has some, so the first is nearly always enough.
const mostSearched = 20

// Settings returns by which settings a project is worked on, as the workers read
// them last. notifications are those of this installation, nil for none. Without a
// journal, as where nothing was ever submitted, all are the defaults. Where active
// is 0, the version of the rules is that of the newest record that was read.
func Settings(
	ctx context.Context, j *journal.Journal, project forge.ProjectID, notifications *notify.Config, active rules.Version,
) (setup.InForce, error) {
	s := setup.InForce{Project: project, Rules: int(active), Notifications: notified(notifications, project)}
	var intents []forge.Summary
	var err error
	if j != nil {
		if intents, err = j.Summaries(ctx, project); err != nil {
			return s, err
		}
	}
	slices.SortFunc(intents, func(a, b forge.Summary) int { return b.UpdatedAt.Compare(a.UpdatedAt) })
	var newest []forge.Setting
	for i := range intents[:min(len(intents), mostSearched)] {
		key := intents[i].Key
		if s.Read != nil && !intents[i].UpdatedAt.After(s.Read.At) {
			break
		}
		records, _, err := j.Load(ctx, key)
		if err != nil {
			return s, err
		}
		if n := len(records); n > 0 && s.Rules == 0 {
			s.Rules = int(rules.Of(&records[n-1]))
		}
		if p, at := policyOf(key, records); p != nil && (s.Read == nil || at.After(s.Read.At)) {
			s.Read, newest = &setup.Read{Commit: p.Approvals.Commit, Intent: key.Intent, At: at}, p.Settings
		}
	}
	s.Settings = settingsOf(newest)
	s.Schedules, err = schedulesOf(ctx, j, project)
	return s, err
}

// schedulesOf returns the schedules of a project; none where nothing was ever decided on.
func schedulesOf(ctx context.Context, j *journal.Journal, project forge.ProjectID) ([]setup.Schedule, error) {
	if j == nil {
		return setup.SchedulesOf(nil), nil
	}
	sum, err := j.Summary(ctx, forge.Key{Project: project})
	if errors.Is(err, bus.ErrNotFound) {
		err = nil
	}
	return setup.SchedulesOf(sum.Project), err
}

// policyOf returns the newest policy that an intent took from a result, and when; nil without one.
// What came too late to count is none, and neither is one of a worker that told no settings yet.
func policyOf(key forge.Key, records []forge.Record) (policy *forge.Policy, at time.Time) {
	m := machine.New(key)
	for i := range records {
		for k := range records[i].Events {
			ev := &records[i].Events[k]
			if r := forge.As[*forge.Result](ev.Message); r != nil {
				now := m.Summary()
				if p := resultPolicy(r); p != nil && len(p.Settings) > 0 && now.Wants(r.Attempt) {
					policy, at = p, ev.At
				}
			}
			m.Step(rules.Of(&records[i]), *ev)
		}
	}
	return policy, at
}

// resultPolicy returns the policy that a result tells; nil if it tells none.
func resultPolicy(r *forge.Result) *forge.Policy {
	if a := forge.As[*forge.Analysis](r.Output); a != nil {
		return a.Policy
	}
	if r.Failure() != nil {
		return nil // the rules take no more than the budgets of it
	}
	return r.Policy
}

// settingsOf returns every setting: those that were told, and the defaults of all others.
func settingsOf(reported []forge.Setting) []setup.Setting {
	byName := map[string]forge.Setting{}
	for _, list := range [][]forge.Setting{config.Default().Settings(), reported} {
		for _, s := range list {
			byName[s.Name] = s
		}
	}
	list := make([]setup.Setting, 0, len(byName))
	for _, s := range byName {
		list = append(list, setup.Setting{Name: s.Name, Value: s.Value, From: s.By})
	}
	slices.SortFunc(list, func(a, b setup.Setting) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// notified returns the targets that are notified of a project. Neither commands
// nor addresses are told: both can have secrets in them.
func notified(c *notify.Config, project forge.ProjectID) []setup.Target {
	list := []setup.Target{}
	if c == nil {
		return list
	}
	for i := range c.Targets {
		t := &c.Targets[i]
		if len(t.Projects) > 0 && !slices.Contains(t.Projects, project) {
			continue
		}
		one := setup.Target{Name: t.Name, By: "webhook"}
		if len(t.Command) > 0 {
			one.By = "command"
		}
		kinds := t.On
		if len(kinds) == 0 {
			kinds = notify.Kinds()
		}
		for _, k := range kinds {
			one.On = append(one.On, string(k))
		}
		list = append(list, one)
	}
	return list
}
