package objects

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

// Pushed is a commit that another one has pushed to a branch which was made for a change.
type Pushed struct {
	// Commit is the head of the branch, and Tip that of the base branch.
	Commit, Tip git.OID
	// Began is the commit of the base branch on which the branch was made;
	// empty if that is not known.
	Began git.OID
}

// Taken is one commit of a change, made of all that another one has pushed.
type Taken struct {
	// Base is the commit that the change is made on, and Commit the change; Base if there is none.
	Base, Commit git.OID
	// Author is that of Commit, as "Name <address>".
	Author string
}

// Take makes one commit of all that a pushed commit has beside the base branch. Its files
// are exactly those of the commit, also where the base branch was merged into it, as by the
// button "update branch" of a forge. Where the base branch was rewritten since the branch
// was made, and does not have the commit any more on which that began, the change is the
// part that was added after it, and does not bring back anything that the base branch had.
//
// The author is that of the newest commit that is not pfl-forge's, and no merge: a person's
// authorship stays, as they wrote it. Where there is none, as after "update branch" alone,
// it is pfl-forge. Committer and dates are as in Squash, and so is the message. All of the
// change is looked at as the work of an agent is. The caller Keeps the result.
//
// Errors: *WorkError (Rewritten when it has nothing in common with the base branch,
// Merged when it has so in several places, Unsafe, Oversized); ErrNotFound.
func Take(ctx context.Context, db *Database, p Pushed, message func(own []string) string) (Taken, error) {
	base, err := fork(ctx, db, p)
	if err != nil {
		return Taken{}, err
	}
	r := db.NewReader(ctx)
	defer r.Close()
	on, err := r.Commit(base)
	if err != nil {
		return Taken{}, err
	}
	own, err := parts(ctx, db, r, base, p.Commit)
	if err != nil {
		return Taken{}, err
	}
	last, err := r.Commit(p.Commit)
	if err != nil || last.Tree == on.Tree {
		return Taken{Base: base, Commit: base}, err
	}
	id := db.Identity()
	by := fmt.Sprintf("%s <%s>", id.Name, id.Email)
	author := by
	for _, c := range slices.Backward(own) {
		if a := CleanAuthor(c.Author); a != CleanAuthor(by) {
			author = a
			break
		}
	}
	made, err := WriteCommit(db.ObjectDir(), Commit{
		Tree: last.Tree, Parents: []git.OID{base}, Message: CleanMessage(message(messages(own))),
		Author: author + " " + when(last.Author), Committer: by + " " + when(last.Committer),
	}, true)
	if err != nil {
		return Taken{}, err
	}
	return Taken{Base: base, Commit: made, Author: author}, db.CheckCommits(ctx, []git.OID{made}, Limits{}.OrDefault())
}

// parts returns the newest commits that a head has and a base has not, oldest
// first, without merges: whichever parent of a merge they came by.
func parts(ctx context.Context, db *Database, r *Reader, base, head git.OID) (list []Commit, err error) {
	out, err := git.Run(ctx, db.ObjectCommand(),
		"rev-list", "--topo-order", "--no-merges", fmt.Sprintf("--max-count=%d", maxCommits), string(head), "^"+string(base), "--")
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Backward(strings.Fields(string(out))) {
		c, err := r.Commit(git.OID(name))
		if err != nil {
			return nil, err
		}
		list = append(list, c)
	}
	return list, nil
}

// fork returns the commit on which a change was made.
//
//	in common with the base branch    the commit on which the branch began    the change was made on
//	one newest commit                 is that, is not known, or is not        the newest in common
//	                                  an ancestor of the pushed commit
//	one newest commit                 is between that and the pushed          the one on which it began: the base
//	                                  commit                                  branch does not have that any more
//	one newest commit                 is before the pushed commit, and        none: *WorkError (Rewritten): the base branch
//	                                  neither before nor after that           was merged into it after it was rewritten
//	several                           whatever                                none: *WorkError (Merged)
//	none                              whatever                                none: *WorkError (Rewritten)
func fork(ctx context.Context, db *Database, p Pushed) (git.OID, error) {
	out, err := git.Run(ctx, db.ObjectCommand(), "merge-base", "--all", string(p.Commit), string(p.Tip))
	if git.ExitCode(err) == 1 {
		return "", &git.WorkError{Fault: git.Rewritten, Detail: "commit " + p.Commit.Short() + " has no commit in common with the base branch"}
	}
	if err != nil {
		return "", notFound(err)
	}
	all := strings.Fields(string(out))
	if len(all) != 1 {
		return "", &git.WorkError{
			Fault:  git.Merged,
			Detail: fmt.Sprintf("commit %s and the base branch were merged into each other: they have %d newest commits in common", p.Commit.Short(), len(all)),
		}
	}
	base := git.OID(all[0])
	if p.Began == "" || p.Began == base || !db.Has(ctx, p.Began) {
		return base, nil
	}
	is := func(ancestor, of git.OID) (yes bool) {
		if err == nil {
			yes, err = db.IsAncestor(ctx, ancestor, of)
		}
		return yes
	}
	switch {
	case is(p.Began, base), !is(p.Began, p.Commit): // it was not rewritten, or the pushed commit has nothing of what it dropped
		return base, err
	case is(base, p.Began):
		return p.Began, err
	case err != nil:
		return "", err
	}
	return "", &git.WorkError{Fault: git.Rewritten, Detail: fmt.Sprintf(
		"the base branch was rewritten, and merged into commit %s after that, which brings back what it dropped", p.Commit.Short(),
	)}
}

// maxAuthor bounds name and address of an author, in characters each.
const maxAuthor = 100

// CleanAuthor returns the "Name <address>" of an identity line, or of such a text, which
// whoever made the commit could write as they liked: on one line, without what could control
// a terminal or end a field, and not longer than is good. What has neither is "unknown <>".
func CleanAuthor(identity string) string {
	name, rest, _ := strings.Cut(identity, "<")
	address, _, _ := strings.Cut(rest, ">")
	clean := func(s string) string {
		s = strings.Map(func(r rune) rune {
			if r == '<' || r == '>' {
				return -1
			}
			return r
		}, term.Short(s, maxAuthor)) // spells out what hides text
		return strings.Trim(strings.Join(strings.Fields(s), " "), " .,:;\"'\\")
	}
	if name, address = clean(name), strings.ReplaceAll(clean(address), " ", ""); name == "" {
		name = address
	}
	if name == "" {
		name = "unknown"
	}
	return name + " <" + address + ">"
}
