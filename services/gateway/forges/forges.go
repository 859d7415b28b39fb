// Package forges says what the gateway needs of a forge: the operations of a back end, and the
// ways in which they fail.
//
// A back end asks, and decides nothing. It is safe for concurrent use. What a forge limits is
// told as a [ParkedError] with the time of its end, so that the work waits for that, and no
// goroutine does.
//
// # Issues and pull requests
//
// [Forge] is about issues and their comments, [Pulls] about pull requests, which GitLab calls
// merge requests. Both have comments of one kind: a [Topic] says of which, since GitLab counts
// issues and merge requests apart, so that a number alone may be either.
//
// # Rules that every back end keeps
//
//	a name          is checked before it is a part of a path: repositories by package intake, branches and commits by package git
//	an account      is a number. Its name may be another one's tomorrow
//	an author       of a pull request, a review or a status is told with it: everybody can write one like ours
//	a branch        is the repository's own. One of the same name in a fork is another one
//	a lost answer   leads to the same request again: to open a pull request that is open returns that one
//	a merge         names the head that it is about. There is no call without one, and none that overrides the forge's rules
//	a refusal       has a reason for people. Only a look at the pull request says what is so now
//	a limit         is a ParkedError with the time at which to come again
//	a confidence    is not there: an issue or a comment that not all may see who see the rest is not found
//
// # Who can fool us, and what helps
//
//	a stranger approves                        Review.Official is the forge's own word on who counts
//	a person approves, and the change is new   Review.Commit and Stale
//	a writer writes a status in our name       Status.Author
//	a person opens our pull request first      Pull.Author
//	a person retargets or pushes to it         Pull.Base and Head, which each decision compares with its own
//	an author edits the text after a label     Forge.Edits, and where a forge does not tell, Hint.Text
//	a title that is a draft's to the forge     OpenPull and EditPull say of each which it is
package forges

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/services/gateway/intake"
)

// Forge is a back end for one forge, in the name of one account of ours.
type Forge interface {
	Comments
	Issues

	// Self returns that account.
	Self(ctx context.Context) (intake.Account, error)
	// Repository returns a repository by its name, owner/name, with the number that stays after a
	// rename.
	Repository(ctx context.Context, name string) (Repository, error)
	// Account returns an account with its permission in a repository, as they are now.
	Account(ctx context.Context, repository, login string) (intake.Account, error)
	// InTeam reports whether an account belongs to a team of the organisation that owns a
	// repository, in the form of intake.When.Team. The error is ErrDenied if our account may
	// not read that, and ErrNotFound if there is no such team, or our account may not see it.
	InTeam(ctx context.Context, repository string, a intake.Account, team string) (bool, error)
	// File returns the file of a path, of the branch that a repository's people
	// look at first, as it is now. The error is ErrNotFound if there is none,
	// and ErrNoFile if it is none of MaxFile bytes.
	File(ctx context.Context, repository, path string) ([]byte, error)
	// Hint reads a delivery: which issue or pull request it leads to. The error says that the body
	// cannot be read; a delivery that is about nothing of the kind leads to nothing.
	Hint(event string, body []byte) (Hint, error)
}

// Issues are the operations of issues.
type Issues interface {
	// Issue returns an issue, with who put its labels on.
	Issue(ctx context.Context, repository string, number int64) (Issue, error)
	// Edits returns the edits of an issue's title and body since it was opened, as far as the forge
	// tells them, in any order. Ask for the text first: one that comes in between is told then.
	Edits(ctx context.Context, repository string, number int64) ([]intake.Edit, error)
	// Changed returns the numbers of the issues, open and closed, that changed since a time, the
	// oldest change first.
	Changed(ctx context.Context, repository string, since time.Time) ([]Change, error)
	// CloseIssue closes an issue. For one that is closed it changes nothing.
	CloseIssue(ctx context.Context, repository string, number int64) error
}

// Comments are the operations of comments on issues and on pull requests.
type Comments interface {
	// Comments returns the comments that are new or edited since a time, in their order.
	Comments(ctx context.Context, repository string, on Topic, since time.Time) ([]Comment, error)
	// Say writes a comment.
	Say(ctx context.Context, repository string, on Topic, body string) (Comment, error)
	// Edit replaces the text of a comment.
	Edit(ctx context.Context, repository string, on Topic, comment int64, body string) error
	// React puts a reaction on a comment. Doing so again changes nothing.
	React(ctx context.Context, repository string, on Topic, comment int64, r Reaction) error
}

// Topic has comments: an issue or a pull request. The two share their numbers on some forges
// only.
type Topic struct {
	Number int64
	// Pull says that it is a pull request.
	Pull bool
}

// OfIssue returns the topic of an issue, and OfPull that of a pull request.
func OfIssue(number int64) Topic { return Topic{Number: number} }

// OfPull returns the topic of a pull request.
func OfPull(number int64) Topic { return Topic{Number: number, Pull: true} }

// Repository is one, as the forge knows it now.
type Repository struct {
	// ID does not change with the name.
	ID int64
	// Name is owner/name; on GitLab groups may stand between the two.
	Name string
}

// Issue is an issue as the forge has it now.
type Issue struct {
	Repository Repository
	Number     int64
	// Title and Body are Markdown.
	Title, Body string
	// Author wrote them. Its permission is not known: see Forge.Account.
	Author intake.Account
	// Labels have the login and number of who put them on last, and when, if the forge tells.
	Labels []intake.Label
	// Open says whether it is.
	Open bool
}

// Change is an issue that changed.
type Change struct {
	Number int64
	At     time.Time
}

// Comment is a comment as the forge has it now.
type Comment struct {
	ID int64
	// Author wrote it first; others may have edited it.
	Author intake.Account
	Body   string
	// Created and Updated have the exactness of the forge: on Gitea a second. On GitLab a reaction
	// to a comment updates it as well.
	Created, Updated time.Time
}

// Edited reports whether it is another text than it was at first.
func (c *Comment) Edited() bool { return !c.Updated.Equal(c.Created) }

// Reaction is the short answer to a comment.
type Reaction string

// The reactions.
const (
	Seen    Reaction = "eyes"
	Done    Reaction = "rocket"
	Refused Reaction = "-1"
)

// Hint says where to look. It is never the truth about what is there.
type Hint struct {
	// Repository is owner/name at the time of the delivery; empty if it leads to nothing.
	Repository string
	// RepositoryID is its number.
	RepositoryID int64
	// Number is the issue's, or the pull request's.
	Number int64
	// Pull says that it is a pull request.
	Pull bool
	// Commit is set in place of a number where the delivery is about a commit: a status of it, or
	// a push.
	Commit git.OID
	// Text is the hash of the issue's title and body at the time At, which is that of the last
	// change of the issue; empty if the delivery does not have them as the forge has them.
	Text string
	At   time.Time
	// Editor is the login of who edited it, and EditorID their number, if the
	// delivery is about that.
	Editor   string
	EditorID int64
}

// ErrNotFound says that something is not there, or that our account may not see it.
var ErrNotFound = errors.New("the forge does not have it")

// MaxFile bounds a file that is read from a repository, in bytes.
const MaxFile = 64 << 10

// ErrNoFile says that a path is that of a folder or a link, or of a file that
// is larger than MaxFile.
var ErrNoFile = fmt.Errorf("it is no file of at most %d KiB", MaxFile>>10)

// ErrDenied says that our account may not do something. A person has to give it the right.
var ErrDenied = errors.New("the forge does not let our account do that")

// ParkedError says that the forge answers nothing more until a time: its limits are used up, or
// it is away.
type ParkedError struct {
	// Until is when to ask again.
	Until time.Time
	// Reason is a phrase for people.
	Reason string
}

func (e *ParkedError) Error() string {
	return fmt.Sprintf("%s; asked again at %s", e.Reason, e.Until.UTC().Format(time.RFC3339))
}
