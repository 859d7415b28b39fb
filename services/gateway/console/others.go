package console

import (
	"slices"
	"strings"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document/setup"
	"github.com/pfl-forge/pfl-forge/services/gateway/console/others"
)

// setOthers shows who else may take the decisions of a page, for those alone who may take
// them, or may not because they asked for it. What cannot be read of the policy is said.
func setOthers(v *visit, list ...*pending) {
	if v.console.cfg.Own != nil {
		return
	}
	for _, p := range list {
		if len(p.Offers)+len(p.Asked) == 0 && p.Objection == "" {
			continue
		}
		me, _ := v.token.Holder()
		d := others.Decision{Project: p.Project, Verb: others.Verb(p.Waiting), Without: []string{me}}
		unread := ""
		if p.Waiting == forge.WaitingApproval {
			if a := p.Approvals; a != nil {
				d.Without = slices.Concat(d.Without, a.Given, a.Barred)
			}
			if s := setting(v, p.Project, "policy.approvers"); s == nil {
				unread = ", as far as their roles say: policy.approvers cannot be read now"
			} else if s.Value != "" {
				d.Approvers = strings.Split(s.Value, "\n")
			}
		}
		p.Others = others.Words(others.Of(v.console.cfg.Tokens.In(p.Project), d, v.console.cfg.Now())) + unread
	}
}

// barsRequesters reports whether the settings of a project say that a requester may not approve.
// The state of an intent tells who is barred while it waits for an approval alone, and not where
// a person decides between two reviewers. Where the settings cannot be read, the rules decide.
func barsRequesters(v *visit, p forge.ProjectID) bool {
	s := setting(v, p, "policy.approvals.not_requester")
	return s != nil && s.Value == "true"
}

// setting reads a setting of a project, once for a page; nil if that cannot be told now.
func setting(v *visit, p forge.ProjectID, name string) *setup.Setting {
	if _, read := v.inForce[p]; !read {
		s := &setup.InForce{}
		if err := v.ask(v.r.Context(), p, "/settings", s); err != nil {
			s = nil
		}
		if v.inForce == nil {
			v.inForce = map[forge.ProjectID]*setup.InForce{}
		}
		v.inForce[p] = s
	}
	if s := v.inForce[p]; s != nil {
		for i := range s.Settings {
			if s.Settings[i].Name == name {
				return &s.Settings[i]
			}
		}
	}
	return nil
}
