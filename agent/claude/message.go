package claude

import "encoding/json"

// message is one line of the CLI's output; which fields it has depends on its
// type and subtype.
type message struct {
	result

	Type      string `json:"type"`
	Subtype   string `json:"subtype"`
	SessionID string `json:"session_id"`

	// system/init
	Model string `json:"model"`

	// system/api_retry
	RetryDelayMS float64         `json:"retry_delay_ms"`
	ErrorStatus  int             `json:"error_status"`
	Error        json.RawMessage `json:"error"`

	// rate_limit_event, of a subscription
	RateLimit rateLimit `json:"rate_limit_info"`

	// assistant, user
	Message       body            `json:"message"`
	ToolUseResult json.RawMessage `json:"tool_use_result"`
}

type rateLimit struct {
	Status   string `json:"status"`
	ResetsAt int64  `json:"resetsAt"` // Unix time
}

// result is the last line of the output.
type result struct {
	IsError          *bool                 `json:"is_error"`
	APIErrorStatus   int                   `json:"api_error_status"`
	Result           string                `json:"result"`
	Errors           []string              `json:"errors"`
	StopReason       string                `json:"stop_reason"`
	TerminalReason   string                `json:"terminal_reason"`
	NumTurns         int64                 `json:"num_turns"`
	TotalCostUSD     *float64              `json:"total_cost_usd"`
	Usage            usage                 `json:"usage"`
	ModelUsage       map[string]modelUsage `json:"modelUsage"`
	StructuredOutput json.RawMessage       `json:"structured_output"`

	// Where older versions have cost and tokens.
	Cost struct {
		TotalCostUSD float64 `json:"total_cost_usd"`
	} `json:"cost"`
	ContextWindow struct {
		TotalInputTokens  int64 `json:"total_input_tokens"`
		TotalOutputTokens int64 `json:"total_output_tokens"`
	} `json:"context_window"`
}

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

// body is what an assistant or user message holds.
type body struct {
	ID      string   `json:"id"`
	Model   string   `json:"model"`
	Content contents `json:"content"`
	Usage   usage    `json:"usage"`
}

type content struct {
	Type  string          `json:"type"`
	ID    string          `json:"id"`
	Text  string          `json:"text"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

// contents is a list of blocks; a plain string has none that matter.
type contents []content

// UnmarshalJSON accepts both forms.
func (c *contents) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] != '[' {
		return nil
	}
	return json.Unmarshal(data, (*[]content)(c))
}
