package evidence

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/objects"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

// Bounds of a lookup.
const (
	// maxFile bounds a file that is read, in bytes.
	maxFile = 8 << 20
	// maxRange bounds the lines that a citation may name.
	maxRange = 400
	// maxPieces bounds the pieces of one claim that are looked up.
	maxPieces = 20
	// maxReason bounds a reason, in bytes.
	maxReason = 300
)

// Store reads commits: *objects.Database.
type Store interface {
	// ReadFile returns a regular file of a commit.
	ReadFile(ctx context.Context, commit git.OID, p git.Path, limit int) ([]byte, error)
	// Entry returns the kind of a path.
	Entry(ctx context.Context, commit git.OID, p git.Path) (objects.EntryKind, error)
	// ChangedLines returns the lines of a path that a change adds and removes.
	ChangedLines(ctx context.Context, base, head git.OID, p git.Path) (added, removed []objects.Lines, err error)
	// Differs reports whether a path is another entry in one commit than in the other.
	Differs(ctx context.Context, a, b git.OID, p git.Path) (bool, error)
	// Contains returns a file that has a text, at or below a path; empty if none has it.
	Contains(ctx context.Context, commit git.OID, below git.Path, text string) (string, error)
	// Tree returns the tree of a commit.
	Tree(ctx context.Context, commit git.OID) (git.OID, error)
}

// Judged is the tree that claims are about, with the runs of commands on it.
type Judged struct {
	// Store has the commits.
	Store Store
	// Base is the commit that the change was made on; Head if there is none.
	Base git.OID
	// Head is the commit that is judged.
	Head git.OID
	// Runs are runs of the project's commands. Those on another tree do not count.
	Runs []forge.CheckRun
}

// Resolve looks up the evidence of claims, and returns them with what was found. The claims that
// it is given stay as they are. An error is one of the store or of ctx: wrong evidence is none.
func (j *Judged) Resolve(ctx context.Context, claims []forge.Claim) ([]forge.Claim, error) {
	if len(claims) == 0 {
		return nil, nil
	}
	tree, err := j.Store.Tree(ctx, j.Head)
	if err != nil {
		return nil, err
	}
	l := &lookup{Judged: j, ctx: ctx, tree: string(tree), read: map[place]found{}}
	out := make([]forge.Claim, len(claims))
	for i := range claims {
		out[i] = claims[i]
		out[i].Evidence = make([]forge.Citation, len(claims[i].Evidence))
		for n, c := range claims[i].Evidence {
			c.Resolved, c.Reason, c.Unchanged = false, "", false
			if n >= maxPieces {
				c.Reason = fmt.Sprintf("at most %d pieces of evidence of a claim are looked up", maxPieces)
			} else if err := l.resolve(&c, out[i].Text); err != nil {
				return nil, err
			}
			out[i].Evidence[n] = c
		}
	}
	return out, nil
}

// lookup is one Resolve. It reads each file once, however often it is cited.
type lookup struct {
	*Judged

	ctx context.Context //nolint:containedctx // of the call that it lives in
	// tree is the tree of Head: runs of commands on another one do not count.
	tree string
	// read has the files that were cited so far.
	read map[place]found
}

// place is a file of a commit. The same path can be cited in the base, for lines that are
// removed, and in the head.
type place struct {
	// commit is the base or the head.
	commit git.OID
	// path is clean and relative.
	path git.Path
}

// found is a file that was read, or the reason why it cannot be quoted.
type found struct {
	// text has the lines of the file.
	text
	// why says why it cannot be quoted; empty if it can.
	why string
	// changed are the lines that the change adds to it, or removes from it.
	changed []objects.Lines
}

// refusal says why a citation does not resolve. It is shown to the model that cites, to the
// agent that has to make the change again, and to people, so it names the place and the
// fault. Other errors are failures of the store.
type refusal string

func (r refusal) Error() string { return string(r) }

// refuse returns a refusal.
func refuse(format string, args ...any) error { return refusal(fmt.Sprintf(format, args...)) }

// resolve looks one citation up. about is the text of the requirement or criterion.
func (l *lookup) resolve(c *forge.Citation, about string) error {
	var err error
	switch {
	case len(c.Quote) > maxQuote:
		err = refuse("the quote has %d bytes; quote the lines that matter, at most %d bytes", len(c.Quote), maxQuote)
	case c.Kind == forge.CitationFile:
		c.Unchanged, err = l.file(c)
	case c.Kind == forge.CitationDiff:
		err = l.diff(c)
	case c.Kind == forge.CitationCommand:
		err = l.command(c)
	case c.Kind == forge.CitationAbsence:
		c.Unchanged, err = l.absence(c, about)
	default:
		err = refuse("its kind is %q; it can be command, file, diff or absence", git.Clip(string(c.Kind)))
	}
	if why, ok := errors.AsType[refusal](err); ok {
		c.Reason, c.Unchanged = term.Short(string(why), maxReason), false
		return nil
	}
	c.Resolved = err == nil
	return err
}

// file looks up quoted lines of the judged tree, and reports whether they were there before
// the change. Where only some of them are new, the quote as a whole is.
func (l *lookup) file(c *forge.Citation) (unchanged bool, err error) {
	p, in, err := parseRef(c.Ref)
	if err != nil {
		return false, err
	}
	quote := quoted(c.Quote)
	f, err := l.content(l.Head, p)
	if err != nil {
		return false, err
	}
	if !shows(quote, f.text) {
		return false, errTrivial
	}
	at, err := f.stand(c.Ref, quote, in)
	if err != nil {
		return false, err
	}
	for _, r := range f.changed {
		if r.From < at+len(quote) && at <= r.To {
			return false, nil
		}
	}
	return true, nil
}

// diff looks lines up that the change adds, or removes if each is marked so.
func (l *lookup) diff(c *forge.Citation) error {
	if l.Base == l.Head {
		return refuse("nothing was changed, so there is no diff")
	}
	if p, err := git.ParsePath(c.Ref); err == nil && c.Quote == "" && !reference.MatchString(c.Ref) {
		return l.whole(p)
	}
	p, in, err := parseRef(c.Ref)
	if err != nil {
		return err
	}
	quote := quoted(c.Quote)
	plain, added := unmarked(quote, "+")
	gone, removed := unmarked(quote, "-")
	why := l.changes(l.Head, p, c.Ref, quote, in)
	if why != nil && added {
		why = l.changes(l.Head, p, c.Ref, plain, in)
	}
	if why != nil && removed {
		why = l.changes(l.Base, p, c.Ref, gone, in)
	}
	return why
}

// whole looks a path up that the change adds or changes and that has no lines to quote: it is
// binary, empty, a link, or only its mode or name is another.
func (l *lookup) whole(p git.Path) error {
	name := git.Clip(string(p))
	differs, err := l.Store.Differs(l.ctx, l.Base, l.Head, p)
	if err != nil {
		return err
	}
	kind, err := l.Store.Entry(l.ctx, l.Head, p)
	switch {
	case err != nil:
		return err
	case !differs:
		return refuse("the change does not touch %s", name)
	case kind == objects.EntryNone || kind == objects.EntryDirectory:
		return refuse("%s is no file that the change adds or changes", name)
	case kind != objects.EntryFile:
		return nil
	}
	added, removed, err := l.Store.ChangedLines(l.ctx, l.Base, l.Head, p)
	if err == nil && len(added)+len(removed) > 0 {
		return refuse("%s has lines; cite those that show it", name)
	}
	return err
}

// changes looks a quote up in the lines of a commit that the change adds or removes.
func (l *lookup) changes(commit git.OID, p git.Path, ref string, quote []string, in objects.Lines) error {
	f, err := l.content(commit, p)
	if err != nil {
		return err
	}
	changed := found{text: f.only(f.changed)}
	if !shows(quote, changed.text) {
		return errTrivial
	}
	if _, err := f.stand(ref, quote, in); err != nil {
		return err
	}
	if _, err := changed.stand(ref, quote, in); err != nil {
		return refuse("what is quoted from %s is not a line that the change adds; to cite one that it removes, begin each line of the quote with -", git.Clip(ref))
	}
	return nil
}

// command looks a run up by its id, its name, or the very command that ran. If several have
// that name, each has to have passed: a run that failed is not outweighed by another one.
func (l *lookup) command(c *forge.Citation) error {
	ran := false
	for i := range l.Runs {
		r := &l.Runs[i]
		if c.Ref == "" || c.Ref != r.ID && c.Ref != r.Name && c.Ref != r.Command {
			continue
		}
		ran = true
		switch {
		case r.Tree != l.tree:
			return refuse("%s ran on another tree, %s", git.Clip(c.Ref), git.Clip(r.Tree))
		case !r.Passed:
			return refuse("%s did not pass: it exited with %d", git.Clip(c.Ref), r.ExitCode)
		}
		if quote := quoted(c.Quote); c.Quote != "" {
			out := newText([]byte(r.Output))
			if out.find(quote, objects.Lines{From: 1, To: len(out.lines)}) == 0 {
				return refuse("the quote is not in the output of %s", git.Clip(c.Ref))
			}
		}
	}
	if !ran {
		return refuse("no command of the name or id %q ran on this commit", git.Clip(c.Ref))
	}
	return nil
}

// absence looks up that something is not there, and reports whether it was absent before the
// change, too. It searches all of the tree for a path, and for a text all regular files at and
// below a path. A search below a path that does not exist would always succeed, so it is
// refused.
func (l *lookup) absence(c *forge.Citation, about string) (unchanged bool, err error) {
	var p git.Path
	if c.Ref != "." {
		if p, err = git.ParsePath(c.Ref); err != nil {
			return false, refuse("the path %q is none in the repository; it has to be clean and relative, or . for all of it", git.Clip(c.Ref))
		}
	}
	if c.Quote == "" {
		return l.noPath(p, about)
	}
	if strings.ContainsAny(c.Quote, "\n\r\x00") {
		return false, refuse("what is absent has to be one line; cite several one by one")
	}
	quote := strings.TrimSpace(c.Quote)
	if trivial(quote) && !names(about, quote) {
		return false, errTrivial
	}
	if p != "" {
		kind, err := l.Store.Entry(l.ctx, l.Head, p)
		switch {
		case err != nil:
			return false, err
		case kind == objects.EntryNone:
			return false, refuse("%s does not exist, so that nothing in it is absent; cite the path without a quote", git.Clip(c.Ref))
		case kind != objects.EntryFile && kind != objects.EntryDirectory:
			return false, refuse("%s is a %s, which is not searched", git.Clip(c.Ref), kind)
		}
	}
	where, err := l.Store.Contains(l.ctx, l.Head, p, quote)
	switch {
	case err != nil:
		return false, err
	case where != "":
		return false, refuse("it is there: %s has it", git.Clip(where))
	case l.Base == l.Head:
		return l.named(about, quote)
	}
	where, err = l.Store.Contains(l.ctx, l.Base, p, quote)
	if err != nil || where != "" {
		return false, err
	}
	return l.named(about, quote)
}

// noPath looks up that nothing has a path.
func (l *lookup) noPath(p git.Path, about string) (unchanged bool, err error) {
	if p == "" {
		return false, refuse("it says that all of the repository is absent")
	}
	kind, err := l.Store.Entry(l.ctx, l.Head, p)
	switch {
	case err != nil:
		return false, err
	case kind != objects.EntryNone:
		return false, refuse("it is there: %s is a %s", git.Clip(string(p)), kind)
	case l.Base == l.Head:
		return l.named(about, string(p))
	}
	kind, err = l.Store.Entry(l.ctx, l.Base, p)
	if err != nil || kind != objects.EntryNone {
		return false, err
	}
	return l.named(about, string(p))
}

// named accepts an absence that the change did not bring only if it is asked for: every text
// that was never written is absent, too.
func (l *lookup) named(about, what string) (unchanged bool, err error) {
	if names(about, what) {
		return true, nil
	}
	return false, refuse("it was absent before, too, and %q is not named by what was asked for", git.Clip(what))
}

// names reports whether a text has a citation in it, or, of a path, its last element.
func names(about, what string) bool {
	about, what = strings.ToLower(about), strings.ToLower(what)
	base := what[strings.LastIndexByte(what, '/')+1:]
	return strings.Contains(about, what) || len(base) >= minLetters && strings.Contains(about, base)
}
