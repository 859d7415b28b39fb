package forge

import "time"

// PullPolicy says how changes are merged by pull requests. A project without one pushes them.
type PullPolicy struct {
	Method     string        // fast-forward, merge, squash, rebase, or queue: the forge's own merge queue, which has one of them
	By         string        // who merges: forge, as soon as everything holds, or people
	Branch     string        // the pattern of the head branch, with {task} in it
	Draft      bool          // whether the pull request is a draft
	Checks     []string      // the checks of the forge that have to pass; empty stands for all that it shows, at least one
	ChecksWait time.Duration // after how long a check that has not ended is told to people; 0 stands for 2 hours
	Labels     []string      // put on the pull request
}

// PullFacts holds the facts that the text of a pull request is rendered from.
type PullFacts struct {
	Request      string            // the intent's text, as its agents got it
	Requesters   []string          // who asked for it
	Approvers    []string          // who approved its plan or its protected paths; empty where that was not needed
	Commands     []string          // the verify commands that passed; empty where none are configured
	Requirements []PullRequirement // those of the task, with what the review cites for each
	Rejected     []string          // why attempts before were not accepted, a line each, the oldest first
	CostUSD      float64           // what the intent has cost so far
	Attempts     int               // how often the change was made
	Files        []string          // the paths that the change touches
	Adopted      *Adoption         // the commit of another one that the change began with; nil where there is none
}

// PullRequirement is one requirement of a task with its evidence.
type PullRequirement struct {
	Text     string   // the requirement
	Met      bool     // what the review says of it
	Evidence []string // what it cites, a line each
}

// PullInput is the input of open_pull and merge_pull.
type PullInput struct {
	Branch, Base string       // the names of the head branch, which is on the origin, and of the branch to merge into
	Head         string       // the commit that Branch has to be at; with another one there, nothing is changed
	Parent       string       // the commit on which Head was verified
	PatchID      string       // identifies the change, whatever it is based on
	Title        string       // that of the pull request
	Number       int          // the pull request's; 0 if it is not known yet
	Policy       PullPolicy   // says how it is merged
	Facts        PullFacts    // what its text says
	Answers      []PullRemark // the remarks that the change was made again for, and that have no answer yet
}

// PullRequest is a snapshot of the pull request of a task, as the forge shows it: the output
// of open_pull and merge_pull, and of every later look, a further result of the attempt that
// opened it. Each holds everything: one that is lost, late or doubled changes nothing.
type PullRequest struct {
	Number       int          // counts the repository's pull requests
	URL          string       // where people see it
	Branch, Base string       // the names of the head branch and of the one to merge into
	Head         string       // the commit at the head
	State        PullState    // whether it is open
	MergeCommit  string       // the commit that it was merged by; empty unless it was
	By           string       // who merged or closed it: a person, or the account where that is not known
	Checks       []PullCheck  // the newest of each name on Head, without pfl-forge's own
	Reviews      []PullReview // the newest of each account that decides anything
	Blocked      string       // why the forge would not merge it now, besides being behind; empty if it would
	Behind       bool         // the base branch has commits that the head has not, and that is in its way
	Queue        *PullQueue   // where it stands in the forge's merge queue; nil where the project has none
	Seen         time.Time    // when the look began, in UTC
}

// PullQueue is where a pull request stands in the merge queue of its forge.
type PullQueue struct {
	In             bool   // the forge merges it by itself, as soon as it may
	Position       int    // counts from 1, which is next; 0 where that is not known
	Out            string // identifies that it was taken out last, and not by us; empty if it was not
	Cause          string // why: checks, conflict, or anything else
	Reason, Output string // the same, in the words of the forge, and by whom; the end of the logs of the checks that failed there
}

// PullState says whether a pull request is open.
type PullState string

// The states of a pull request.
const (
	PullOpen   PullState = "open"
	PullMerged PullState = "merged"
	PullClosed PullState = "closed" // not merged
)

// PullCheck is a check that the forge shows on the head of a pull request.
type PullCheck struct {
	Name   string         // as the forge shows it
	State  PullCheckState // how it ended
	Output string         // the end of its log, or its description, if it failed
}

// PullCheckState is how a check of a pull request ended.
type PullCheckState string

// The states of a check.
const (
	PullCheckPending PullCheckState = "pending" // also before it begins
	PullCheckPassed  PullCheckState = "passed"
	PullCheckFailed  PullCheckState = "failed"
)

// PullReview is the newest verdict of one account on a pull request.
type PullReview struct {
	Person  string       // who that is; empty where that is not known
	Account string       // as the forge names it
	May     bool         // whether the forge lets it decide, and Person may
	Verdict PullVerdict  // what it says
	Commit  string       // of which commit
	Text    string       // in its own words
	Remarks []PullRemark // the parts of Text, so that each is known again; empty from gateways that name none
}

// PullRemark names a part of the words of a review. Two that are equal are the
// same remark, wherever its line is by now.
type PullRemark struct {
	Thread  int64  // the number that the forge has for a remark in a thread; 0 for what the review says of the whole
	Digest  string // of the words, and where Thread is 0 of what the forge calls the review
	Changed bool   // of one that is to be answered: whether the change is another one since
}

// PullVerdict is the verdict of a review of a pull request.
type PullVerdict string

// The verdicts.
const (
	PullApproved         PullVerdict = "approved"
	PullChangesRequested PullVerdict = "changes_requested"
	PullCommented        PullVerdict = "commented" // which decides nothing
)

// Landing is the merge of a pull request by its forge, which is to be proved.
type Landing struct {
	Commit             string // by which the forge says that it merged
	Head, Parent, Tree string // the commit that was proposed, its parent and tree
}
