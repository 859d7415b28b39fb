package git

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"

	"github.com/pfl-forge/pfl-forge/internal/pattern"
)

// Errors about a repository. Each text tells a person the next step.
var (
	ErrNotRepository = errors.New("not a git repository: run git init, or go to one")
	ErrBare          = errors.New("a bare repository: use a clone with a working tree")
	ErrUnsupported   = errors.New("repository format not supported: partial clones and sha256 repositories cannot be used")
	ErrNoCommit      = errors.New("the repository has no commit yet: make a first one, such as git commit --allow-empty -m init")
	ErrNoBranch      = errors.New("the branch does not exist: create it, or set base_branch")
	ErrDetached      = errors.New("HEAD is detached: switch to a branch")
	ErrForeign       = errors.New("checkouts need a directory of their own: name an empty one as worktree_dir, or one that does not exist")
	ErrInProgress    = errors.New("a git operation is in progress in the working tree: finish or abort it")
)

// Errors of operations that a caller is expected to handle.
var (
	// ErrMoved means that the branch is not where the caller expected it; nothing was changed.
	ErrMoved = errors.New("the branch has moved")
	// ErrBusy means that another process held a lock for too long; nothing was
	// changed, try again later.
	ErrBusy = errors.New("another git process holds a lock: try again when it has finished, or remove its lock file")
	// ErrNotFound means that an object, path or ref does not exist.
	ErrNotFound = errors.New("not found in the repository")
	// ErrTooLarge means that an answer was longer than the limit of the call.
	ErrTooLarge = errors.New("larger than the limit")
	// ErrNothingToCommit means that the working tree equals the head commit.
	ErrNothingToCommit = errors.New("nothing to commit")
	// ErrMissing means that there is no checkout to reopen in the state that the caller asked for.
	ErrMissing = errors.New("no checkout in that state")
	// ErrSilent means that an origin took a connection, and did not answer for
	// so long that it was given up.
	ErrSilent = errors.New("the origin is silent")
	// ErrSlow means that an origin answers, and that a command that talks to it was not
	// done in its time: too much has to come, or it comes slowly. That is no outage.
	ErrSlow = errors.New("the origin answers, and was not done in time: too much has to come, or the connection is slow")
	// ErrClosed means that the pool was closed.
	ErrClosed = errors.New("the pool is closed")
)

// Error describes a git command that failed.
type Error struct {
	// Args are the command's own, without the options that every command gets.
	Args []string
	// ExitCode is -1 when git was killed or could not start.
	ExitCode int
	// Stderr is the last 4 KiB that git printed there.
	Stderr string
	// Err is the reason why git could not run, or nil.
	Err error
}

// Error returns on its first line what git said, since lists cut a long line at its end: the
// command with all its arguments comes last.
func (e *Error) Error() string {
	command := "git " + strings.Join(e.Args, " ")
	said := strings.TrimSpace(e.Stderr)
	if e.Err != nil {
		said = e.Err.Error()
		if s := strings.TrimSpace(e.Stderr); s != "" {
			said += ": " + s
		}
	}
	switch {
	case said == "":
		return fmt.Sprintf("%s: exit %d", command, e.ExitCode)
	case e.Err != nil:
		return fmt.Sprintf("git %s: %s\n(%s)", e.verb(), said, command)
	default:
		return fmt.Sprintf("git %s: exit %d: %s\n(%s)", e.verb(), e.ExitCode, said, command)
	}
}

// verb returns the name of the git command.
func (e *Error) verb() string {
	if len(e.Args) == 0 {
		return ""
	}
	return e.Args[0]
}

// MachineFailed reports whether a git command failed for a reason that lies in the machine and
// not in the repository: git was stopped or could not start, or the disk took nothing more.
func MachineFailed(err error) bool {
	e, ok := errors.AsType[*Error](err)
	if !ok || e.ExitCode < 0 {
		return true
	}
	return slices.ContainsFunc(diskFaults, func(fault string) bool { return strings.Contains(e.Stderr, fault) })
}

// diskFaults are the texts of ENOSPC, EDQUOT, EROFS and EIO; git runs in the C locale.
var diskFaults = []string{"No space left on device", "Disk quota exceeded", "Read-only file system", "Input/output error"}

// diskErrors are the numbers of diskFaults.
var diskErrors = []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EIO}

// Unwritten reports whether the disk here took nothing more, or could not be read. What a server
// says of its own is not meant.
func Unwritten(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return slices.ContainsFunc(diskErrors, func(fault error) bool { return errors.Is(err, fault) }) || ok && e.says(diskFaults)
}

// says reports whether git itself said one of these texts, and not a server.
func (e *Error) says(texts []string) bool {
	for line := range strings.Lines(e.Stderr) {
		if !ofServer.MatchString(line) && slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(line, text) }) {
			return true
		}
	}
	return false
}

// ofServer matches a line with the words of a server: what it prints, why it serves nothing,
// and why it does not take a branch.
var ofServer = pattern.New(`^remote:|^(fatal|error): remote error: |\[remote (rejected|failure)\]`)

func (e *Error) Unwrap() error { return e.Err }

// Unstarted reports whether git could not be started here, or could not start
// what it needs: it is missing, or there is no process, memory or descriptor
// left. What a server says that lacks these is not meant.
func Unstarted(err error) bool {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return false
	}
	if _, missing := errors.AsType[*exec.Error](e.Err); missing {
		return true
	}
	if p, ok := errors.AsType[*fs.PathError](e.Err); ok && strings.HasPrefix(p.Op, "fork") {
		return true
	}
	return e.says(shortages)
}

// shortages are the texts of EAGAIN, ENOMEM, EMFILE and ENFILE, and what git says itself.
var shortages = []string{"Resource temporarily unavailable", "Cannot allocate memory", "Too many open files", "unable to fork", "cannot fork()"}

// Cause is why an origin did not do what a command asked.
type Cause string

// The causes. The empty one stands for everything else.
const (
	CauseName      Cause = "dns"              // the name of its server is not known
	CauseRefused   Cause = "refused"          // its server does not listen
	CauseTimeout   Cause = "timeout"          // it does not answer
	CauseBroken    Cause = "broken"           // the connection broke off, or the server does not work now
	CauseGone      Cause = "gone"             // the folder that is the origin does not exist, as when it is not mounted
	CauseAuth      Cause = "auth"             // it refuses the credentials
	CauseHook      Cause = "hook"             // a hook of it declined a push
	CauseProtected Cause = "protected"        // the branch is protected
	CauseMoved     Cause = "non-fast-forward" // the branch is at another commit
)

// causes has the texts by which git and its helpers, ssh and servers tell causes.
// With LC_ALL=C they are the same everywhere. The first that fits counts.
var causes = []struct {
	cause Cause
	texts []string
}{
	{CauseProtected, []string{
		"protected branch", "(protected branch hook declined)", "GH006", "TF402455", "GH013", "repository rule violations",
		"(branch is currently checked out)",
	}},
	{CauseHook, []string{"hook declined", "(refusing to allow ", "(deny updating a hidden ref)", "(prohibited by "}},
	{CauseMoved, []string{"non-fast-forward", "(fetch first)", "(stale info)"}},
	{CauseAuth, []string{
		"Authentication failed", "Permission denied (", "Permission denied, ", "could not read Username", "terminal prompts disabled",
		"ERROR: Permission to ", "marked as read only",
		"The requested URL returned error: 401", "The requested URL returned error: 403",
	}},
	{CauseName, []string{"Could not resolve host", "Could not resolve hostname", "Temporary failure in name resolution", "Name or service not known"}},
	{CauseRefused, []string{"Connection refused"}},
	{CauseTimeout, []string{"Connection timed out", "Operation timed out", "Timeout was reached", "No route to host", "Network is unreachable"}},
	{CauseBroken, []string{
		"Couldn't connect to server", "Failed to connect to", "Connection reset", "Connection closed by", "Empty reply from server",
		"The requested URL returned error: 5", "unexpected disconnect", "kex_exchange_identification",
	}},
}

// CauseOf returns why an origin did not do what a command asked; empty if git does not say so.
func CauseOf(err error) Cause {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return ""
	}
	switch {
	case errors.Is(e.Err, ErrSilent):
		return CauseTimeout
	case errors.Is(e.Err, ErrSlow): // what git printed as it was stopped, such as that the connection broke off, is of that
		return ""
	}
	for _, c := range causes {
		if slices.ContainsFunc(c.texts, func(text string) bool { return strings.Contains(e.Stderr, text) }) {
			return c.cause
		}
	}
	// A server says the same of a repository that is missing there, which a person has to fix.
	// The second text is of one that went away while it took a push.
	texts := []string{"does not appear to be a git repository", "remote: fatal: not a git repository"}
	if slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(e.Stderr, text) }) && slices.ContainsFunc(e.Args, isGone) {
		return CauseGone
	}
	return ""
}

// Refusal reports whether an origin refused a push by a hook or by its protection, and
// returns the lines with which it did; a push that failed otherwise is not refused. The
// lines are printed by the hook, so a caller that shows them makes them safe and short.
// An origin that prints nothing is recognized by the status that git has of the ref.
func Refusal(err error) (words string, refused bool) {
	if c := CauseOf(err); c != CauseHook && c != CauseProtected {
		return "", false
	}
	var said, status []string
	for line := range strings.Lines(Stderr(err)) {
		line = strings.TrimSpace(line)
		if text, ok := strings.CutPrefix(line, "remote:"); ok && strings.TrimSpace(text) != "" {
			said = append(said, strings.TrimSpace(text))
		}
		if _, why, ok := strings.Cut(line, "[remote rejected]"); ok {
			status = append(status, strings.TrimSpace(why))
		}
	}
	if len(said) == 0 {
		said = status
	}
	return strings.Join(said, "\n"), true
}

// isGone reports whether an argument is an origin's folder that does not exist.
func isGone(arg string) bool {
	dir := strings.TrimPrefix(arg, "file://")
	if !strings.HasPrefix(dir, "/") {
		return false
	}
	_, err := os.Stat(dir)
	return errors.Is(err, os.ErrNotExist)
}

// Unreachable reports whether an error says that the server of an origin is not there, or
// does not work now, so that the same command may succeed later. It returns false where the
// server answers that the repository is missing or not allowed.
func Unreachable(err error) bool {
	switch CauseOf(err) {
	case CauseName, CauseRefused, CauseTimeout, CauseBroken, CauseGone:
		return true
	case CauseAuth, CauseHook, CauseProtected, CauseMoved, "":
	}
	return false
}

// RefusedError says that an origin refused what was pushed below refs/forge.
type RefusedError struct {
	Err error
	// All is set if the origin refuses every push there, also of commits that
	// it has already; otherwise it refused this push alone.
	All bool
}

func (e *RefusedError) Error() string { return e.Err.Error() }

// Unwrap returns the error of the push.
func (e *RefusedError) Unwrap() error { return e.Err }

// Unserved reports whether an origin does nothing for us for now, whatever it
// is asked: it does not answer, refuses the credentials, or keeps nothing.
func Unserved(err error) bool {
	if refused, ok := errors.AsType[*RefusedError](err); ok {
		return refused.All
	}
	return Unreachable(err) || CauseOf(err) == CauseAuth
}

// UncommittedError reports uncommitted work of a person that is in the way of a merge.
// Nothing was changed.
type UncommittedError struct {
	// Files are the paths in the way, sorted; there is at least one.
	Files []string
}

func (e *UncommittedError) Error() string {
	return fmt.Sprintf("uncommitted changes in %s: commit or stash them", list(e.Files))
}

// ConflictError reports a commit that does not apply on its new base.
type ConflictError struct {
	// Commit is the one that conflicts, and Files are the paths in conflict,
	// sorted.
	Commit OID
	Files  []string // sorted
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("commit %s conflicts in %s", e.Commit.Short(), list(e.Files))
}

// Fault is the kind of a WorkError.
type Fault string

// The faults of an agent's work.
const (
	// Damaged: the checkout, its .git, its branch or its objects are gone or
	// broken.
	Damaged Fault = "damaged"
	// Rewritten: the commit that the branch started from is not its ancestor
	// any more.
	Rewritten Fault = "rewritten"
	// Merged: the branch holds merge commits.
	Merged Fault = "merged"
	// Unsafe: a path, symbolic link or repository that may not be committed.
	Unsafe Fault = "unsafe"
	// Oversized: more bytes, files or commits than the limits allow.
	Oversized Fault = "oversized"
)

// WorkError reports a fault of an agent's work. Any other error is a failure of git or
// of the machine.
type WorkError struct {
	Fault Fault
	// Path is the path in the tree that is at fault; empty if there is none.
	Path   string
	Detail string
}

func (e *WorkError) Error() string {
	if e.Path != "" {
		return fmt.Sprintf("%s work: %q %s", e.Fault, Clip(e.Path), e.Detail)
	}
	return fmt.Sprintf("%s work: %s", e.Fault, e.Detail)
}

// list returns the first five files of an error, and how many more there are.
func list(files []string) string {
	const most = 5
	if len(files) > most {
		return fmt.Sprintf("%s and %d more files", strings.Join(files[:most], ", "), len(files)-most)
	}
	return strings.Join(files, ", ")
}
