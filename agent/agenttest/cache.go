package agenttest

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
)

// Cache counts tokens as the prompt cache of the Messages API does: what a request
// begins with, up to one of its marks, is read from the cache if an earlier request had
// a mark after exactly the same blocks, and is written to it otherwise. Requests of
// several scenarios may share one.
type Cache struct {
	mu sync.Mutex
	// kept has the prefixes that end at a mark of an earlier request.
	kept map[[sha256.Size]byte]bool
}

// lookback is the number of blocks before a mark at which the API looks for a prefix.
const lookback = 20

// bytesPerToken turns bytes of a request into tokens.
const bytesPerToken = 4

// Counted returns a scenario whose replies report what the cache counts for their
// requests; output tokens are those of the reply.
func (c *Cache) Counted(s Scenario) Scenario {
	return func(r Request) Reply {
		reply := s(r)
		counted, err := c.count(r.Body)
		if err != nil {
			return Reply{Status: 400, ErrorType: "invalid_request_error", Text: err.Error()}
		}
		counted.Output = reply.usage().Output
		reply.Usage = counted
		return reply
	}
}

// count returns the input tokens of a request, and keeps its prefixes.
func (c *Cache) count(body []byte) (Usage, error) {
	blocks, err := PromptBlocks(body)
	if err != nil {
		return Usage{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept == nil {
		c.kept = map[[sha256.Size]byte]bool{}
	}
	hash := sha256.New()
	prefixes := make([][sha256.Size]byte, len(blocks))
	read, written, total := 0, 0, 0 // in bytes, from the beginning
	for i, b := range blocks {
		_, _ = fmt.Fprintf(hash, "%d:%s", len(b.Content), b.Content)
		hash.Sum(prefixes[i][:0])
		total += len(b.Content)
		if !b.Marked {
			continue
		}
		end := total
		for j := i; j >= 0 && j > i-lookback; j-- {
			if c.kept[prefixes[j]] {
				read = max(read, end)
				break
			}
			end -= len(blocks[j].Content)
		}
		written = total
	}
	for i, b := range blocks {
		if b.Marked {
			c.kept[prefixes[i]] = true
		}
	}
	return Usage{
		CacheRead: read / bytesPerToken, CacheWrite: (written - min(read, written)) / bytesPerToken, Input: (total - written) / bytesPerToken,
	}, nil
}

// PromptBlock is a part of a request to the Messages API: a tool, a block of the system
// prompt, or a block of a message.
type PromptBlock struct {
	// Content is the block's JSON with its place in the request, without its mark.
	Content []byte
	// Marked says that the request asks for a prefix that ends here to be cached.
	Marked bool
}

// PromptBlocks returns the blocks of a request in the order in which the API reads them:
// tools, system prompt, messages.
func PromptBlocks(body []byte) ([]PromptBlock, error) {
	var in struct {
		Model    string            `json:"model"`
		Tools    []json.RawMessage `json:"tools"`
		System   json.RawMessage   `json:"system"`
		Messages []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	out := []PromptBlock{{Content: []byte(in.Model)}}
	add := func(place string, list []json.RawMessage) error {
		for _, raw := range list {
			var fields map[string]json.RawMessage
			if err := json.Unmarshal(raw, &fields); err != nil {
				return err
			}
			_, marked := fields["cache_control"]
			delete(fields, "cache_control")
			content, err := json.Marshal(fields) // in the order of their names
			if err != nil {
				return err
			}
			out = append(out, PromptBlock{Content: slices.Concat([]byte(place), content), Marked: marked})
		}
		return nil
	}
	if err := add("tool", in.Tools); err != nil {
		return nil, err
	}
	if err := add("system", blockList(in.System)); err != nil {
		return nil, err
	}
	for _, m := range in.Messages {
		if err := add(m.Role, blockList(m.Content)); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// blockList returns the blocks of content that is either a string or a list of blocks.
func blockList(content json.RawMessage) []json.RawMessage {
	content = bytes.TrimSpace(content)
	if len(content) == 0 {
		return nil
	}
	if content[0] == '"' {
		return []json.RawMessage{slices.Concat([]byte(`{"text":`), content, []byte(`,"type":"text"}`))}
	}
	var list []json.RawMessage
	if json.Unmarshal(content, &list) != nil {
		return nil
	}
	return list
}
