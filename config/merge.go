package config

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
)

// Merge says how a change gets onto the base branch once it is verified and reviewed.
//
// Which forge a project is on, and with which account pfl-forge works there, is
// not said here: a repository must not choose where the operator's secrets are
// sent. That is in the settings of the gateway.
//
// A change of these settings counts for the runs that are analyzed after it. What is under way
// goes on as it began, so that nothing is pushed of which people were told that it waits for them.
type Merge struct {
	// How is push or pull_request.
	How MergeHow `yaml:"how"`
	// Method says what a pull request makes of the change: fast-forward, merge,
	// squash or rebase. With queue it is put into the forge's own merge queue,
	// which makes of it what its settings there say.
	Method string `yaml:"method"`
	// Unit is task or intent: whether each task of an intent is merged by
	// itself, or all that an analysis plans for it as one change.
	Unit string `yaml:"unit"`
	// By says who merges a pull request: forge, as soon as everything holds, or people.
	By string `yaml:"by"`
	// Branch is the pattern of its head branch, with {task} in it.
	Branch string `yaml:"branch"`
	// Draft says that it is opened as a draft.
	Draft bool `yaml:"draft"`
	// Checks are those of the forge that have to pass. Left out, all that it
	// shows have to, and at least one: where there are none, people merge.
	Checks []string `yaml:"checks"`
	// ChecksWait is how long a check may take to end before a person is told that it is waited for.
	ChecksWait time.Duration `yaml:"checks_wait"`
	// Labels are put on the pull request.
	Labels []string `yaml:"labels"`
}

// MergeHow is how changes get onto the base branch.
type MergeHow string

// The ways.
const (
	// MergePush pushes to the base branch.
	MergePush MergeHow = "push"
	// MergePull has the forge merge a pull request.
	MergePull MergeHow = "pull_request"
)

// The methods of Merge.Method, and who Merge.By can be: pfl-forge knows them by
// these words in its rules as well.
const (
	// mergeFastForward lands the very commit that was verified.
	mergeFastForward = "fast-forward"
	// mergeCommit makes a merge commit, whose first parent is the base branch as it was.
	mergeCommit = "merge"
	// mergeSquash makes one new commit of the change.
	mergeSquash = "squash"
	// mergeRebase makes the commits of the change anew.
	mergeRebase = "rebase"
	// mergeQueue has the forge's own merge queue make of it what its settings say.
	mergeQueue = "queue"
	// unitTask has each task of an intent merged by itself.
	unitTask = "task"
	// unitIntent has all that an analysis plans for an intent merged as one change.
	unitIntent = "intent"
	// byForge has pfl-forge ask the forge to merge.
	byForge = "forge"
	// byPeople has a person press the button.
	byPeople = "people"
)

const (
	// taskMark stands for the task in Merge.Branch.
	taskMark = "{task}"
	// defaultChecksWait is that of the rules as well.
	defaultChecksWait = 2 * time.Hour
	longestChecksWait = 24 * time.Hour // after which any pull request that waits is told
	// maxNames bounds the checks and the labels of a pull request.
	maxNames = 50
)

// defaultMerge returns the settings of a project that names none.
func defaultMerge() Merge {
	return Merge{How: MergePush, Method: mergeFastForward, Unit: unitTask, By: byForge, Branch: "forge/" + taskMark, ChecksWait: defaultChecksWait}
}

// Whole reports whether all that is planned for an intent is merged as one
// change, whether it is pushed or proposed.
func (m *Merge) Whole() bool { return m.Unit == unitIntent }

// policy returns the part of the settings that the rules read; nil where changes are pushed.
func (m *Merge) policy() *forge.PullPolicy {
	if m.How != MergePull {
		return nil
	}
	p := &forge.PullPolicy{Method: m.Method, By: m.By, Branch: m.Branch, Draft: m.Draft, Checks: m.Checks, ChecksWait: m.ChecksWait, Labels: m.Labels}
	if p.ChecksWait == defaultChecksWait { // which the rules know, and programs that read no such field need not be told
		p.ChecksWait = 0
	}
	return p
}

// merge checks how changes are merged. What is not built is refused, so that
// nothing is pushed that was meant for a pull request.
func (c *checker) merge(m *Merge) {
	c.oneOf("merge.how", string(m.How), []string{string(MergePush), string(MergePull)})
	c.oneOf("merge.method", m.Method, []string{mergeFastForward, mergeCommit, mergeSquash, mergeRebase, mergeQueue})
	c.oneOf("merge.unit", m.Unit, []string{unitTask, unitIntent})
	c.oneOf("merge.by", m.By, []string{byForge, byPeople})
	if m.Method == mergeQueue && m.By == byPeople {
		c.fail("merge.method", "queue is what pfl-forge puts a change into: say by: forge, or leave the method to the people who merge")
	}
	if m.Draft && m.By == byForge {
		c.fail("merge.draft", "a draft is never merged by the forge: say by: people, who make it ready")
	}
	c.headBranch("merge.branch", m.Branch)
	c.names("merge.checks", m.Checks)
	if m.ChecksWait < time.Minute || m.ChecksWait > longestChecksWait {
		c.fail("merge.checks_wait", "is %s; must be between 1m and %s", m.ChecksWait, longestChecksWait)
	}
	c.names("merge.labels", m.Labels)
}

// headBranch refuses a pattern that does not make one branch for each task.
// Only here may a branch begin with forge/.
func (c *checker) headBranch(field, s string) {
	if strings.Count(s, taskMark) != 1 {
		c.fail(field, "%q must have {task} in it once: each task has a branch of its own", s)
		return
	}
	// A task's name has up to 80 characters, each of which any branch may have.
	name := strings.Replace(strings.TrimPrefix(s, "forge/"), taskMark, strings.Repeat("t", 80), 1)
	if why := badBranch(name); why != "" {
		c.fail(field, "%q is no branch name: it %s", s, why)
	}
}

// names checks a list of names of the forge. They are compared with names that
// the forge shows, and sent to it, so that a name which no forge could have is
// a slip: a check that is waited for and never comes.
func (c *checker) names(field string, list []string) {
	if len(list) > maxNames {
		c.fail(field, "has %d names; must have at most %d", len(list), maxNames)
	}
	for i, s := range list {
		at := fmt.Sprintf("%s[%d]", field, i)
		switch {
		case strings.TrimSpace(s) != s || s == "" || len(s) > 200:
			c.fail(at, "%q must have 1 to 200 characters, without spaces around them", s)
		case strings.HasPrefix(s, "pfl-forge/"):
			c.fail(at, "%q is pfl-forge's own", s)
		case slices.Contains(list[:i], s):
			c.fail(at, "%q is given twice", s)
		default:
			c.text(at, s)
		}
	}
}
