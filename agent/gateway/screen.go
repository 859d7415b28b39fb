package gateway

import (
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge/internal/pattern"
)

// A request to a model can have the provider reach the network: by tools that it runs
// itself, such as a web search, by an MCP server, or by an address from which it is to
// fetch a picture. An agent whose network is the model alone must not get out that way, and
// a role must not get tools that it does not have. So screen lets nothing pass but what is
// listed here: fields, tools that the CLI runs, and parts of a conversation that are in the
// request itself.

// errScreened returns the refusal of a part of a request. where is its place, such as
// tools[0].type.
func errScreened(where, why string) *refusal {
	return &refusal{
		http.StatusForbidden, "permission_error",
		fmt.Sprintf("%s: %s; the network of this call is its model alone (policy.network), "+
			"and what the model's provider would reach for it is part of that", where, why),
	}
}

// keepBetas removes from the headers what switches on tools of the provider. It could do
// nothing without the fields that screen refuses; some CLIs name it without using it.
func keepBetas(header http.Header) {
	names := strings.FieldsFunc(strings.Join(header.Values("Anthropic-Beta"), ","), func(r rune) bool { return r == ',' || r == ' ' })
	names = slices.DeleteFunc(names, providerBetas.MatchString)
	if header.Del("Anthropic-Beta"); len(names) > 0 {
		header.Set("Anthropic-Beta", strings.Join(names, ","))
	}
}

// providerBetas are the names of Anthropic's tools that run elsewhere.
var providerBetas = pattern.New(`(?i)^(mcp-client|code-execution|files-api|web-fetch|web-search|skills)-`)

// shape lists the fields, tools and parts that a request of one API may have.
type shape struct {
	// fields are those of the request.
	fields []string
	// tools are the types of tools; "" is a tool that names no type.
	tools *pattern.Pattern
	// namespaces says that a tool may be a list of tools.
	namespaces bool
	// check looks at the fields that hold tools and the conversation.
	check func(s *shape, request map[string]any) *refusal
}

// screen returns why a request must not pass, or nil. It reads the body as every provider
// does: what could be read in two ways is refused.
func (a *api) screen(endpoint string, header http.Header, body []byte) *refusal {
	if e := header.Get("Content-Encoding"); e != "" && !strings.EqualFold(e, "identity") {
		return errScreened("Content-Encoding", "the gateway reads what it forwards, and this is packed")
	}
	if kind, _, err := mime.ParseMediaType(header.Get("Content-Type")); err != nil || kind != "application/json" {
		return errScreened("Content-Type", "is not application/json")
	}
	value, err := decode(body)
	if err != nil {
		return errScreened("the request", err.Error())
	}
	request, ok := value.(map[string]any)
	if !ok {
		return errScreened("the request", "is no object")
	}
	if a == apis[Gemini] {
		if request, err = plain(request); err != nil {
			return errScreened("the request", err.Error())
		}
	}
	return a.shape(endpoint).screen(request)
}

// screen returns why a request does not have the shape, or nil.
func (s *shape) screen(request map[string]any) *refusal {
	for name := range request {
		if !slices.Contains(s.fields, name) {
			return errScreened(name, "the gateway does not know this field")
		}
	}
	return s.check(s, request)
}

// list returns the elements of a field, which must be objects; none if there is no such
// field.
func list(where string, value any) ([]map[string]any, *refusal) {
	if value == nil {
		return nil, nil
	}
	elements, ok := value.([]any)
	if !ok {
		return nil, errScreened(where, "is no list")
	}
	out := make([]map[string]any, len(elements))
	for i, e := range elements {
		if out[i], ok = e.(map[string]any); !ok {
			return nil, errScreened(fmt.Sprintf("%s[%d]", where, i), "is no object")
		}
	}
	return out, nil
}

// word returns a field that is a text; empty if there is none, and a text that no list
// contains if it is something else.
func word(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		return v
	}
	return fmt.Sprintf("(%T)", value)
}

// typed checks the type of each tool in a list; a namespace has further tools.
func (s *shape) typed(where string, value any) *refusal {
	tools, refused := list(where, value)
	if refused != nil {
		return refused
	}
	for i, tool := range tools {
		at := fmt.Sprintf("%s[%d]", where, i)
		if kind := word(tool["type"]); kind == "namespace" && s.namespaces {
			if refused := s.typed(at+".tools", tool["tools"]); refused != nil {
				return refused
			}
		} else if !s.tools.MatchString(kind) {
			return errScreened(at+".type", fmt.Sprintf("%q is no tool that the agent runs itself", kind))
		}
	}
	return nil
}

// block describes one kind of part of a conversation.
type block struct {
	// content has the fields that hold further parts, or a text.
	content []string
	// embedded has the fields that hold an address, which must be one that holds the data.
	embedded []string
	// sources has the fields whose type must be among inRequest.
	sources []string
	// never has fields that refer to something that is not in the request.
	never []string
}

// inRequest has the types of a source whose data is in the request.
var inRequest = []string{"base64", "text", "content"}

// parts checks a text or a list of parts of a conversation.
func parts(where string, value any, kinds map[string]block) *refusal {
	if _, text := value.(string); text {
		return nil
	}
	blocks, refused := list(where, value)
	if refused != nil {
		return refused
	}
	for i, b := range blocks {
		at := fmt.Sprintf("%s[%d]", where, i)
		kind, known := kinds[word(b["type"])]
		if !known {
			return errScreened(at+".type", fmt.Sprintf("the gateway does not know %q", word(b["type"])))
		}
		if refused := kind.check(at, b, kinds); refused != nil {
			return refused
		}
	}
	return nil
}

// check returns why a part must not pass, or nil. What is in text is not looked at: a model may
// read any address, but only the provider's own fields have it fetched.
func (k block) check(at string, b map[string]any, kinds map[string]block) *refusal {
	for _, name := range k.never {
		if b[name] != nil {
			return errScreened(at+"."+name, "refers to what is not in the request")
		}
	}
	for _, name := range k.embedded {
		address, nested := b[name].(map[string]any)
		if !nested {
			address = map[string]any{"url": b[name]}
		}
		if u := word(address["url"]); u != "" && !strings.HasPrefix(u, "data:") {
			return errScreened(at+"."+name, "the provider would fetch an address")
		}
	}
	for _, name := range k.sources {
		source, ok := b[name].(map[string]any)
		if !ok || !slices.Contains(inRequest, word(source["type"])) {
			return errScreened(at+"."+name+".type", "is not among "+strings.Join(inRequest, ", "))
		}
		if refused := parts(at+"."+name+".content", source["content"], kinds); refused != nil {
			return refused
		}
	}
	for _, name := range k.content {
		if refused := parts(at+"."+name, b[name], kinds); refused != nil {
			return refused
		}
	}
	return nil
}
