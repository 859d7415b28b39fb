package jobs

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/config"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/internal/demand"
)

// maxConfigs bounds the cache of parsed configurations.
const maxConfigs = 64

// configs caches pfl-forge.yaml by commit. A commit never changes, so entries are
// never stale.
type configs struct {
	mu   sync.Mutex
	seen map[git.OID]*config.Project
}

// Config returns the parsed pfl-forge.yaml of a commit, which must be on the base
// branch, or the defaults if the commit has none. A file that is wrong gives a
// forge.FailConfig that names file and line, for a person to mend.
func (r *Repository) Config(ctx context.Context, at git.OID) (*config.Project, error) {
	r.configs.mu.Lock()
	p := r.configs.seen[at]
	r.configs.mu.Unlock()
	if p != nil {
		return p, nil
	}
	const most = 1 << 20 // Parse has the real limit, and names it
	data, err := r.Store.ReadFile(ctx, at, config.FileName, most)
	switch {
	case errors.Is(err, git.ErrNotFound):
		p = config.Default()
	case errors.Is(err, git.ErrTooLarge):
		return nil, agent.Fail(forge.FailConfig, "%s is longer than %d bytes", config.FileName, most)
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", config.FileName, err)
	default:
		if p, err = config.Parse(data); err != nil {
			return nil, agent.Fail(forge.FailConfig, "%s at %s is wrong; fix it on the base branch, then retry:\n%v", config.FileName, at.Short(), err)
		}
	}
	if r.host.Allow != nil {
		if err := r.host.Allow(ctx, p); err != nil {
			return nil, agent.Fail(forge.FailConfig, "%s at %s: %v. See what it is, and say so if it may: pfl-forge trust; then retry",
				config.FileName, at.Short(), err)
		}
	}
	if r.host.Adjust != nil {
		r.host.Adjust(p)
	}
	r.configs.mu.Lock()
	defer r.configs.mu.Unlock()
	if len(r.configs.seen) >= maxConfigs || r.configs.seen == nil {
		r.configs.seen = map[git.OID]*config.Project{}
	}
	r.configs.seen[at] = p
	return p, nil
}

// PolicyOf returns the project's policy as of the job's Tip, as the rules of
// the flow read it. Whether a requester may approve is settled here if the
// project does not say: not where more than one person could.
func PolicyOf(j *Job) *forge.Policy {
	policy := j.Config.Rules()
	a := &policy.Approvals
	a.Commit = string(j.Tip)
	if j.Repository.host.Alone {
		a.Persons = 1
	}
	// How many people there are is often not known; then the safe value holds.
	a.NotRequester = a.Persons != 1
	if said := j.Config.Policy.Approvals.NotRequester; said != nil {
		a.NotRequester = *said
	}
	policy.Settings = j.settings(a.NotRequester)
	return policy
}

// settings returns the settings that are not the defaults, and those that are
// settled where the work is done, for people to see.
func (j *Job) settings(notRequester bool) (list []forge.Setting) {
	strict, loose := j.host.Sandbox == demand.Require, unconfined(j)
	for _, s := range j.Config.Settings() {
		tell := s.By != config.ByDefault
		switch {
		case s.Name == "base_branch" && s.Value == "":
			s.Value, tell = j.known(), true
		case s.Name == "policy.approvals.not_requester":
			s.Value, tell = strconv.FormatBool(notRequester), true
		case s.Name == "policy.sandbox" && loose:
			s.Value, s.By, tell = string(demand.Unconfined), config.ByOperator, true
		case s.Name == "policy.sandbox" && strict:
			s.Value, s.By, tell = string(config.SandboxRequire), config.ByOperator, true
		case strict && tell && (s.Name == "policy.sandbox_read" || s.Name == "policy.sandbox_write"):
			s.Value, s.By = "", config.ByOperator
		}
		if tell {
			list = append(list, s)
		}
	}
	return list
}
