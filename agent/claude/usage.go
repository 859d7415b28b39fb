package claude

import (
	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent/price"
)

type usage struct {
	Input      int64 `json:"input_tokens"`
	Output     int64 `json:"output_tokens"`
	CacheRead  int64 `json:"cache_read_input_tokens"`
	CacheWrite int64 `json:"cache_creation_input_tokens"`
}

type modelUsage struct {
	Input      int64   `json:"inputTokens"`
	Output     int64   `json:"outputTokens"`
	CacheRead  int64   `json:"cacheReadInputTokens"`
	CacheWrite int64   `json:"cacheCreationInputTokens"`
	CostUSD    float64 `json:"costUSD"`
}

func (u usage) forge() forge.Usage {
	return forge.Usage{
		InputTokens: max(u.Input, 0), OutputTokens: max(u.Output, 0),
		CacheReadTokens: max(u.CacheRead, 0), CacheWriteTokens: max(u.CacheWrite, 0),
	}
}

// meter counts what the stream tells about the model's messages while they come.
type usageMeter struct {
	messages map[string]*messageUsage // by the message's id
	current  map[string]string        // which message is being said, by whose it is
}

type messageUsage struct {
	model         string
	usage         usage
	streamedBytes int  // bytes of it that came so far
	final         bool // usage.Output is final
}

// bytesPerToken is for what a message that is not over will be billed at least: models
// make tokens of about four letters.
const bytesPerToken = 4

func (s *messageUsage) total() forge.Usage {
	u := s.usage.forge()
	if !s.final {
		u.OutputTokens = max(u.OutputTokens, int64(s.streamedBytes/bytesPerToken))
	}
	u.CostUSD = price.Cost(s.model, u)
	return u
}

func newUsageMeter() *usageMeter {
	return &usageMeter{messages: map[string]*messageUsage{}, current: map[string]string{}}
}

// update takes what is told of a message. That is told again and again, and each figure
// only grows; so it is never added up.
func (m *usageMeter) update(id, model string, u usage) *messageUsage {
	s := m.messages[id]
	if s == nil {
		s = &messageUsage{}
		m.messages[id] = s
	}
	if model != "" {
		s.model = model
	}
	s.usage = usage{
		max(s.usage.Input, u.Input), max(s.usage.Output, u.Output),
		max(s.usage.CacheRead, u.CacheRead), max(s.usage.CacheWrite, u.CacheWrite),
	}
	return s
}

func (m *usageMeter) has(id string) bool { return m.messages[id] != nil }

// total returns the sum, with what it costs by the list.
func (m *usageMeter) total() forge.Usage {
	u := forge.Usage{Calls: 1, Turns: int64(len(m.messages))}
	for _, s := range m.messages {
		u = u.Add(s.total())
	}
	return u
}

// usage returns what the call used so far: what who stands between it and the model
// counted, or what the result says, and, because that leaves out replies that broke
// off, what the stream shows beyond it.
func (t *outputReader) usage() forge.Usage {
	seen := t.meter.total()
	if t.counted != nil {
		u := t.counted()
		u.Calls, u.Turns = 1, seen.Turns
		if t.result != nil {
			u.Turns = max(t.result.NumTurns, 0)
		}
		return u
	}
	if t.result == nil {
		return seen
	}
	told := t.result.usage()
	more := forge.Usage{
		InputTokens:      max(seen.InputTokens-told.InputTokens, 0),
		OutputTokens:     max(seen.OutputTokens-told.OutputTokens, 0),
		CacheReadTokens:  max(seen.CacheReadTokens-told.CacheReadTokens, 0),
		CacheWriteTokens: max(seen.CacheWriteTokens-told.CacheWriteTokens, 0),
	}
	more.CostUSD = price.Cost(t.model, more)
	return told.Add(more)
}

// usage returns what a result tells, in the form of today's versions or of older ones.
func (r *result) usage() forge.Usage {
	u := forge.Usage{}
	switch {
	case len(r.ModelUsage) > 0: // includes sub-agents
		for _, m := range r.ModelUsage {
			u = u.Add(usage{m.Input, m.Output, m.CacheRead, m.CacheWrite}.forge())
		}
	case r.Usage != usage{}:
		u = r.Usage.forge()
	default:
		u = usage{Input: r.ContextWindow.TotalInputTokens, Output: r.ContextWindow.TotalOutputTokens}.forge()
	}
	u.Calls, u.Turns, u.CostUSD = 1, max(r.NumTurns, 0), r.Cost.TotalCostUSD
	if r.TotalCostUSD != nil {
		u.CostUSD = *r.TotalCostUSD
	}
	u.CostUSD = max(u.CostUSD, 0)
	return u
}
