package decide

import (
	"math"
	"strings"
	"testing"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/internal/wire"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
)

// TestImpossibleUsage has a worker report what no attempt can have used, so that a budget is never
// spent or its sum is no number: no runner decides on that. What an attempt can have used is read.
func TestImpossibleUsage(t *testing.T) {
	read := func(u forge.Usage) error {
		r := forge.Result{
			To: forge.Key{Project: "shop", Intent: "a"}, Attempt: forge.Attempt{Task: "a-001", Step: forge.StepReview, Number: 1, Claim: 1},
			Usage: u, Output: &forge.Failure{Reason: forge.FailCrashed, Message: "exit status 1"},
		}
		subject, err := subjects.Result(&r)
		if err != nil {
			t.Fatal(err)
		}
		data, err := wire.Results.Marshal(&r)
		if err != nil {
			t.Fatal(err)
		}
		_, err = readResult(subject, data)
		return err
	}
	for _, u := range []forge.Usage{{}, {CostUSD: 0.25, InputTokens: 100, Turns: 3, Calls: 1}, {CostUSD: mostUSD, InputTokens: mostCount}} {
		if err := read(u); err != nil {
			t.Errorf("%+v: %v", u, err)
		}
	}
	for _, u := range []forge.Usage{
		{CostUSD: -0.01},
		{CostUSD: math.NaN()},
		{CostUSD: math.Inf(1)},
		{CostUSD: math.Inf(-1)},
		{CostUSD: math.MaxFloat64},
		{InputTokens: -1},
		{OutputTokens: -1},
		{CacheReadTokens: -1},
		{CacheWriteTokens: -1},
		{Turns: -1},
		{Calls: -1},
		{InputTokens: math.MaxInt64},
	} {
		if err := read(u); err == nil || !strings.Contains(err.Error(), "its usage has") {
			t.Errorf("%+v: %v", u, err)
		}
	}
}
