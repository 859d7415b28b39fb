package approval_test

import (
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/approval"
)

// requesters are a person who is proven to ask, and one of whom that is claimed.
var requesters = []forge.Identity{{Name: "ann", Proven: true}, {Name: "bob"}}

// Each row is a person who tries to approve.
func TestObjection(t *testing.T) {
	four := approval.Rules{Approvals: forge.Approvals{Count: 2, NotRequester: true}, Requesters: requesters}
	two := approval.Rules{Approvals: forge.Approvals{Count: 1}, Approvers: []string{"ann", "eve"}, Requesters: requesters}
	one := approval.Rules{Requesters: requesters}
	adopted := approval.Rules{Approvals: forge.Approvals{NotRequester: true}, Authors: []string{"Zoe", "zoe@example.com"}}
	open := approval.Rules{Authors: adopted.Authors}
	for _, c := range []struct {
		rules    approval.Rules
		by, want string
		setting  string
	}{
		{rules: four, by: "eve"},
		{four, "ann", "what they asked for", "policy.approvals.not_requester"},
		{four, " ANN", "what they asked for", "policy.approvals.not_requester"},
		{four, "bob", "its sender claims", "policy.approvals.not_requester"},
		{four, "", "with the name of a person", "policy.approvals"},
		{rules: two, by: "ann"},
		{two, "bob", "those who may are: ann, eve", "policy.approvers"},
		{two, "ANN", "those who may are: ann, eve", "policy.approvers"}, // what is allowed is as it is written
		{rules: one, by: "ann"},
		{adopted, "zoe", "a commit in it says that they made it", "policy.approvals.not_requester"},
		{adopted, "zoe@example.com", "a commit in it says that they made it", "policy.approvals.not_requester"},
		{rules: adopted, by: "ann"},
		{rules: open, by: "zoe"},
		{rules: one}, // where it does not matter who, as on a machine that knows no name
	} {
		if why, setting := c.rules.Objection(c.by); !strings.Contains(why, c.want) || (why == "") != (c.want == "") || setting != c.setting {
			t.Errorf("%q: got %q (%s), want %q (%s)", c.by, why, setting, c.want, c.setting)
		}
	}
}

// Approvals add up for the same hash only, and people count once.
func TestEnough(t *testing.T) {
	rules := approval.Rules{Approvals: forge.Approvals{Count: 2}}
	var c approval.Collection
	add := func(what, hash, by string) { c.Add(approval.Approval{What: what, Hash: hash, By: by}) }
	add(approval.OfPlan, "1", "ann")
	add(approval.OfPlan, "1", "Ann")
	if rules.Enough(c.Of(approval.OfPlan, "1")) {
		t.Error("one person is two")
	}
	before := c.Of(approval.OfPlan, "1")
	add(approval.OfPlan, "2", "bob")
	if len(c.Given) != 1 || len(before) != 2 || c.Of(approval.OfPlan, "1") != nil || c.Of(approval.OfChanges, "2") != nil || c.Of(approval.OfPlan, "") != nil {
		t.Errorf("an approval of another plan counts: %+v", c)
	}
	add(approval.OfPlan, "2", "ann")
	if !rules.Enough(c.Of(approval.OfPlan, "2")) || rules.Progress(c.Given) != "2 of 2 approvals (bob, ann)" {
		t.Error(rules.Progress(c.Given))
	}
}

// Where it is known that there can never be enough approvals, that is said.
func TestStuck(t *testing.T) {
	rules := func(count, persons int, not bool, approvers ...string) *approval.Rules {
		return &approval.Rules{
			Approvals: forge.Approvals{Count: count, NotRequester: not, Persons: persons}, Approvers: approvers, Requesters: requesters[:1],
		}
	}
	for name, c := range map[string]struct {
		rules *approval.Rules
		want  string
	}{
		"not known":                    {rules(20, 0, true), ""},
		"as many as there are":         {rules(2, 2, false, "ann", "eve"), ""},
		"one of them asked":            {rules(2, 2, true, "ann", "eve"), "it needs 2 approvals, and 1 person here could give one"},
		"another one asked":            {rules(2, 2, true, "eve", "zoe"), ""},
		"one person, own request":      {rules(1, 1, false), ""},
		"one person, and not theirs":   {rules(1, 1, true), "it needs 1 approval, and 0 persons here could give one"},
		"one person, two to approve":   {rules(2, 1, false), "it needs 2 approvals, and 1 person here could give one"},
		"one of the named can be here": {rules(2, 1, false, "ann", "eve"), "and 1 person here could give one"},
	} {
		if got := c.rules.Stuck(); !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}
