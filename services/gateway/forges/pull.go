package forges

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/services/gateway/intake"
)

// Pulls is a forge's part that is about pull requests and their commits. What they lead to is
// decided by the caller: a back end tells what there is.
type Pulls interface {
	Requests
	Discussions
	Queues
	Commits
}

// Requests are the operations of pull requests.
type Requests interface {
	// FindPull returns the pull request of a branch of the repository itself into another, whoever
	// opened it: the one that is open, or else the last one. A branch of a fork is none of the
	// repository.
	FindPull(ctx context.Context, repository string, head, base git.Branch) (Pull, error)
	// OpenPull opens one, or returns the one that is open. Whose it is, its Author says.
	OpenPull(ctx context.Context, repository string, head, base git.Branch, t PullText) (Pull, error)
	// EditPull adds labels, and then replaces the title, the text and whether it is a draft: a text
	// says that all before it is done. Labels of others stay. ErrLabel says that all is done but a
	// label that is not there.
	EditPull(ctx context.Context, repository string, number int64, t PullText) error
	// ReopenPull opens one again that was closed. For one that is open it changes nothing.
	ReopenPull(ctx context.Context, repository string, number int64) error
	// ClosePull closes one that is open. For any other it changes nothing.
	ClosePull(ctx context.Context, repository string, number int64) error
	// Pull returns a pull request as it is now, without its reviews.
	Pull(ctx context.Context, repository string, number int64) (Pull, error)
	// Merges returns nil if the forge merges by a method in a repository, and else an ErrMethod
	// that says which ones it has. On GitLab a setting of the project decides.
	Merges(ctx context.Context, repository string, m Method) error
	// Merge merges it if its head is that commit, by a method, and only if the forge's own rules
	// allow that. A commit that the forge makes for it has the message of the head. A RefusedError
	// says that it was not merged for a reason that only a look at the pull request tells: ask for
	// it, whatever the error is.
	Merge(ctx context.Context, repository string, number int64, head git.OID, m Method) error
	// ChangedPulls returns the numbers of our account's pull requests that are open, whenever they
	// changed, and of those that ended since a time. That a status was written is no change of a
	// pull request.
	ChangedPulls(ctx context.Context, repository, login string, since time.Time) ([]Change, error)
}

// Discussions are the operations of the words of people about pull requests.
type Discussions interface {
	// Reviews returns the reviews of a pull request, the oldest first, with
	// their remarks about lines.
	Reviews(ctx context.Context, repository string, number int64) ([]Review, error)
	// Answer writes a remark in the discussion of a thread, by its topic. It
	// resolves nothing. ErrNotFound says that the discussion is gone. Each call
	// is one more remark: compare with Thread.Replies first.
	Answer(ctx context.Context, repository string, number int64, topic, body string) error
}

// Commits are the operations of branches and commits. None of them changes a branch.
type Commits interface {
	// BranchHead returns the commit of a branch.
	BranchHead(ctx context.Context, repository string, branch git.Branch) (git.OID, error)
	// Behind reports whether a base has commits that a head has not.
	Behind(ctx context.Context, repository string, head, base git.OID) (bool, error)
	// Message returns the message of a commit.
	Message(ctx context.Context, repository string, commit git.OID) (string, error)
	// Statuses returns the last status of each name for a commit.
	Statuses(ctx context.Context, repository string, commit git.OID) ([]Status, error)
	// SetStatus writes a status of ours. Each call is one more for the forge: compare with
	// Statuses first.
	SetStatus(ctx context.Context, repository string, commit git.OID, s *Status) error
	// Protection returns the demands of the forge on all that comes to be on a branch.
	Protection(ctx context.Context, repository string, branch git.Branch) (Protection, error)
}

// PullText has the words of a pull request that we write.
type PullText struct {
	// Title is one line.
	Title string
	// Body is Markdown.
	Body string
	// Draft says that it cannot be merged yet.
	Draft bool
	// Labels have to be there in the repository.
	Labels []string
}

// PullState says how a pull request is.
type PullState string

// The states.
const (
	Open   PullState = "open"
	Closed PullState = "closed" // not merged
	Merged PullState = "merged"
)

// Pull is a pull request as the forge has it now.
type Pull struct {
	PullText

	// Repository has the base.
	Repository Repository
	// Number is its own; whether an issue can have the same one, the forge decides.
	Number int64
	// Author opened it.
	Author intake.Account
	State  PullState
	// Branch is the branch with the change, of this repository; empty for that of another one.
	// Head is the commit that the forge has for it.
	Branch git.Branch
	Head   git.OID
	// Base is the branch into which it goes, and BaseHead its commit.
	Base     git.Branch
	BaseHead git.OID
	// Merge is the commit that came to be on the base, and MergedBy who did that; empty unless it
	// is merged.
	Merge    git.OID
	MergedBy intake.Account
	// ClosedBy is the login that closed it; empty if it is open, or if the forge does not say.
	ClosedBy intake.Account
	// URL is its page.
	URL string
}

// Verdict sums a review up.
type Verdict string

// The verdicts. A review that decides nothing is a Remark.
const (
	Approved         Verdict = "approved"
	ChangesRequested Verdict = "changes-requested"
	Remark           Verdict = "remark"
)

// Review is one person's review. Everybody can write one on most forges, with any verdict.
type Review struct {
	// ID is the forge's number for it; 0 if it has none.
	ID int64
	// Author has no permission here: ask for it when it is decided on.
	Author intake.Account
	// Verdict is the author's own.
	Verdict Verdict
	// Commit is the one that was reviewed. The forge may move it to a later one with the same
	// patch.
	Commit git.OID
	// Official says that the forge's own rules count the author, who may write. A stranger's is
	// not.
	Official bool
	// Dismissed says that it counts no more, and Stale that the change is another one by now.
	Dismissed, Stale bool
	// Body is Markdown.
	Body string
	// At is when it was sent.
	At time.Time
	// Threads are its remarks about lines, in the order in which they were written.
	Threads []Thread
}

// Thread is a remark about a line.
type Thread struct {
	// ID is its first remark's.
	ID int64
	// Path is the file's, as the author of the change named it; empty for a remark about the whole
	// that waits to be resolved as well.
	Path string
	// Line is of the new text, or of the old one where the new one has none.
	Line int64
	// Body is Markdown.
	Body string
	// Resolved says that a person took it as done.
	Resolved bool
	// Topic names its discussion to Discussions.Answer; empty where the forge has no way
	// to answer in it by its API, as Gitea.
	Topic string
	// Replies are the remarks after the first one of the discussion, by anyone, ours included.
	// The oldest is the first.
	Replies []Comment
}

// Outcome sums a status up.
type Outcome string

// The outcomes.
const (
	Pending Outcome = "pending"
	Passed  Outcome = "passed"
	Failed  Outcome = "failed"
)

// Status is the last word of a check about a commit.
type Status struct {
	// Name is the check's, such as pfl-forge/verify.
	Name string
	// Outcome is Failed also for a state that we do not know.
	Outcome Outcome
	// Text is a line about it.
	Text string
	// URL leads to more.
	URL string
	// Log is the end of what the check wrote, where the forge has it: Gitea does not, for statuses
	// of others.
	Log string
	// Author wrote it. Whoever may write in a repository can write a status of any name.
	Author intake.Account
}

// Method says how a pull request is merged.
type Method string

// The methods. Only the first brings the very commit to the base.
const (
	FastForward Method = "fast-forward"
	// MergeCommit makes a commit with two parents, of which the head is the second.
	MergeCommit Method = "merge"
	// Squash makes one commit of the whole change.
	Squash Method = "squash"
	// Rebase makes the commits of the change anew.
	Rebase Method = "rebase"
)

// Protection has the demands of a forge on all that comes to be on a branch. doctor compares it
// with the promises that a project relies on.
type Protection struct {
	// Protected says whether the branch is. Without that nothing else is demanded but
	// on GitLab, where most of it is of the project and for each of its branches.
	Protected bool
	// Statuses are those that have to have passed, as patterns of their names in which * stands
	// for any text.
	Statuses []string
	// Approvals is how many are needed, and Rejections says that a request for changes keeps it
	// from being merged.
	Approvals  int64
	Rejections bool
	// UpToDate says that the base has to be in the head, DismissStale that approvals of another
	// change do not count, and AdminsToo that the same is demanded of administrators.
	UpToDate, DismissStale, AdminsToo bool
	// Resolved says that all remarks have to be resolved.
	Resolved bool
}

// RefusedError says that the forge refused something for a reason that has no code of its own.
type RefusedError struct {
	// Code is the answer's, of HTTP.
	Code int
	// Again says that the forge has not computed yet whether it can.
	Again bool
	// Reason is the forge's, one line for people; nothing is decided by it.
	Reason string
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("the forge refuses it (%d): %s", e.Code, e.Reason)
}

// ErrMethod says that the forge does not merge by a method. A person has to choose another one.
var ErrMethod = errors.New("the forge has no such method of merging")

// ErrLabel says that a label is not there in the repository.
var ErrLabel = errors.New("the repository does not have the label")
