package pulls

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
	"github.com/pfl-forge/pfl-forge/services/gateway/intake"
	"github.com/pfl-forge/pfl-forge/services/gateway/tokens"
)

const (
	// ownStatuses begins the names of the statuses that we write.
	ownStatuses = "pfl-forge/"
	// maxOutput bounds the words of a check, and maxReview those of a review, in bytes.
	maxOutput = 4 << 10
	maxReview = 8 << 10
	// maxRemarks bounds the remarks of a review that are handed on, the newest.
	maxRemarks = 100
	// maxChecks bounds the checks of a snapshot, those that failed first; with
	// more of them it is never merged by us.
	maxChecks = 200
	// maxStrangers bounds the reviews of those who may not decide: everybody
	// can write one. Those who may are few, and none is left out.
	maxStrangers = 10
)

// look is a pull request with all that a snapshot is made of.
type look struct {
	forges.Pull

	reviews    []forges.Review
	statuses   []forges.Status
	protection forges.Protection
	behind     bool
	// may has the accounts of those whose last review may decide.
	may map[int64]bool
}

// snapshot asks for a pull request and for all that is said about it. It is the one way in which
// anything of it becomes known: the answers of both steps, hooks and sweeps all lead here.
//
// With queue, or where its text says so, it is asked for in the forge's merge queue as well.
func (k *Keeper) snapshot(ctx context.Context, repository string, number int64, queue bool) (*forge.PullRequest, *look, error) {
	seen := k.cfg.Now().UTC()
	var l look
	var err error
	if l.Pull, err = k.cfg.Forge.Pull(ctx, repository, number); err != nil {
		return nil, nil, err
	}
	if l.reviews, err = k.cfg.Forge.Reviews(ctx, repository, number); err != nil {
		return nil, nil, part("reviews", err)
	}
	if l.statuses, err = k.cfg.Forge.Statuses(ctx, repository, l.Head); err != nil {
		return nil, nil, part("statuses", err)
	}
	if l.State == forges.Open {
		// Whoever is not told of the protection of a branch finds out what it
		// demands by asking to merge.
		if l.protection, err = k.cfg.Forge.Protection(ctx, repository, l.Base); err != nil && !isHidden(err) {
			return nil, nil, err
		}
		if l.behind, err = k.cfg.Forge.Behind(ctx, repository, l.Head, l.BaseHead); err != nil {
			return nil, nil, part("base branch", err)
		}
	}
	p := &forge.PullRequest{
		Number: int(l.Number), URL: l.URL, Branch: string(l.Branch), Base: string(l.Base), Head: string(l.Head), State: forge.PullState(l.State),
		MergeCommit: string(l.Merge), By: k.by(&l.Pull), Checks: k.checks(&l), Behind: l.behind, Seen: seen,
	}
	if p.Reviews, err = k.reviewsOf(ctx, repository, &l); err != nil {
		return nil, nil, part("reviewers", err)
	}
	if l.State == forges.Open {
		p.Blocked = k.blocked(&l)
		if queue || isMarkedForQueue(l.Body) {
			if err := (queues{k}).look(ctx, repository, &l, p); err != nil {
				return nil, nil, part("merge queue", err)
			}
		}
	}
	if len(p.Checks) > maxChecks {
		p.Blocked = fmt.Sprintf("it has more than %d checks", maxChecks)
		p.Checks = p.Checks[:maxChecks]
	}
	return p, &l, nil
}

// part returns the error of something about a pull request that is there: that
// it is not found does not mean that the pull request is gone.
func part(what string, err error) error {
	if errors.Is(err, forges.ErrNotFound) {
		return fmt.Errorf("its %s: not found", what)
	}
	return err
}

// isHidden reports whether an error says that our account may not see something.
func isHidden(err error) bool {
	return errors.Is(err, forges.ErrDenied) || errors.Is(err, forges.ErrNotFound)
}

// account returns an account as journals have it: by its number, which stays,
// with the name that it has now.
func (k *Keeper) account(a intake.Account) string {
	return fmt.Sprintf("%s account %d %s", k.cfg.Name, a.ID, a.Login)
}

// by returns who merged or closed a pull request; empty while it is open.
func (k *Keeper) by(p *forges.Pull) string {
	who := p.MergedBy
	switch p.State {
	case forges.Open:
		return ""
	case forges.Closed:
		who = p.ClosedBy
	case forges.Merged:
	}
	if who.ID <= 0 {
		return ""
	}
	if t := k.cfg.person(who.ID); t != nil {
		return t.Person
	}
	return k.account(who)
}

// person returns the entry of the person whose account it is; nil if there is none that counts.
func (c *Config) person(account int64) *tokens.Token {
	t, err := c.Tokens.ByAccount(c.Name, strconv.FormatInt(account, 10))
	if err != nil {
		return nil
	}
	return t
}

// decides reports whether a person approves, and asks for changes, in each
// project whose pull requests are in a repository.
func (c *Config) decides(t *tokens.Token, repository string) bool {
	for project, r := range c.Repositories {
		if r == repository && (!t.May(project, tokens.Approve) || !t.May(project, tokens.Change)) {
			return false
		}
	}
	return true
}

// writes reports whether a person's account may write in a repository, as the
// forge says now. Another one may have its name by now.
func (c *Config) writes(ctx context.Context, repository string, a intake.Account) (bool, error) {
	now, err := c.Forge.Account(ctx, repository, a.Login)
	if errors.Is(err, forges.ErrNotFound) {
		return false, nil
	}
	return err == nil && now.ID == a.ID && now.Kind != intake.Bot && now.Permission.Includes(intake.Write), err
}

// checks returns the checks of others, by name. One that the protection demands
// and that is not there yet has not passed.
func (k *Keeper) checks(l *look) []forge.PullCheck {
	var out []forge.PullCheck
	states := map[forges.Outcome]forge.PullCheckState{forges.Pending: forge.PullCheckPending, forges.Passed: forge.PullCheckPassed}
	for _, s := range l.statuses {
		if strings.HasPrefix(s.Name, ownStatuses) {
			continue
		}
		c := forge.PullCheck{Name: k.line(s.Name), State: cmp.Or(states[s.Outcome], forge.PullCheckFailed)}
		if c.State == forge.PullCheckFailed {
			c.Output = k.words(cmp.Or(s.Log, s.Text), maxOutput)
		}
		out = append(out, c)
	}
	for _, pattern := range l.protection.Statuses {
		known := slices.ContainsFunc(l.statuses, func(s forges.Status) bool { return demands(pattern, s.Name) })
		if !known && !strings.HasPrefix(pattern, ownStatuses) {
			out = append(out, forge.PullCheck{Name: k.line(pattern), State: forge.PullCheckPending})
		}
	}
	rank := map[forge.PullCheckState]int{forge.PullCheckPending: 1, forge.PullCheckPassed: 2}
	slices.SortFunc(out, func(a, b forge.PullCheck) int {
		return cmp.Or(cmp.Compare(rank[a.State], rank[b.State]), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// demands reports whether a protection that names checks by a pattern means one of a
// name: * stands for any text and ? for a character. A pattern of another kind is taken
// for one that means every check, so that nothing is merged before it has an answer.
func demands(pattern, name string) bool {
	if strings.ContainsAny(pattern, `[]{}\!`) {
		return true
	}
	quoted := strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(regexp.QuoteMeta(pattern))
	return regexp.MustCompile("(?s)^" + quoted + "$").MatchString(name)
}

// reviewsOf returns the newest review of each account that decides anything, by
// the account's number. Our own is none. Who wrote it may decide if the forge
// counts it, if the account is that of a person who has the role for that, and
// if it may write as it is asked now: these it notes in the look.
func (k *Keeper) reviewsOf(ctx context.Context, repository string, l *look) ([]forge.PullReview, error) {
	last := map[int64]forges.Review{}
	l.may = map[int64]bool{}
	for _, r := range l.reviews {
		if r.Author.ID > 0 && r.Author.ID != k.self.ID && r.Verdict != forges.Remark {
			last[r.Author.ID] = r
		}
	}
	var out []forge.PullReview
	for id, r := range last {
		if r.Dismissed {
			continue // a person took it back, or the change is another one
		}
		v := forge.PullReview{
			Account: k.account(r.Author), Verdict: forge.PullChangesRequested, Commit: string(r.Commit),
		}
		who := k.cfg.person(id)
		if who != nil {
			v.Person = who.Person
		}
		if r.Verdict == forges.Approved {
			v.Verdict = forge.PullApproved
		}
		if who != nil && k.cfg.decides(who, repository) && r.Official {
			var err error
			if v.May, err = k.cfg.writes(ctx, repository, r.Author); err != nil {
				return nil, err
			}
			l.may[id] = v.May
		}
		if v.May { // nothing follows from what others write
			v.Text, v.Remarks = k.wordsOf(&r)
		}
		if v.Verdict == forge.PullApproved { // nothing is answered
			v.Remarks = nil
		}
		out = append(out, v)
	}
	slices.SortFunc(out, func(a, b forge.PullReview) int {
		if a.May != b.May {
			return map[bool]int{true: -1, false: 1}[a.May]
		}
		return cmp.Compare(a.Account, b.Account)
	})
	if first := slices.IndexFunc(out, func(r forge.PullReview) bool { return !r.May }); first >= 0 {
		out = out[:min(len(out), first+maxStrangers)]
	}
	return out, nil
}

// wordsOf returns the words of a review, with its remarks about lines that are
// not resolved, and names those whose words are there.
func (k *Keeper) wordsOf(r *forges.Review) (text string, remarks []forge.PullRemark) {
	whole := strings.TrimSpace(r.Body)
	parts := []string{k.clean(whole)}
	remarks = append(remarks, forge.PullRemark{Digest: digest(nameOf(r), whole)})
	for i := range r.Threads {
		t := &r.Threads[i]
		if t.Resolved {
			continue
		}
		words := k.clean(strings.TrimSpace(t.Body))
		if t.Path != "" {
			words = k.clean(fmt.Sprintf("%s:%d: ", t.Path, t.Line)) + words
		}
		parts = append(parts, words)
		remarks = append(remarks, remarkOf(t))
	}
	// The end of it is kept: what is cut off was not handed on, and gets no answer.
	for len(parts) > 1 && (len(parts) > maxRemarks || lengthOf(parts) > maxReview) {
		parts, remarks = parts[1:], remarks[1:]
	}
	return k.words(strings.TrimSpace(strings.Join(parts, "\n\n")), maxReview), remarks
}

// nameOf names a review: by its number, or where the forge has none, as GitLab
// of some, by what it is about.
func nameOf(r *forges.Review) string {
	if r.ID == 0 {
		return string(r.Commit)
	}
	return strconv.FormatInt(r.ID, 10)
}

// lengthOf returns the length of a text of parts with an empty line between them.
func lengthOf(parts []string) (n int) {
	for _, p := range parts {
		n += len(p) + 2
	}
	return n
}

// remarkOf names a remark in a thread: by its words, and not by its line, which
// moves with each push.
func remarkOf(t *forges.Thread) forge.PullRemark {
	return forge.PullRemark{Thread: t.ID, Digest: digest(strings.TrimSpace(t.Body))}
}

// digest returns a digest of texts.
func digest(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:8])
}

// missing returns a status that the protection demands and that has not passed,
// or its pattern where none is there; empty if all have.
func (l *look) missing() string {
	for _, pattern := range l.protection.Statuses {
		there := false
		for _, s := range l.statuses {
			if demands(pattern, s.Name) {
				if there = true; s.Outcome != forges.Passed {
					return s.Name
				}
			}
		}
		if !there {
			return pattern
		}
	}
	return ""
}

// counts reports whether an approval is one of those that the protection
// demands. The forge keeps those of another change as well unless it is told
// otherwise. The rules know which change a person approved who may decide; that
// of any other account counts for the very head that it was given for.
func (l *look) counts(r *forges.Review) bool {
	return r.Official && !r.Dismissed && r.Verdict == forges.Approved && !(l.protection.DismissStale && r.Stale) &&
		(l.may[r.Author.ID] || r.Commit == l.Head && !r.Stale)
}

// blocked returns why the forge would not merge an open pull request now, as far as its rules
// are known; empty if it would. That it is behind its base, which the forge may mind as well,
// is said by itself: the rules put a change on the tip if nothing else is in its way.
func (k *Keeper) blocked(l *look) string {
	for _, s := range l.statuses {
		// Whoever may write can write a status of our name: what it says is not what we found.
		if strings.HasPrefix(s.Name, ownStatuses) && s.Author.ID != k.self.ID {
			return k.line(fmt.Sprintf("the status %s is not ours: %s wrote it", s.Name, s.Author.Login))
		}
	}
	if l.Draft {
		return "it is a draft"
	}
	if missing := l.missing(); missing != "" {
		return k.line("the status " + missing + " has not passed")
	}
	var approvals int64
	for _, r := range l.reviews {
		if l.protection.Resolved && slices.ContainsFunc(r.Threads, func(t forges.Thread) bool { return !t.Resolved }) {
			return k.line("a remark of " + r.Author.Login + " is not resolved")
		}
		if l.protection.Rejections && r.Official && !r.Dismissed && r.Verdict == forges.ChangesRequested {
			return k.line(r.Author.Login + " asks for changes")
		}
		if l.counts(&r) {
			approvals++
		}
	}
	if approvals < l.protection.Approvals {
		return fmt.Sprintf("it has %d of %d approvals", approvals, l.protection.Approvals)
	}
	return ""
}
