package mergequeue

import "github.com/pfl-forge/pfl-forge"

// Answer is a forge.MergeEnded as a snapshot has it: what is zero is left out. A project
// keeps one of every task that was ever merged, and reads all of them at a start.
type Answer struct {
	Task     forge.TaskID   `json:",omitzero"`
	Number   int            `json:",omitzero"`
	Result   *result        `json:",omitzero"`
	Failure  *forge.Failure `json:",omitzero"`
	Executor forge.Executor `json:",omitzero"`
	Look     int            `json:",omitzero"`
}

// result is a forge.MergeResult, in the same way.
type result struct {
	Outcome               forge.MergeOutcome  `json:",omitzero"`
	Commit                string              `json:",omitzero"`
	Parent, Tree, PatchID string              `json:",omitzero"`
	Files                 []string            `json:",omitzero"`
	Verify                *forge.VerifyReport `json:",omitzero"`
	Candidate             *forge.Rebase       `json:",omitzero"`
	Refusal               string              `json:",omitzero"`
	Branch, BaseBranch    string              `json:",omitzero"`
	Pull                  *forge.PullRequest  `json:",omitzero"`
	Unproven              string              `json:",omitzero"`
	Batch                 []forge.Rebase      `json:",omitzero"`
}

// keep returns an answer as it is kept.
func keep(a *forge.MergeEnded) *Answer {
	return &Answer{Task: a.Task, Number: a.Number, Result: (*result)(a.Result), Failure: a.Failure, Executor: a.Executor, Look: a.Look}
}

// message returns the answer as the task is told it.
func (a *Answer) message() *forge.MergeEnded {
	return &forge.MergeEnded{
		Task: a.Task, Number: a.Number, Result: (*forge.MergeResult)(a.Result), Failure: a.Failure, Executor: a.Executor, Look: a.Look,
	}
}
