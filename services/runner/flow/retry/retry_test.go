package retry

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge"
)

func TestDecide(t *testing.T) {
	now := time.Unix(0, 0).UTC()
	policy := forge.DefaultPolicy()
	policy.MaxAgentRetries, policy.RetryBackoff, policy.Fallbacks = 2, time.Second, 1
	for _, test := range []struct {
		name     string
		reason   forge.FailureReason
		until    time.Duration
		agent    string
		cost     float64
		budgeted bool
		counter  Counter
		limits   Limits
		want     Decision
	}{
		{
			name: "the first error", reason: forge.FailCrashed,
			want: Decision{Action: Later, At: now.Add(time.Second), Rule: "retry-agent", Detail: "crashed: it failed"},
		},
		{
			name: "the pause doubles", reason: forge.FailCrashed, counter: Counter{Errors: 1},
			want: Decision{Action: Later, At: now.Add(2 * time.Second), Rule: "retry-agent", Detail: "crashed: it failed"},
		},
		{
			name: "retries are used up", reason: forge.FailCrashed, counter: Counter{Errors: 2},
			want: Decision{Action: GiveUp, Why: "crashed: it failed (after 3 attempts)"},
		},
		{
			name: "the limit of turns, once", reason: forge.FailMaxTurns, counter: Counter{Errors: 1},
			want: Decision{Action: Later, At: now.Add(2 * time.Second), Rule: "retry-agent", Detail: "max_turns: it failed"},
		},
		{
			name: "the limit of turns, again", reason: forge.FailMaxTurns, counter: Counter{Errors: 1, TurnEnds: 1},
			want: Decision{Action: GiveUp, Why: "max_turns: it failed (after 2 attempts)"},
		},
		{
			name: "only a person can help", reason: forge.FailConfig,
			want: Decision{Action: GiveUp, Why: "config: it failed"},
		},
		{
			name: "the service ended", reason: forge.FailInterrupted, counter: Counter{Errors: 2},
			want: Decision{Action: CarryOn, Rule: "interrupted", Detail: "it failed"},
		},
		{
			name: "no replica can do it", reason: forge.FailReplica, counter: Counter{Errors: 2},
			want: Decision{Action: CarryOn, Rule: "wait-for-replica", Detail: "it failed"},
		},
		{
			name: "nor all night", reason: forge.FailReplica, counter: Counter{Errors: 2, Waits: 1000, Why: "it failed"},
			want: Decision{Action: CarryOn, Detail: "it failed"},
		},
		{
			name: "a replica was not well", reason: forge.FailUnwell, counter: Counter{Errors: 2, Unwell: 1},
			want: Decision{Action: CarryOn, Rule: "interrupted", Detail: "it failed"},
		},
		{
			name: "nor was the third", reason: forge.FailUnwell, counter: Counter{Unwell: 2},
			want: Decision{
				Action: CarryOn, Rule: "pause", Detail: "its replicas ended it 3 times in a row, the last time r1: it failed",
				Why: "its replicas ended it 3 times in a row, the last time r1: it failed",
			},
		},
		{
			name: "replicas were killed, which was counted already", reason: forge.FailKilledReplica, counter: Counter{Errors: 2},
			want: Decision{
				Action: CarryOn, Rule: "pause", Detail: "its replicas ended it again and again: it failed",
				Why: "its replicas ended it again and again: it failed",
			},
		},
		{
			name: "for another reason", reason: forge.FailReplica, counter: Counter{Errors: 2, Waits: 3, Why: "the disk is full"},
			want: Decision{Action: CarryOn, Rule: "wait-for-replica", Detail: "it failed"},
		},
		{
			name: "the session is lost", reason: forge.FailLostSession,
			want: Decision{Action: Later, At: now.Add(time.Second), Rule: "new-session", Detail: "lost_session: it failed"},
		},
		{
			name: "a busy model gets a longer pause", reason: forge.FailOverloaded,
			want: Decision{Action: Later, At: now.Add(30 * time.Second), Rule: "retry-agent", Detail: "overloaded: it failed"},
		},
		{
			name: "an origin that is away is given more than a minute", reason: forge.FailRepository, counter: Counter{Errors: 1},
			want: Decision{Action: Later, At: now.Add(time.Minute), Rule: "retry-agent", Detail: "repository: it failed"},
		},
		{
			name: "another agent", reason: forge.FailQuota, until: time.Hour, agent: "claude",
			want: Decision{Action: Elsewhere, Rule: "fallback", Detail: "claude is at its limit until 1970-01-01T01:00:00Z"},
		},
		{
			name: "no other agent: the first that is free again", reason: forge.FailQuota, until: 2 * time.Hour, agent: "codex",
			limits: Limits{{Agent: "claude", Until: now.Add(time.Hour)}},
			want:   Decision{Action: Later, At: now.Add(time.Hour), Rule: "park", Detail: "quota until 1970-01-01T01:00:00Z"},
		},
		{
			name: "the limit ends too late", reason: forge.FailQuota, until: 9 * 24 * time.Hour, agent: "claude",
			want: Decision{Action: GiveUp, Why: "quota: it failed"},
		},
		{
			name: "more budget", reason: forge.FailBudget, cost: 2, budgeted: true,
			want: Decision{Action: Again, Rule: "more-money", Detail: "$2.00 spent by this call"},
		},
		{
			name: "no budget draws on anything", reason: forge.FailBudget, cost: 2,
			want: Decision{Action: NoBudget, Why: "it failed"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := &forge.Failure{Reason: test.reason, Message: "it failed"}
			if test.until > 0 {
				f.Until = now.Add(test.until)
			}
			r := &forge.Result{Attempt: forge.Attempt{Task: "a-001", Step: forge.StepImplement}, Replica: "r1", Agent: test.agent, Output: f}
			r.Usage.CostUSD = test.cost
			got := Decide(&test.counter, &test.limits, &Failed{Result: r, Now: now, Policy: &policy, PolicyKnown: true, Budgeted: test.budgeted})
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
