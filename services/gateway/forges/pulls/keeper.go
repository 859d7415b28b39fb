package pulls

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/internal/redact"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/heard"
	"github.com/pfl-forge/pfl-forge/services/gateway/intake"
	"github.com/pfl-forge/pfl-forge/services/gateway/tokens"
)

// Forge is a back end that has issues and pull requests.
type Forge interface {
	forges.Forge
	forges.Pulls
}

// Config has all that a Keeper works with.
type Config struct {
	// Name is that of the forge in the settings.
	Name string
	// Forge is asked.
	Forge Forge
	// Repositories has the repository of each project whose changes are merged
	// by pull requests there, as owner/name.
	Repositories map[forge.ProjectID]string
	// Tokens says whose an account of the forge is, and what they may.
	Tokens *tokens.Book
	// Stopped says whether a person stopped an intent, or one of its tasks. Nil
	// leaves the pull requests of those that were stopped open.
	Stopped func(ctx context.Context, key forge.Key, task forge.TaskID) (Stopped, error)
	// Hear is told of the comments of others on an open pull request of an intent, which it may
	// know. Nil leaves them untold.
	Hear func(ctx context.Context, key forge.Key, self intake.Account, at heard.Place, list []forges.Comment) error
	// Publish reports a result, and returns when it is journaled. Doing so again changes nothing.
	Publish func(ctx context.Context, r forge.Result) error
	// Replica names this gateway among all.
	Replica forge.ReplicaID
	// Hooks are the names of the hooks through which the forge tells. Without
	// one, the sweep alone finds what happened.
	Hooks []string
	// Deliveries has all that came through hooks; nil where there are none.
	Deliveries Deliveries
	// Secrets are taken out of texts for the forge and of those of others.
	Secrets *redact.Redactor
	// Log is told of all that a person may have to mend.
	Log *slog.Logger
	// Every is the time between sweeps, Debounce how long a hint waits for
	// others. Zero values are 5 minutes and 2 seconds.
	Every, Debounce time.Duration
	// Again is how long a merge waits that the forge has not computed yet, each
	// of a few times. 0 stands for a second.
	Again time.Duration
	// Now is the clock; nil for that of the machine.
	Now func() time.Time
}

// Keeper makes, watches and merges the pull requests of one forge. It is safe for concurrent use.
type Keeper struct {
	*watch

	cfg Config
	// once guards self, which is ours from the first time on that the forge has told.
	once sync.Mutex
	self intake.Account
}

// ofChange is the subject of errors for people.
const ofChange = "the pull request of branch %s: %w"

// New returns a Keeper.
func New(cfg Config) *Keeper {
	for d, usual := range map[*time.Duration]time.Duration{&cfg.Every: 5 * time.Minute, &cfg.Debounce: 2 * time.Second, &cfg.Again: time.Second} {
		if *d == 0 {
			*d = usual
		}
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Keeper{cfg: cfg, watch: newWatch()}
}

// Introduce finds out who we are. It has to be called before anything else, and
// can be called again.
func (k *Keeper) Introduce(ctx context.Context) error {
	k.once.Lock()
	defer k.once.Unlock()
	if k.self.ID != 0 {
		return nil
	}
	self, err := k.cfg.Forge.Self(ctx)
	if err != nil {
		return fmt.Errorf("forge %s: our account: %w", k.cfg.Name, err)
	}
	k.self = self
	return nil
}

// Has reports whether changes of a project are merged by this forge.
func (k *Keeper) Has(p forge.ProjectID) bool { return k.cfg.Repositories[p] != "" }

// PersonError says that a person has to do something before the request can be carried out.
type PersonError struct {
	// What is a sentence for that person.
	What string
}

func (e *PersonError) Error() string { return e.What }

// ask has the names of a request, after they were checked.
type ask struct {
	// repository is that of the settings for the project, and never one that the request names.
	repository string
	// branch goes into base, and has to be at head.
	branch git.Branch
	base   git.Branch
	head   git.OID
}

// check returns the names of a request, each by its own constructor.
func (k *Keeper) check(ctx context.Context, to forge.Key, in *forge.PullInput) (r ask, err error) {
	if r.repository = k.cfg.Repositories[to.Project]; r.repository == "" {
		return r, &PersonError{fmt.Sprintf("forge %s has no repository for project %s: name it in pull_requests of the forge's settings",
			k.cfg.Name, to.Project)}
	}
	r.branch, err = git.ParseBranch(in.Branch)
	if err == nil {
		r.base, err = git.ParseBranch(in.Base)
	}
	if err == nil {
		r.head, err = git.ParseOID(in.Head)
	}
	// A method that the forge has not is told before anything is opened, and
	// not when the change has been reviewed.
	if m := forges.Method(in.Policy.Method); err == nil && m != "" && m != forges.ByQueue {
		err = k.cfg.Forge.Merges(ctx, r.repository, m)
		if err != nil && !errors.Is(err, forges.ErrMethod) {
			return r, fmt.Errorf(ofChange, r.branch, err)
		}
		if err != nil {
			err = fmt.Errorf("merge.method: %w", err)
		}
	}
	if err != nil {
		return r, &PersonError{err.Error()}
	}
	return r, nil
}

// find returns the pull request of a request, and whether there is one. A number
// that is known names it for ever: a person may have moved it to another base,
// and a second one beside it would be one change that is merged twice. One that
// another account opened is not ours: we neither write its text nor merge it.
func (k *Keeper) find(ctx context.Context, r *ask, number int) (p forges.Pull, found bool, err error) {
	known := number > 0
	if known {
		p, err = k.cfg.Forge.Pull(ctx, r.repository, int64(number))
		known = !errors.Is(err, forges.ErrNotFound)
	}
	if !known {
		p, err = k.cfg.Forge.FindPull(ctx, r.repository, r.branch, r.base)
	}
	switch {
	case errors.Is(err, forges.ErrNotFound):
		return p, false, nil
	case err != nil:
		return p, false, fmt.Errorf(ofChange, r.branch, err)
	case p.Author.ID != k.self.ID && (known || p.State == forges.Open):
		return p, false, &PersonError{fmt.Sprintf("the %s pull request %d of the branch %s is not ours but that of %s: close it, and try again",
			p.State, p.Number, r.branch, k.account(p.Author))}
	}
	return p, p.Author.ID == k.self.ID, nil
}

// Open makes the pull request of a change, or brings it up to date, and returns
// how it is. Again it changes nothing.
//
// The mark of the attempt is written last: whoever looks finds an attempt by
// its mark, and what is reported of it ends it, so that nothing may be missing
// by then. What was done before a failure is found again by the same attempt.
func (k *Keeper) Open(ctx context.Context, to forge.Key, a forge.Attempt, in *forge.PullInput) (*forge.PullRequest, error) {
	r, err := k.check(ctx, to, in)
	if err != nil {
		return nil, err
	}
	if err := k.Introduce(ctx); err != nil {
		return nil, err
	}
	message, err := k.cfg.Forge.Message(ctx, r.repository, r.head)
	if err != nil && !errors.Is(err, forges.ErrNotFound) { // without the commit nothing is written
		return nil, fmt.Errorf(ofChange, r.branch, err)
	}
	text := k.text(to, a, in, message)
	p, found, err := k.find(ctx, &r, in.Number)
	if err == nil && !found {
		p, err = k.open(ctx, &r, text, in)
	}
	if err != nil {
		return nil, err
	}
	// One that was closed is opened again where the rules knew of it: at first
	// a person may have closed it before we said that it is there.
	if p.State == forges.Closed && in.Number == int(p.Number) {
		if err := k.reopen(ctx, &r, &p); err != nil {
			return nil, fmt.Errorf(ofChange, r.branch, err)
		}
	}
	current, err := k.isCurrent(ctx, &r, &p)
	if err == nil && current {
		err = queues{k}.ready(ctx, &r, p.Number, in)
	}
	switch {
	case err != nil:
	case current:
		err = k.update(ctx, &r, &p, text, in)
	default:
		err = answers{k}.late(ctx, &r, &p, in)
	}
	if err != nil {
		return nil, fmt.Errorf(ofChange, r.branch, err)
	}
	k.track(r.repository, p.Number, &tracked{to: to, attempt: a, head: p.Head, queue: isByQueue(in)})
	s, _, err := k.snapshot(ctx, r.repository, p.Number, isByQueue(in))
	return s, err
}

// reopen opens a pull request again. GitHub does so only where the branch still
// has the commit at which it was closed; a second one in its place would be
// another number than that of the rules, which follow one for each task.
func (k *Keeper) reopen(ctx context.Context, r *ask, p *forges.Pull) error {
	err := k.cfg.Forge.ReopenPull(ctx, r.repository, p.Number)
	if refused, ok := errors.AsType[*forges.RefusedError](err); ok {
		return &PersonError{fmt.Sprintf("the forge does not open pull request %d again (%s): put the branch %s back to %s, open it again on its page, "+
			"and try again, or cancel the task", p.Number, refused.Reason, r.branch, p.Head)}
	}
	if err == nil {
		p.State = forges.Open
		err = unwanted{k}.takeBack(ctx, r.repository, p.Number)
	}
	return err
}

// isCurrent reports whether an open pull request is about the commit of a request. At
// another one it is that of another change: its text and its statuses would say what was not
// found about it. A forge may show a push at the branch before it does at the pull request.
func (k *Keeper) isCurrent(ctx context.Context, r *ask, p *forges.Pull) (bool, error) {
	if p.State != forges.Open || p.Branch != r.branch {
		return false, nil
	}
	if p.Head == r.head {
		return true, nil
	}
	at, err := k.cfg.Forge.BranchHead(ctx, r.repository, r.branch)
	if errors.Is(err, forges.ErrNotFound) { // it was deleted
		return false, nil
	}
	return at == r.head, err
}

// open opens a pull request of a branch that is at the commit of the request,
// without a mark and without labels: update adds them.
func (k *Keeper) open(ctx context.Context, r *ask, text forges.PullText, in *forge.PullInput) (forges.Pull, error) {
	at, err := k.cfg.Forge.BranchHead(ctx, r.repository, r.branch)
	switch {
	case err != nil:
		return forges.Pull{}, fmt.Errorf(ofChange, r.branch, err)
	case at != r.head:
		return forges.Pull{}, &PersonError{fmt.Sprintf("the branch %s is at %s and not at %s: it was changed by another one",
			r.branch, commit(string(at)), commit(string(r.head)))}
	}
	if err := k.writeStatuses(ctx, r, in); err != nil {
		return forges.Pull{}, fmt.Errorf(ofChange, r.branch, err)
	}
	_, text.Body, _ = strings.Cut(text.Body, markEnd)
	text.Labels = nil
	p, err := k.cfg.Forge.OpenPull(ctx, r.repository, r.branch, r.base, text)
	if err == nil && p.Author.ID != k.self.ID { // another one was faster
		_, _, err = k.find(ctx, r, int(p.Number))
	}
	return p, err
}

// update brings the statuses and the text up to date, the text with its mark at
// the end. What is so already is not written: forges count what is written.
func (k *Keeper) update(ctx context.Context, r *ask, p *forges.Pull, text forges.PullText, in *forge.PullInput) error {
	if err := k.writeStatuses(ctx, r, in); err != nil {
		return err
	}
	if err := (answers{k}).write(ctx, r, p.Number, in); err != nil {
		return err
	}
	text.Labels = slices.DeleteFunc(slices.Clone(text.Labels), func(l string) bool { return slices.Contains(p.Labels, l) })
	// A person has made it ready, or a draft of it, which they alone take back.
	text.Draft = p.Draft
	if p.Title == text.Title && p.Body == text.Body && len(text.Labels) == 0 {
		return nil
	}
	err := k.cfg.Forge.EditPull(ctx, r.repository, p.Number, text)
	if errors.Is(err, forges.ErrLabel) { // the text is written, and a change is not held up by how a list of them looks
		k.cfg.Log.WarnContext(ctx, "a pull request has not all of its labels", "forge", k.cfg.Name, "repository", r.repository, "number", p.Number, "error", err)
		err = nil
	}
	return err
}

// writeStatuses writes the statuses of the commit of a request that are not there.
func (k *Keeper) writeStatuses(ctx context.Context, r *ask, in *forge.PullInput) error {
	have, err := k.cfg.Forge.Statuses(ctx, r.repository, r.head)
	if err != nil {
		return err
	}
	for _, s := range k.statuses(in) {
		there := slices.ContainsFunc(have, func(h forges.Status) bool {
			return h.Name == s.Name && h.Outcome == s.Outcome && h.Text == s.Text && h.Author.ID == k.self.ID
		})
		if !there {
			if err := k.cfg.Forge.SetStatus(ctx, r.repository, r.head, &s); err != nil {
				return err
			}
		}
	}
	return nil
}
