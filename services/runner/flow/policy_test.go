package flow_test

import (
	"strings"

	"github.com/pfl-forge/pfl-forge"
)

// policyOf reads a project's policy; nil if nothing is said of it.
func policyOf(arg func(string) string, list func(string) []string) *forge.Policy {
	p := forge.DefaultPolicy()
	p.TrustedOrigins, p.ProtectedPaths, p.Approvers = list("trusted"), list("protected"), list("approvers")
	p.Budget = forge.Budget{ProjectUSD: usd(arg("project")), DayUSD: usd(arg("day")), IntentUSD: usd(arg("intent")), CallUSD: usd(arg("call"))}
	if n := arg("count"); n != "" {
		p.Approvals.Count, p.Approvals.NotRequester, p.Approvals.Persons = int(usd(n)), arg("not") != "", len(p.Approvers)
	}
	p.Fallbacks, p.AnalyzeBeforeApproval, p.MaxChecks = int(usd(arg("fallbacks"))), arg("unapproved"), int(usd(arg("checks")))
	p.StrongerImplement, p.StrongerReview = strongerOf(list("stronger")), strongerOf(list("reviewed-by"))
	p.BestOfTwo, p.MergeParallel = forge.BestOfTwo{When: list("best"), By: append(strongerOf(list("best-by")), forge.Stronger{})[0]}, int(usd(arg("parallel")))
	p.Pull = pullPolicyOf(list("pull"))
	p.VerifyInMerge, p.MergeBatch, p.MergeWhole = arg("verify") == "once", int(usd(arg("batch"))), arg("unit") == "intent"
	if p.Second.By.Agent, p.Second.By.Model, _ = strings.Cut(arg("second"), ":"); p.Second.By.Agent != "" {
		p.Second.When = risksOf(list("when"))
	}
	escalates := p.Second.By.Agent != "" || len(p.StrongerImplement)+len(p.StrongerReview) > 0
	escalates = escalates || p.Pull != nil || p.MergeWhole
	escalates = escalates || p.AnalyzeBeforeApproval != "" || p.MaxChecks > 0 || p.BestOfTwo.When != nil || p.MergeParallel > 0 || p.VerifyInMerge
	if !escalates && p.TrustedOrigins == nil && p.ProtectedPaths == nil && p.Budget == (forge.Budget{}) && p.Fallbacks == 0 && p.Approvals.Count == 0 {
		return nil
	}
	return &p
}

// risksOf reads the risks for which a second reviewer is needed.
func risksOf(list []string) []forge.Risk {
	if len(list) == 0 {
		return []forge.Risk{forge.RiskMed, forge.RiskHigh}
	}
	var out []forge.Risk
	for _, r := range list {
		out = append(out, forge.Risk(r))
	}
	return out
}

// strongerOf reads the steps of an escalation, each as model:effort.
func strongerOf(list []string) []forge.Stronger {
	var out []forge.Stronger
	for _, s := range list {
		model, effort, _ := strings.Cut(s, ":")
		out = append(out, forge.Stronger{Model: model, Effort: effort})
	}
	return out
}
