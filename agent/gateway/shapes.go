package gateway

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge/internal/pattern"
)

// shape returns the shape of requests for an endpoint.
func (a *api) shape(endpoint string) *shape {
	switch {
	case a == apis[Gemini]:
		return generate
	case a == apis[Anthropic]:
		return messages
	case strings.HasSuffix(endpoint, "/responses"):
		return responses
	}
	return completions
}

// messages is the shape of Anthropic's API. Not among the fields are mcp_servers, which the
// provider would connect to, and container, in which it would run code with its own network.
// A field that a later version of the API has is refused until it is listed here.
var messages = &shape{
	fields: []string{
		"model", "messages", "system", "max_tokens", "metadata", "stop_sequences", "stream", "temperature", "top_k", "top_p", "thinking",
		"tool_choice", "tools", "service_tier", "context_management", "output_config", "output_format", "cache_control", "speed",
	},
	// Besides those without a type, tools that Anthropic describes and the client runs.
	tools: pattern.New(`^(|custom|(bash|text_editor|computer|memory)_[0-9]{8})$`),
	check: func(s *shape, request map[string]any) *refusal {
		if refused := s.typed("tools", request["tools"]); refused != nil {
			return refused
		}
		if refused := parts("system", request["system"], messageBlocks); refused != nil {
			return refused
		}
		return conversation("messages", request["messages"], messageBlocks)
	},
}

// messageBlocks are the parts of Anthropic's messages.
var messageBlocks = map[string]block{
	"text": {}, "thinking": {}, "redacted_thinking": {}, "tool_use": {}, "tool_reference": {},
	"image": {sources: []string{"source"}}, "document": {sources: []string{"source"}},
	"search_result": {content: []string{"content"}}, "tool_result": {content: []string{"content"}},
}

// conversation checks the content of each message in a list.
func conversation(where string, value any, kinds map[string]block) *refusal {
	all, refused := list(where, value)
	if refused != nil {
		return refused
	}
	for i, m := range all {
		if refused := parts(fmt.Sprintf("%s[%d].content", where, i), m["content"], kinds); refused != nil {
			return refused
		}
	}
	return nil
}

// responses is the shape of OpenAI's Responses API. Nothing that the provider stored goes
// on: it could be of another call, and have tools of its own. So previous_response_id,
// conversation and prompt are not among the fields, and neither is background, whose answer
// would be fetched from an endpoint that the gateway does not forward.
var responses = &shape{
	fields: []string{
		"model", "input", "instructions", "tools", "tool_choice", "parallel_tool_calls", "reasoning", "store", "stream", "stream_options",
		"include", "service_tier", "prompt_cache_key", "prompt_cache_retention", "text", "client_metadata", "metadata", "max_output_tokens",
		"max_tool_calls", "temperature", "top_p", "top_logprobs", "truncation", "user", "safety_identifier",
	},
	tools: pattern.New(`^(function|custom|local_shell|apply_patch)$`), namespaces: true,
	check: func(s *shape, request map[string]any) *refusal {
		if refused := s.typed("tools", request["tools"]); refused != nil {
			return refused
		}
		return parts("input", request["input"], responseItems)
	},
}

// responseItems are the items of a Responses request, and their parts. An item without a
// type is a message.
var responseItems = map[string]block{
	"": {content: []string{"content"}}, "message": {content: []string{"content"}},
	"reasoning": {content: []string{"content", "summary"}}, "function_call": {}, "function_call_output": {content: []string{"output"}},
	"custom_tool_call": {}, "custom_tool_call_output": {content: []string{"output"}}, "local_shell_call": {},
	"local_shell_call_output": {}, "apply_patch_call": {}, "apply_patch_call_output": {},
	"input_text": {}, "output_text": {}, "text": {}, "refusal": {}, "summary_text": {}, "reasoning_text": {},
	"input_image": {embedded: []string{"image_url"}, never: []string{"file_id"}},
	"input_file":  {never: []string{"file_id", "file_url"}},
}

// completions is the shape of OpenAI's Chat Completions API, which other providers speak as
// well. Not among the fields are web_search_options, and plugins of providers in between.
var completions = &shape{
	fields: []string{
		"model", "messages", "tools", "tool_choice", "parallel_tool_calls", "functions", "function_call", "stream", "stream_options",
		"temperature", "top_p", "max_tokens", "max_completion_tokens", "stop", "n", "presence_penalty", "frequency_penalty", "logit_bias",
		"logprobs", "top_logprobs", "response_format", "seed", "user", "reasoning_effort", "verbosity", "service_tier", "store", "metadata",
		"prompt_cache_key", "safety_identifier", "prediction",
	},
	tools: pattern.New(`^(function|custom)$`),
	check: func(s *shape, request map[string]any) *refusal {
		if refused := s.typed("tools", request["tools"]); refused != nil {
			return refused
		}
		return conversation("messages", request["messages"], completionParts)
	},
}

// completionParts are the parts of a completion's messages.
var completionParts = map[string]block{
	"text": {}, "refusal": {}, "input_audio": {}, "image_url": {embedded: []string{"image_url"}},
}

// generate is the shape of Gemini's API, with names as plainly as plain writes them: the
// API takes each in two spellings. A cache that the provider stored could have tools.
var generate = &shape{
	fields: []string{
		"model", "contents", "systeminstruction", "tools", "toolconfig", "safetysettings", "generationconfig", "generatecontentrequest",
	},
	check: checkGenerate,
}

// checkGenerate checks tools and contents of a request of Gemini's API.
func checkGenerate(s *shape, request map[string]any) *refusal {
	if inner, ok := request["generatecontentrequest"].(map[string]any); ok {
		return s.screen(inner)
	}
	tools, refused := list("tools", request["tools"])
	if refused != nil {
		return refused
	}
	for i, tool := range tools {
		if refused := only(fmt.Sprintf("tools[%d]", i), tool, "functiondeclarations"); refused != nil {
			return refused
		}
	}
	if refused := only("toolConfig", request["toolconfig"], "functioncallingconfig"); refused != nil {
		return refused
	}
	contents, refused := list("contents", request["contents"])
	if refused != nil {
		return refused
	}
	if system, ok := request["systeminstruction"].(map[string]any); ok {
		contents = append(contents, system)
	}
	for i, c := range contents {
		if refused := geminiParts(fmt.Sprintf("contents[%d].parts", i), c["parts"]); refused != nil {
			return refused
		}
	}
	return nil
}

// geminiParts checks the parts of a content, or those that a function answered with.
func geminiParts(where string, value any) *refusal {
	all, refused := list(where, value)
	if refused != nil {
		return refused
	}
	for i, p := range all {
		at := fmt.Sprintf("%s[%d]", where, i)
		refused := only(at, p, "text", "inlinedata", "functioncall", "functionresponse", "thought", "thoughtsignature", "videometadata", "mediaresolution")
		if refused != nil {
			return refused
		}
		if answer, ok := p["functionresponse"].(map[string]any); ok {
			if refused := geminiParts(at+".functionResponse.parts", answer["parts"]); refused != nil {
				return refused
			}
		}
	}
	return nil
}

// only returns a refusal if an object has fields beside these.
func only(where string, value any, fields ...string) *refusal {
	if value == nil {
		return nil
	}
	object, ok := value.(map[string]any)
	if !ok {
		return errScreened(where, "is no object")
	}
	for name := range object {
		if !slices.Contains(fields, name) {
			return errScreened(where+"."+name, "the gateway does not know this field")
		}
	}
	return nil
}

// free are the fields of Gemini's API whose content has names of its own, which are not
// spelled in two ways.
var free = []string{"functiondeclarations", "args", "response", "generationconfig", "safetysettings"}

// plain returns an object whose names, and those of the objects in it, have neither capital
// letters nor underscores: Gemini's API takes systemInstruction and system_instruction for
// the same.
func plain(object map[string]any) (map[string]any, error) {
	out := map[string]any{}
	for name, value := range object {
		key := strings.ToLower(strings.ReplaceAll(name, "_", ""))
		if _, twice := out[key]; twice {
			return nil, fmt.Errorf("%.40q is there twice, in two spellings", name)
		}
		var err error
		if out[key] = value; !slices.Contains(free, key) {
			if out[key], err = plainValue(value); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// plainValue returns a value whose objects are plain.
func plainValue(value any) (any, error) {
	switch v := value.(type) {
	case map[string]any:
		return plain(v)
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			var err error
			if out[i], err = plainValue(e); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return value, nil
}
