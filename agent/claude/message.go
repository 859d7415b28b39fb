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

	// system/status
	Status string `json:"status"`

	// system/api_retry
	RetryDelayMS float64 `json:"retry_delay_ms"`
	ErrorStatus  int     `json:"error_status"`

	// rate_limit_event, of a subscription
	RateLimit rateLimit `json:"rate_limit_info"`

	// assistant, user
	Message       messageBody     `json:"message"`
	Parent        string          `json:"parent_tool_use_id"` // of an agent that this one started
	Error         optionalString  `json:"error"`              // of words that the CLI says itself: which kind of error
	ToolUseResult json.RawMessage `json:"tool_use_result"`

	// stream_event
	Event event `json:"event"`
}

// event is one of the model's own stream.
type event struct {
	Type    string      `json:"type"`
	Message messageBody `json:"message"`       // message_start
	Block   content     `json:"content_block"` // content_block_start
	Delta   delta       `json:"delta"`         // content_block_delta
	Usage   usage       `json:"usage"`         // message_delta
}

// delta is a piece of a message.
type delta struct {
	Text     string `json:"text"`
	Thinking string `json:"thinking"`
	JSON     string `json:"partial_json"`
}

type rateLimit struct {
	Status   string `json:"status"`
	ResetsAt int64  `json:"resetsAt"` // Unix time
}

// word is a string; anything else in its place is none.
type optionalString string

// UnmarshalJSON never fails.
func (w *optionalString) UnmarshalJSON(data []byte) error {
	_ = json.Unmarshal(data, (*string)(w))
	return nil
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

// body is what an assistant or user message holds.
type messageBody struct {
	ID      string   `json:"id"`
	Model   string   `json:"model"`
	Content contents `json:"content"`
	Usage   usage    `json:"usage"`
}

type content struct {
	Type     string          `json:"type"`
	ID       string          `json:"id"`
	Text     string          `json:"text"`
	Thinking string          `json:"thinking"`
	Name     string          `json:"name"`
	Input    json.RawMessage `json:"input"`

	// tool_result
	ToolUseID string   `json:"tool_use_id"`
	IsError   bool     `json:"is_error"`
	Content   contents `json:"content"`
}

// contents is a list of blocks; a plain string is one block of text.
type contents []content

// UnmarshalJSON accepts both forms.
func (c *contents) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		var s string
		err := json.Unmarshal(data, &s)
		*c = contents{{Type: "text", Text: s}}
		return err
	}
	if len(data) > 0 && data[0] != '[' {
		return nil
	}
	return json.Unmarshal(data, (*[]content)(c))
}

func (c contents) text() string {
	for _, b := range c {
		if b.Type == "text" && b.Text != "" {
			return b.Text
		}
	}
	return ""
}
