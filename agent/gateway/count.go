package gateway

import (
	"encoding/json"
	"slices"

	"github.com/pfl-forge/pfl-forge"
)

// overwrite replaces a figure by a later one of the same response. They are totals; one
// that is missing has not changed.
func overwrite(at, later *int64) {
	if later != nil {
		*at = *later
	}
}

// anthropicUsage has pointers to tell a missing figure from zero.
type anthropicUsage struct {
	Input      *int64 `json:"input_tokens"`
	Output     *int64 `json:"output_tokens"`
	CacheRead  *int64 `json:"cache_read_input_tokens"`
	CacheWrite *int64 `json:"cache_creation_input_tokens"`
}

// countAnthropic reads a message, or the message_start and message_delta of a stream.
func countAnthropic(data []byte, c *responseUsage) {
	var in struct {
		Type    string
		Model   string
		Usage   *anthropicUsage
		Message struct {
			Model string
			Usage *anthropicUsage
		}
	}
	if json.Unmarshal(data, &in) != nil || !slices.Contains([]string{"message", "message_start", "message_delta"}, in.Type) {
		return
	}
	for _, model := range []string{in.Model, in.Message.Model} {
		if model != "" {
			c.model = model
		}
	}
	c.total = c.total || in.Type != "message_start" && in.Usage != nil
	for _, u := range []*anthropicUsage{in.Message.Usage, in.Usage} {
		if u != nil {
			overwrite(&c.usage.InputTokens, u.Input)
			overwrite(&c.usage.OutputTokens, u.Output)
			overwrite(&c.usage.CacheReadTokens, u.CacheRead)
			overwrite(&c.usage.CacheWriteTokens, u.CacheWrite)
		}
	}
}

// openAIUsage covers the names of both APIs, responses and chat completions.
type openAIUsage struct {
	Input   int64 `json:"input_tokens"`      // of responses
	Output  int64 `json:"output_tokens"`     // of responses
	Prompt  int64 `json:"prompt_tokens"`     // of chat completions
	Replies int64 `json:"completion_tokens"` // of chat completions
	Details struct {
		Cached int64 `json:"cached_tokens"`
	} `json:"input_tokens_details"`
	PromptDetails struct {
		Cached int64 `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

// countOpenAI reads a response or a chat completion, or the event of a stream that has
// its usage. OpenAI includes cached tokens in the input; forge.Usage does not.
func countOpenAI(data []byte, c *responseUsage) {
	var in struct {
		Model    string
		Usage    *openAIUsage
		Response struct {
			Model string
			Usage *openAIUsage
		}
	}
	if json.Unmarshal(data, &in) != nil {
		return
	}
	for _, model := range []string{in.Model, in.Response.Model} {
		if model != "" {
			c.model = model
		}
	}
	for _, u := range []*openAIUsage{in.Response.Usage, in.Usage} {
		if u != nil {
			c.total = true
			cached := u.Details.Cached + u.PromptDetails.Cached
			c.usage = forge.Usage{
				InputTokens: max(u.Input+u.Prompt-cached, 0), OutputTokens: u.Output + u.Replies, CacheReadTokens: cached,
			}
		}
	}
}

// countGemini reads a response, or a chunk of a stream, of which each has the totals so
// far.
func countGemini(data []byte, c *responseUsage) {
	var in struct {
		ModelVersion  string
		UsageMetadata *struct {
			PromptTokenCount        int64
			ToolUsePromptTokenCount int64
			CandidatesTokenCount    int64
			ThoughtsTokenCount      int64
			CachedContentTokenCount int64
		}
	}
	if json.Unmarshal(data, &in) != nil || in.UsageMetadata == nil {
		return
	}
	u := in.UsageMetadata
	if in.ModelVersion != "" {
		c.model = in.ModelVersion
	}
	c.total = true
	// Gemini includes cached tokens in the prompt; forge.Usage does not.
	c.usage = forge.Usage{
		InputTokens:     max(u.PromptTokenCount+u.ToolUsePromptTokenCount-u.CachedContentTokenCount, 0),
		OutputTokens:    u.CandidatesTokenCount + u.ThoughtsTokenCount,
		CacheReadTokens: u.CachedContentTokenCount,
	}
}
