package claude

import "encoding/json"

// message is one line of the CLI's output. Type and Subtype decide which fields are
// set.
type message struct {
	result

	// Type is system, assistant, user, stream_event, rate_limit_event or result.
	Type    string `json:"type"`
	Subtype string `json:"subtype"`
	// SessionID is the CLI's id of the session.
	SessionID string `json:"session_id"`

	// Model is set in system/init.
	Model string `json:"model"`

	// Status, in system/status, is "compacting" while the session is being shortened.
	Status string `json:"status"`

	// RetryDelayMS, in system/api_retry, is the wait before the next request.
	RetryDelayMS float64 `json:"retry_delay_ms"`
	// ErrorStatus, in system/api_retry, is the HTTP status of the failed request; 0 if
	// there was no answer.
	ErrorStatus int `json:"error_status"`

	// RateLimit is set in rate_limit_event, of a subscription.
	RateLimit rateLimit `json:"rate_limit_info"`

	// Message is set in assistant and user.
	Message messageBody `json:"message"`
	// Parent is the tool use that started the sub-agent whose message this is; empty
	// for the main agent.
	Parent string `json:"parent_tool_use_id"`
	// Error is the kind of an API error, in a message that the CLI itself wrote.
	Error optionalString `json:"error"`
	// ToolUseResult has details of a tool's result, such as the changed file.
	ToolUseResult json.RawMessage `json:"tool_use_result"`

	// Event is set in stream_event.
	Event event `json:"event"`
}

// event is an event of the model's own stream, passed on by the CLI.
type event struct {
	Type    string      `json:"type"`
	Message messageBody `json:"message"`       // message_start
	Block   content     `json:"content_block"` // content_block_start
	Delta   delta       `json:"delta"`         // content_block_delta
	Usage   usage       `json:"usage"`         // message_delta
}

// delta is an increment of a message that is being streamed.
type delta struct {
	Text     string `json:"text"`
	Thinking string `json:"thinking"`
	JSON     string `json:"partial_json"`
}

// rateLimit is the state of a subscription's limit.
type rateLimit struct {
	Status   string `json:"status"`
	ResetsAt int64  `json:"resetsAt"` // Unix time
}

// optionalString is a string that is empty if the JSON has another type there.
type optionalString string

// UnmarshalJSON never fails.
func (w *optionalString) UnmarshalJSON(data []byte) error {
	_ = json.Unmarshal(data, (*string)(w))
	return nil
}

// result is the last line of the output. Its fields have moved between versions of the
// CLI; see result.usage.
type result struct {
	// IsError is nil if the line lacks it, which is no success either.
	IsError *bool `json:"is_error"`
	// APIErrorStatus is the HTTP status of the API's last error; 0 without one.
	APIErrorStatus int      `json:"api_error_status"`
	Result         string   `json:"result"`
	Errors         []string `json:"errors"`
	StopReason     string   `json:"stop_reason"`
	TerminalReason string   `json:"terminal_reason"`
	NumTurns       int64    `json:"num_turns"`
	// Denials has the uses of tools that the CLI did not allow.
	Denials []denial `json:"permission_denials"`
	// TotalCostUSD is nil in older versions; see Cost.
	TotalCostUSD *float64 `json:"total_cost_usd"`
	Usage        usage    `json:"usage"`
	// ModelUsage has the totals by model, sub-agents included. Newer versions count what
	// the session used before it was resumed, too.
	ModelUsage map[string]modelUsage `json:"modelUsage"`
	// ModelUsageSince has the totals by model of this process alone; older versions, whose
	// ModelUsage is that, lack it.
	ModelUsageSince map[string]modelUsage `json:"model_usage_since_last_result"`
	// StructuredOutput is the answer that fits the schema.
	StructuredOutput json.RawMessage `json:"structured_output"`

	// Cost and ContextWindow have cost and tokens in older versions.
	Cost struct {
		TotalCostUSD float64 `json:"total_cost_usd"`
	} `json:"cost"`
	ContextWindow struct {
		TotalInputTokens  int64 `json:"total_input_tokens"`
		TotalOutputTokens int64 `json:"total_output_tokens"`
	} `json:"context_window"`
}

// denial is a use of a tool that the CLI did not allow.
type denial struct {
	Tool  string          `json:"tool_name"`
	Input json.RawMessage `json:"tool_input"`
}

// messageBody is the model's message inside an assistant or user message, or a stream
// event.
type messageBody struct {
	ID      string   `json:"id"`
	Model   string   `json:"model"`
	Content contents `json:"content"`
	Usage   usage    `json:"usage"`
}

// content is one block of a message.
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

// text returns the first text block.
func (c contents) text() string {
	for _, b := range c {
		if b.Type == "text" && b.Text != "" {
			return b.Text
		}
	}
	return ""
}
