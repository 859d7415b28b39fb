package claude

import (
	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent/price"
)

// usage has the tokens of one message, as the model's API reports them.
type usage struct {
	Input      int64 `json:"input_tokens"`
	Output     int64 `json:"output_tokens"`
	CacheRead  int64 `json:"cache_read_input_tokens"`
	CacheWrite int64 `json:"cache_creation_input_tokens"`
}

// modelUsage has the totals of one model in the result.
type modelUsage struct {
	Input      int64   `json:"inputTokens"`
	Output     int64   `json:"outputTokens"`
	CacheRead  int64   `json:"cacheReadInputTokens"`
	CacheWrite int64   `json:"cacheCreationInputTokens"`
	CostUSD    float64 `json:"costUSD"`
}

// forge converts to the project's type. Negative figures become 0.
func (u usage) forge() forge.Usage {
	return forge.Usage{
		InputTokens: max(u.Input, 0), OutputTokens: max(u.Output, 0),
		CacheReadTokens: max(u.CacheRead, 0), CacheWriteTokens: max(u.CacheWrite, 0),
	}
}

// usageMeter adds up the tokens of the model's messages while they are streamed.
type usageMeter struct {
	// messages has each message by its id.
	messages map[string]*messageUsage
	// current is the id of the message being streamed, by the tool use that started its
	// sub-agent; the main agent's has the key "".
	current map[string]string
}

// messageUsage has the tokens of one message.
type messageUsage struct {
	model string
	usage usage
	// streamedBytes counts the text received so far.
	streamedBytes int
	// final says that usage.Output will not change any more.
	final bool
}

// bytesPerToken estimates the output tokens of a message that was cut off: models make
// tokens of about four letters. The estimate is rather low than high.
const bytesPerToken = 4

// total returns the tokens and their list price.
func (s *messageUsage) total() forge.Usage {
	u := s.usage.forge()
	if !s.final {
		u.OutputTokens = max(u.OutputTokens, int64(s.streamedBytes/bytesPerToken))
	}
	u.CostUSD = price.Cost(s.model, u)
	return u
}

// newUsageMeter returns a meter that knows no message.
func newUsageMeter() *usageMeter {
	return &usageMeter{messages: map[string]*messageUsage{}, current: map[string]string{}}
}

// update merges figures of a message into those known. The CLI repeats them, and each
// only grows, so the maximum counts and nothing is added up.
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

// has reports whether a message is known.
func (m *usageMeter) has(id string) bool { return m.messages[id] != nil }

// total returns the sum over all messages with its list price.
func (m *usageMeter) total() forge.Usage {
	u := forge.Usage{Calls: 1, Turns: int64(len(m.messages))}
	for _, s := range m.messages {
		u = u.Add(s.total())
	}
	return u
}

// usage returns the usage of the call so far. The connection's count is exact and wins.
// Otherwise it is the result's, plus the tokens that only the stream showed, because
// the result leaves out replies that broke off.
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
	if told.CostUSD == 0 { // a reply that broke off is counted, but not paid for
		told.CostUSD = price.Cost(t.model, told)
	}
	more := forge.Usage{
		InputTokens:      max(seen.InputTokens-told.InputTokens, 0),
		OutputTokens:     max(seen.OutputTokens-told.OutputTokens, 0),
		CacheReadTokens:  max(seen.CacheReadTokens-told.CacheReadTokens, 0),
		CacheWriteTokens: max(seen.CacheWriteTokens-told.CacheWriteTokens, 0),
	}
	more.CostUSD = price.Cost(t.model, more)
	return told.Add(more)
}

// usage returns the totals of a result, in the form of current or older versions.
func (r *result) usage() forge.Usage {
	u := forge.Usage{}
	switch {
	case len(r.ModelUsageSince) > 0: // the total cost is that of the whole session then
		for _, m := range r.ModelUsageSince {
			u = u.Add(usage{m.Input, m.Output, m.CacheRead, m.CacheWrite}.forge())
			u.CostUSD += max(m.CostUSD, 0)
		}
		u.Calls, u.Turns = 1, max(r.NumTurns, 0)
		return u
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
