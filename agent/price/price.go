// Package price knows what the tokens of a model cost, to hold a running call to its
// budget before its CLI reports a cost.
//
// The figures are the makers' list prices of November 2026, as their pages say:
// platform.claude.com/docs/en/about-claude/pricing, developers.openai.com/api/docs/pricing
// and ai.google.dev/gemini-api/docs/pricing. Discounts are not in them, and of prices
// that depend on the length of the prompt the higher one is.
package price

import (
	"strings"

	"github.com/pfl-forge/pfl-forge"
)

// Model is what one million tokens cost, in USD.
type Model struct {
	Input, Output, CacheRead, CacheWrite float64
}

// anthropic fills in the prices of the cache, which follow that of input: what is
// kept for five minutes.
func anthropic(input, output float64) Model {
	return Model{Input: input, Output: output, CacheRead: input / 10, CacheWrite: input * 1.25}
}

// families are prices by how a model's name begins; the longest match holds. Where a
// maker's name covers models of different prices, the dearest is meant.
var families = map[string]Model{
	"claude-fable":      anthropic(10, 50),
	"claude-mythos":     anthropic(10, 50),
	"claude-opus":       anthropic(15, 75),
	"claude-opus-4-5":   anthropic(5, 25),
	"claude-opus-4-6":   anthropic(5, 25),
	"claude-opus-4-7":   anthropic(5, 25),
	"claude-opus-4-8":   anthropic(5, 25),
	"claude-opus-5":     anthropic(5, 25),
	"claude-sonnet":     anthropic(3, 15),
	"claude-haiku":      anthropic(1, 5),
	"claude-3-5-haiku":  anthropic(0.8, 4),
	"claude-3-5-sonnet": anthropic(3, 15),
	"claude-3-7-sonnet": anthropic(3, 15),
	"gpt-5-codex":       {Input: 1.25, Output: 10, CacheRead: 0.125},
	"gpt-5.4":           {Input: 2.5, Output: 15, CacheRead: 0.25},
	"gemini-2.5-pro":    {Input: 2.5, Output: 15, CacheRead: 0.25},
	"gemini-2.5-flash":  {Input: 0.3, Output: 2.5, CacheRead: 0.03},
}

// Of returns the prices of a model, and whether they are known. Those of a model that
// is not are the dearest of all: a budget must not be overrun because of a name.
func Of(model string) (Model, bool) {
	name := strings.ToLower(model)
	name = name[strings.LastIndexByte(name, '/')+1:] // of a provider
	best := ""
	for prefix := range families {
		if strings.HasPrefix(name, prefix) && len(prefix) > len(best) {
			best = prefix
		}
	}
	if best == "" {
		return dearest(), false
	}
	return families[best], true
}

// Cost returns what a usage of the model costs, in USD.
func Cost(model string, u forge.Usage) float64 {
	p, _ := Of(model)
	return (float64(u.InputTokens)*p.Input + float64(u.OutputTokens)*p.Output +
		float64(u.CacheReadTokens)*p.CacheRead + float64(u.CacheWriteTokens)*p.CacheWrite) / 1e6
}

func dearest() Model {
	var out Model
	for _, m := range families {
		out = Model{max(out.Input, m.Input), max(out.Output, m.Output), max(out.CacheRead, m.CacheRead), max(out.CacheWrite, m.CacheWrite)}
	}
	return out
}
