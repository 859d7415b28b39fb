package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/rules"
)

// The values of policy.analyze_before_approval, as package config spells them. Any other one
// stands for the default: only what costs nothing is analyzed unasked.
const (
	analyzeAlways = "always"
	analyzeNever  = "never"
)

// Doubtful reports whether the policy decides if a person has to let the intent be analyzed: words
// of another system are in it, or it was declared to be of high risk. Who approved the parent saw
// this one in its plan.
func (g *Gate) Doubtful(in *forge.Intent) bool {
	return !g.Vouched && (in.Source.Foreign() || g.Declared == forge.RiskHigh)
}

// AsksFirst returns why a person has to let the intent be analyzed, by a version
// of the rules; empty if no person has to, or one has approved exactly this text.
func (g *Gate) AsksFirst(by rules.Version, in *forge.Intent, p *forge.Policy) string {
	// The risk that an analysis judged says nothing here: there was none, or a
	// person let it be made. That of a recipe is its own, and known without a call.
	var why string
	switch {
	case !g.Doubtful(in), g.Cleared == g.Text(by, in), p.AnalyzeBeforeApproval == analyzeAlways,
		in.Recipe != "" && p.AnalyzeBeforeApproval != analyzeNever:
		return ""
	case g.Declared == forge.RiskHigh:
		why = "it was declared to be of high risk"
	case in.Source == forge.SourceSystemReflection:
		why = "it is a reflection on what another system asked for"
	case slices.Contains(p.TrustedOrigins, in.Origin.System):
		return ""
	default:
		why = fmt.Sprintf("it comes from %q, which is not trusted", in.Origin.System)
	}
	return "before it is analyzed: " + why + " (policy.analyze_before_approval)"
}

// Part is a part of a request that a person lets be analyzed: a text, or a list of texts.
type Part struct {
	// Name is the one that documents have for it.
	Name string
	// value is a string, a forge.Risk or a []string, as the hash has it.
	value any
}

// Texts returns the part as it is shown; none if it is empty.
func (p *Part) Texts() []string {
	if list, ok := p.value.([]string); ok {
		return list
	}
	if text := fmt.Sprint(p.value); text != "" {
		return []string{text}
	}
	return nil
}

// Asked returns all that a person approves who lets a request be analyzed: everything
// that decides what is run, and how an agent is asked. The hash is made of these parts
// and of nothing else, and whoever approves is shown them, so that the two cannot differ.
func (g *Gate) Asked(by rules.Version, in *forge.Intent) []Part {
	list := []Part{
		{"title", in.Title}, {"body", in.Body}, {"type", in.Type}, {"risk", g.Declared}, {"recipe", in.Recipe}, {"agent", in.Agent}, {"criteria", in.Criteria},
	}
	if !by.Has(rules.ApprovedSettings) {
		return list
	}
	// Where there are none, the hash is as it was before.
	for _, p := range []Part{{"with", valuesOf(in)}, {"goal", optionsOf(in.Goal)}} {
		if len(p.Texts()) > 0 {
			list = append(list, p)
		}
	}
	return list
}

// valuesOf returns the values of the parameters of a recipe, with their names.
func valuesOf(in *forge.Intent) (list []string) {
	for _, name := range slices.Sorted(maps.Keys(in.With)) {
		list = append(list, name+"="+in.With[name])
	}
	return list
}

// optionsOf returns how a goal is worked on, where that is not the default.
func optionsOf(g *forge.GoalOptions) (list []string) {
	if g == nil {
		return nil
	}
	add := func(name string, given bool, value any) {
		if given {
			list = append(list, fmt.Sprintf("%s=%v", name, value))
		}
	}
	add("max_iterations", g.MaxIterations != 0, g.MaxIterations)
	add("history_context", g.HistoryContext != 0, g.HistoryContext)
	add("model", g.Model != "", g.Model)
	add("tools", len(g.Tools) > 0, strings.Join(g.Tools, ", "))
	add("system_prompt", g.SystemPrompt != "", g.SystemPrompt)
	add("judge_prompt", g.JudgePrompt != "", g.JudgePrompt)
	add("history_file", g.HistoryFile != "", g.HistoryFile)
	add("knowledge_file", g.KnowledgeFile != "", g.KnowledgeFile)
	add("raw_log", g.RawLog, g.RawLog)
	add("log_dir", g.LogDir != "", g.LogDir)
	return list
}

// Text returns the name of the text that a person lets be analyzed: a hash of Asked, so that
// an edit of it needs another approval. Answers, which come later, are a person's word.
func (g *Gate) Text(by rules.Version, in *forge.Intent) string {
	// The word in front keeps it apart from the hash of a plan, which an
	// approval names in the same field.
	h := sha256.New()
	fmt.Fprint(h, "text")
	for _, p := range g.Asked(by, in) {
		fmt.Fprintf(h, " %q", p.value)
	}
	fmt.Fprintln(h)
	return hex.EncodeToString(h.Sum(nil))[:12]
}
