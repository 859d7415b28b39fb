package runner

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/presence"
	"github.com/pfl-forge/pfl-forge/internal/rules"
)

const (
	// pollRules is how often runners are asked which rules they know.
	pollRules = 15 * time.Second
	// soon is how long after a look that did not even show this runner the next one is.
	soon = time.Second
	// settleRules is the default of RulesConfig.Settle.
	settleRules = 10 * time.Minute
)

// RulesConfig says by which version of the rules a runner decides.
type RulesConfig struct {
	// Most is the newest version that it decides by, as long as an operator
	// holds it back; 0: the newest that all runners know.
	Most rules.Version
	// Alone says that no other runner can be there, so that none is waited for.
	Alone bool
	// Settle is for how long every runner has to have known a version before it
	// is decided by; 0: 10 minutes. Until then, a rollback leaves no record
	// behind that the version before does not understand.
	Settle time.Duration
}

// ballot finds the version of the rules for new decisions, the newest that every
// runner has known for a while, and in the same way whether senders may sign
// several messages together, and workers tell settings. Nothing depends on it
// being right: a runner that meets a record of newer rules leaves that machine
// to those who know them. So what is lost by a runner that was not seen is time.
type ballot struct {
	cfg RulesConfig

	mu     sync.Mutex
	active common
	// next is common to all runners at the last look, and since is when that
	// was seen first. Zero: not seen.
	next  common
	since time.Time
	// seen is the newest version that a project here was decided by.
	seen rules.Version
	// unused says that nothing was decided here yet, and no look was taken since that is known.
	unused bool
}

// common describes several runners by the least of what each can do.
type common struct {
	// rules is the newest version that they know.
	rules rules.Version
	// together says that they read signatures over several messages.
	together bool
	// settings says that they read a policy with its settings.
	settings bool
}

// newBallot returns a ballot that has seen no runner yet: the oldest version counts until then,
// unless the settings say that this runner is alone, where none could lag behind and the newest
// counts at once.
func newBallot(cfg RulesConfig) *ballot {
	b := &ballot{cfg: cfg, active: common{rules: rules.First}}
	if b.cfg.Settle == 0 {
		b.cfg.Settle = settleRules
	}
	if cfg.Alone {
		b.active = common{rules.Newest, true, true}
	}
	return b
}

// Active returns the version for new decisions.
func (b *ballot) Active() rules.Version {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.cfg.Most > 0 {
		return min(b.active.rules, b.cfg.Most)
	}
	return b.active.rules
}

// Together reports whether senders may sign several messages together.
func (b *ballot) Together() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.active.together
}

// Settings reports whether workers may tell the settings of a project.
func (b *ballot) Settings() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.active.settings
}

// looked takes which runners answered, and reports whether anything active changed.
// An older runner counts at once. What is newer counts when nothing else was seen
// for a while; a look that failed, or that does not even show this runner, is none.
func (b *ballot) looked(now time.Time, found []presence.Replica, err error) bool {
	var known []rules.Version
	all := common{together: true, settings: true}
	for i := range found {
		if found[i].Service == "runner" {
			known = append(known, found[i].Rules)
			all.together = all.together && found[i].Together
			all.settings = all.settings && found[i].Settings
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if err != nil || !slices.Contains(known, rules.Newest) {
		b.since = time.Time{}
		return false
	}
	all.rules = rules.Active(known)
	before := b.active
	if b.since.IsZero() || all != b.next {
		b.next, b.since = all, now
	}
	settled := b.unused || now.Sub(b.since) >= b.cfg.Settle
	b.unused = false
	if settled || all.rules <= max(b.active.rules, b.seen) {
		b.active.rules = all.rules
	}
	if settled || !all.together {
		b.active.together = all.together
	}
	if settled || !all.settings {
		b.active.settings = all.settings
	}
	return b.active != before
}

// saw takes that a project was decided by a version. What all runners know of the versions up to
// that needs no settling, since the version before could not go on with the project anyway: else,
// new intents would go by the oldest rules whenever all runners were started anew.
func (b *ballot) saw(v rules.Version) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.seen = max(b.seen, v)
	if !b.since.IsZero() && b.next.rules <= b.seen {
		b.active.rules = b.next.rules
	}
}

// empty takes, before the first look, that nothing was decided here yet. There is no program
// before that could have to go on with it, so that what all runners know needs no settling: else,
// the first intents of an installation would go by the oldest rules.
func (b *ballot) empty() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.unused = true
}

// blind reports whether no look has shown this runner lately.
func (b *ballot) blind() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.since.IsZero()
}

// watchRules asks now and then which runners there are, until ctx ends.
func (r *runner) watchRules(ctx context.Context) {
	if r.ballot.cfg.Alone {
		return
	}
	every := min(pollRules, max(r.ballot.cfg.Settle/4, 100*time.Millisecond))
	told := false
	for {
		asked, cancel := context.WithTimeout(ctx, gatherFor)
		found, err := r.bus.Presence.Gather(asked, nil)
		cancel()
		if ctx.Err() != nil {
			return
		}
		if r.ballot.looked(time.Now(), found, err) {
			r.log.InfoContext(ctx, "what all runners can do changed", "rules", int(r.ballot.Active()), "newest", int(rules.Newest),
				"signed_together", r.ballot.Together(), "settings_told", r.ballot.Settings())
		}
		if errors.Is(err, bus.ErrNotAllowed) && !told {
			told = true
			r.log.WarnContext(ctx, "this account may not see which runners there are: decisions go by the first version of the rules", "error", err)
		}
		pause := every
		if err == nil && r.ballot.blind() {
			pause = min(pause, soon)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}
