package evidence

import (
	"bytes"
	"errors"
	"strconv"
	"strings"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/objects"
	"github.com/pfl-forge/pfl-forge/internal/pattern"
)

// reference is path:line or path:from-to. The path may have colons.
var reference = pattern.New(`^(.+):L?([0-9]{1,7})(?:-L?([0-9]{1,7}))?$`)

// parseRef returns the path and the lines that a citation names. To is 0 where it names one
// line: then the quote begins there.
func parseRef(ref string) (git.Path, objects.Lines, error) {
	m := reference.FindStringSubmatch(strings.TrimSpace(ref))
	if m == nil {
		return "", objects.Lines{}, refuse("%q names no lines; it has to be path:line or path:from-to", git.Clip(ref))
	}
	p, err := git.ParsePath(m[1])
	if err != nil {
		return "", objects.Lines{}, refuse("the path %q is none in the repository; it has to be clean and relative", git.Clip(m[1]))
	}
	var in objects.Lines
	in.From, _ = strconv.Atoi(m[2]) // at most seven digits
	in.To, _ = strconv.Atoi(m[3])   // and 0 without one
	switch {
	case in.From == 0:
		return "", in, refuse("%q: lines count from 1", git.Clip(ref))
	case m[3] != "" && in.To < in.From:
		return "", in, refuse("%q: the range ends before it begins", git.Clip(ref))
	case in.To-in.From >= maxRange:
		return "", in, refuse("%q has %d lines; name those that matter, at most %d", git.Clip(ref), in.To-in.From+1, maxRange)
	}
	return p, in, nil
}

// errTrivial refuses a quote that shows nothing.
var errTrivial = refusal("the quote is empty or stands everywhere; quote what shows it")

// stand returns the line at which a quote begins in a range.
func (f *found) stand(ref string, quote []string, in objects.Lines) (int, error) {
	ref = git.Clip(ref)
	if in.To == 0 {
		in.To = in.From + len(quote) - 1
	}
	if in.From > len(f.lines) || in.To > len(f.lines) {
		return 0, refuse("%s is past the end: the file has %d lines", ref, len(f.lines))
	}
	if at := f.find(quote, in); at > 0 {
		return at, nil
	}
	if at := f.find(quote, objects.Lines{From: 1, To: len(f.lines)}); at > 0 {
		return 0, refuse("the quote does not stand at %s; it begins at line %d", ref, at)
	}
	return 0, refuse("the quote does not stand at %s, nor elsewhere in the file", ref)
}

// content returns a file of the base or the head, with the lines of it that the change
// removes or adds.
func (l *lookup) content(commit git.OID, p git.Path) (*found, error) {
	key := place{commit, p}
	f, ok := l.read[key]
	if !ok {
		var err error
		if f, err = l.load(commit, p); err != nil {
			return nil, err
		}
		l.read[key] = f
	}
	if f.why != "" {
		return nil, refusal(f.why)
	}
	return &f, nil
}

// load reads a file.
func (l *lookup) load(commit git.OID, p git.Path) (found, error) {
	content, err := l.Store.ReadFile(l.ctx, commit, p, maxFile)
	name := git.Clip(string(p))
	switch {
	case errors.Is(err, git.ErrTooLarge):
		return found{why: name + " is too large to be cited"}, nil
	case errors.Is(err, git.ErrNotFound):
		return l.missing(commit, p)
	case err != nil:
		return found{}, err
	case bytes.IndexByte(content, 0) >= 0:
		return found{why: name + " is binary, so it has no lines to cite"}, nil
	}
	f := found{text: newText(content)}
	if l.Base == l.Head {
		return f, nil
	}
	added, removed, err := l.Store.ChangedLines(l.ctx, l.Base, l.Head, p)
	f.changed = added
	if commit == l.Base {
		f.changed = removed
	}
	return f, err
}

// missing says what is in place of a file.
func (l *lookup) missing(commit git.OID, p git.Path) (found, error) {
	kind, err := l.Store.Entry(l.ctx, commit, p)
	if err != nil {
		return found{}, err
	}
	name := git.Clip(string(p))
	if kind != objects.EntryNone {
		return found{why: name + " is a " + string(kind) + ", not a file"}, nil
	}
	if commit != l.Base {
		if kind, err = l.Store.Entry(l.ctx, l.Base, p); err != nil {
			return found{}, err
		}
	}
	if kind == objects.EntryFile {
		return found{why: name + " is not there any more: the change removes it"}, nil
	}
	return found{why: name + " does not exist"}, nil
}
