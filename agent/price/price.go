// Package price has the list prices of models. They serve to hold a running call to its
// budget before its program reports a cost, and to know the cost where a program reports
// tokens only.
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

// Model has the prices of one million tokens of each kind, in US dollars.
type Model struct {
	// Input and Output are tokens that the model reads and writes.
	Input, Output float64
	// CacheRead and CacheWrite are tokens of a prompt that come from the maker's cache, and
	// that are put into it.
	CacheRead, CacheWrite float64
}

// anthropic returns the prices of a model of Anthropic. Those of the cache follow from that of
// input; they are for entries that are kept for five minutes.
func anthropic(input, output float64) Model {
	return Model{Input: input, Output: output, CacheRead: input / 10, CacheWrite: input * 1.25}
}

// families has prices by how a model's name begins; the longest match holds. Where the
// beginning is that of models of different prices, it has the highest ones.
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
	"claude-sonnet-5-5": {Input: 2, Output: 10, CacheRead: 0.1, CacheWrite: 2.5},
	"claude-haiku":      anthropic(1, 5),
	"claude-haiku-5-5":  anthropic(0.1, 0.5),
	"claude-3-5-haiku":  anthropic(0.8, 4),
	"claude-3-5-sonnet": anthropic(3, 15),
	"claude-3-7-sonnet": anthropic(3, 15),
	"gpt-5-codex":       {Input: 1.25, Output: 10, CacheRead: 0.125},
	"gpt-5.4":           {Input: 2.5, Output: 15, CacheRead: 0.25},
	"gemini-2.5-pro":    {Input: 2.5, Output: 15, CacheRead: 0.25},
	"gemini-2.5-flash":  {Input: 0.3, Output: 2.5, CacheRead: 0.03},
}

// Of returns the prices of a model, whose name may have that of a provider in front
// (provider/model), and whether they are known. A model that is not known has the highest
// prices of all: a budget must not be overrun because of a name.
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

// Cost returns the cost of a usage of a model in US dollars, by the prices of [Of].
func Cost(model string, u forge.Usage) float64 {
	p, _ := Of(model)
	return (float64(u.InputTokens)*p.Input + float64(u.OutputTokens)*p.Output +
		float64(u.CacheReadTokens)*p.CacheRead + float64(u.CacheWriteTokens)*p.CacheWrite) / 1e6
}

// dearest returns the highest price of each kind of token.
func dearest() Model {
	var out Model
	for _, m := range families {
		out = Model{max(out.Input, m.Input), max(out.Output, m.Output), max(out.CacheRead, m.CacheRead), max(out.CacheWrite, m.CacheWrite)}
	}
	return out
}
