package runner

import (
	"errors"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/bus/presence"
	"github.com/pfl-forge/pfl-forge/internal/rules"
)

// TestBallot has runners come, go, be silent and be older, at any time of a settling.
func TestBallot(t *testing.T) {
	t.Parallel()
	const settle = time.Minute
	me, old := presence.Replica{Service: "runner", ID: "me", Rules: rules.Newest, Together: true}, presence.Replica{Service: "runner", ID: "old"}
	newer := presence.Replica{Service: "runner", ID: "newer", Rules: rules.Newest + 1, Together: true}
	worker := presence.Replica{Service: "reviewer", ID: "w"}
	type look struct {
		at    time.Duration
		found []presence.Replica
		err   error
		want  rules.Version
	}
	just := func(list ...presence.Replica) []presence.Replica { return list }
	for name, looks := range map[string][]look{
		"alone": {{0, just(me, worker), nil, rules.First}, {settle - 1, just(me), nil, rules.First}, {settle, just(me), nil, rules.Newest}},
		"an older one leaves": {
			{0, just(me, old), nil, rules.First},
			{2 * settle, just(me, old), nil, rules.First},
			{3 * settle, just(me), nil, rules.First},
			{4*settle - 1, just(me), nil, rules.First},
			{4 * settle, just(me), nil, rules.Newest},
		},
		"a rollback begins": {
			{0, just(me), nil, rules.First},
			{settle, just(me), nil, rules.Newest},
			{settle + 1, just(me, old), nil, rules.First},
			{settle + 2, just(me), nil, rules.First},
			{2*settle + 2, just(me), nil, rules.Newest},
		},
		"an older one comes while it settles": {
			{0, just(me), nil, rules.First},
			{settle - 1, just(old, me), nil, rules.First},
			{settle, just(me), nil, rules.First},
			{2*settle - 1, just(me), nil, rules.First},
			{2 * settle, just(me), nil, rules.Newest},
		},
		"nobody answers": {
			{0, just(me), nil, rules.First},
			{settle, nil, nil, rules.First},
			{settle + 1, just(me), nil, rules.First},
			{2 * settle, just(me), nil, rules.First},
			{2*settle + 1, just(me), nil, rules.Newest},
			{3 * settle, nil, nil, rules.Newest},
		},
		"the network is away": {
			{0, just(me), nil, rules.First}, {settle, just(me), errors.New("away"), rules.First}, {settle + 1, just(me), nil, rules.First},
		},
		"newer ones":  {{0, just(me, newer), nil, rules.First}, {settle, just(newer, me), nil, rules.Newest}},
		"others only": {{0, just(newer), nil, rules.First}, {settle, just(newer), nil, rules.First}},
	} {
		b := newBallot(RulesConfig{Settle: settle})
		for i, l := range looks {
			before := b.Active()
			changed := b.looked(time.Unix(1000, 0).Add(l.at), l.found, l.err)
			// Only the runner of before reads no signature over several messages.
			if got := b.Active(); got != l.want || changed != (got != before) || b.Together() != (got == rules.Newest) {
				t.Errorf("%s, look %d: version %d (changed: %v), want %d", name, i, got, changed, l.want)
			}
		}
	}
	if got := newBallot(RulesConfig{Alone: true}).Active(); got != rules.Newest {
		t.Errorf("a runner that is alone decides by version %d", got)
	}
	if got := newBallot(RulesConfig{Alone: true, Most: rules.First}).Active(); got != rules.First {
		t.Errorf("a runner that is held back decides by version %d", got)
	}
}

// TestBallotOfARestart: where a project was decided by the newest rules, a runner that was started
// anew has new intents decided so as soon as it has seen who else is there, in whichever order it
// learns that. One that is older counts all the same.
func TestBallotOfARestart(t *testing.T) {
	t.Parallel()
	me, old := presence.Replica{Service: "runner", ID: "me", Rules: rules.Newest}, presence.Replica{Service: "runner", ID: "old"}
	at := time.Unix(1000, 0)
	for name, c := range map[string]struct {
		do   func(*ballot)
		want rules.Version
	}{
		"nobody was seen":                       {func(b *ballot) { b.saw(rules.Newest) }, rules.First},
		"seen, then a project":                  {func(b *ballot) { b.looked(at, []presence.Replica{me}, nil); b.saw(rules.Newest) }, rules.Newest},
		"a project, then seen":                  {func(b *ballot) { b.saw(rules.Newest); b.looked(at, []presence.Replica{me}, nil) }, rules.Newest},
		"a project of before":                   {func(b *ballot) { b.saw(rules.Newest - 1); b.looked(at, []presence.Replica{me}, nil) }, rules.First},
		"beside an older one":                   {func(b *ballot) { b.saw(rules.Newest); b.looked(at, []presence.Replica{me, old}, nil) }, rules.First},
		"beside an older one first":             {func(b *ballot) { b.looked(at, []presence.Replica{me, old}, nil); b.saw(rules.Newest) }, rules.First},
		"nothing was decided yet, then seen":    {func(b *ballot) { b.empty(); b.looked(at, []presence.Replica{me}, nil) }, rules.Newest},
		"nothing was decided yet, nobody seen":  {func(b *ballot) { b.empty() }, rules.First},
		"nothing was decided yet, an older one": {func(b *ballot) { b.empty(); b.looked(at, []presence.Replica{me, old}, nil) }, rules.First},
		"an older one leaves when it is in use": {func(b *ballot) {
			b.empty()
			b.looked(at, []presence.Replica{me, old}, nil)
			b.looked(at, []presence.Replica{me}, nil)
		}, rules.First},
		"an older one comes when it is in use": {func(b *ballot) {
			b.empty()
			b.looked(at, []presence.Replica{me}, nil)
			b.looked(at, []presence.Replica{me, old}, nil)
		}, rules.First},
		"the older one leaves": {func(b *ballot) {
			b.saw(rules.Newest)
			b.looked(at, []presence.Replica{me, old}, nil)
			b.looked(at, []presence.Replica{me}, nil)
		}, rules.Newest},
	} {
		b := newBallot(RulesConfig{Settle: time.Minute})
		c.do(b)
		if got := b.Active(); got != c.want {
			t.Errorf("%s: version %d, want %d", name, got, c.want)
		}
	}
}
