package objects

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

// Taken is what a commit of another one comes to, as one commit of a change.
type Taken struct {
	// Base is the commit that the change is made on, and Commit the change; Base if there is none.
	Base, Commit git.OID
	// Author is that of Commit, as "Name <address>".
	Author string
}

// Take makes one commit of all that another one's commit has beside the base branch with a tip. Its files are exactly
// those of the commit, also where the base branch was merged into it, as by the button "update branch" of a forge. began
// is the commit on which the branch was made: where the base branch was rewritten since, and does not have it any more,
// the change is what was added to that, and does not bring back what the base branch had.
//
// The author is that of the newest commit that is not pfl-forge's, and no merge: a person's authorship stays, as they
// wrote it. Committer and dates are as in Squash, and so is the message. All of the change is looked at as the work of
// an agent is. The caller Keeps the result.
//
// Errors: *WorkError (Rewritten when it has nothing in common with the base branch, Merged when it has so in several
// places, Unsafe, Oversized); ErrNotFound.
func (db *Database) Take(ctx context.Context, commit, tip, began git.OID, message func(own []string) string) (Taken, error) {
	base, err := db.fork(ctx, commit, tip, began)
	if err != nil {
		return Taken{}, err
	}
	line, err := db.Log(ctx, base, commit, maxCommits)
	if err != nil {
		return Taken{}, err
	}
	r := db.NewReader(ctx)
	defer r.Close()
	on, err := r.Commit(base)
	if err != nil {
		return Taken{}, err
	}
	var own []Commit
	for _, l := range slices.Backward(line) {
		c, err := r.Commit(l.Commit)
		if err != nil {
			return Taken{}, err
		}
		if len(c.Parents) < 2 {
			own = append(own, c)
		}
	}
	last, err := r.Commit(commit)
	if err != nil || last.Tree == on.Tree {
		return Taken{Base: base, Commit: base}, err
	}
	id := db.Identity()
	by := fmt.Sprintf("%s <%s>", id.Name, id.Email)
	author := CleanAuthor(last.Author)
	for _, c := range slices.Backward(own) {
		if a := CleanAuthor(c.Author); a != by {
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

// fork returns the commit on which a change was made: the newest that it has in common with the base branch, or the one
// on which its branch began, if the base branch does not have that any more.
func (db *Database) fork(ctx context.Context, commit, tip, began git.OID) (git.OID, error) {
	out, err := git.Run(ctx, db.ObjectCommand(), "merge-base", "--all", string(commit), string(tip))
	if git.ExitCode(err) == 1 {
		return "", &git.WorkError{Fault: git.Rewritten, Detail: "commit " + commit.Short() + " has no commit in common with the base branch"}
	}
	if err != nil {
		return "", notFound(err)
	}
	all := strings.Fields(string(out))
	if len(all) != 1 {
		return "", &git.WorkError{
			Fault:  git.Merged,
			Detail: fmt.Sprintf("commit %s and the base branch were merged into each other: they have %d newest commits in common", commit.Short(), len(all)),
		}
	}
	base := git.OID(all[0])
	if began == "" || began == base || !db.Has(ctx, began) {
		return base, nil
	}
	for _, line := range [][2]git.OID{{began, commit}, {base, began}} {
		if is, err := db.IsAncestor(ctx, line[0], line[1]); err != nil || !is {
			return base, err
		}
	}
	return began, nil
}

// maxAuthor bounds name and address of an author, in characters each.
const maxAuthor = 100

// CleanAuthor returns the "Name <address>" of an identity line, or of such a text, which whoever made the commit could
// write as they liked: on one line, without what could control a terminal or end a field, and not longer than is good.
// What has neither is "unknown <>".
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
		return strings.Trim(s, " .,:;\"'\\")
	}
	if name, address = clean(name), strings.ReplaceAll(clean(address), " ", ""); name == "" {
		name = address
	}
	if name == "" {
		name = "unknown"
	}
	return name + " <" + address + ">"
}
