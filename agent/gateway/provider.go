package gateway

import (
	"net/http"
	"path"
	"strings"
)

// Provider names a model API.
type Provider string

// The providers.
const (
	Anthropic Provider = "anthropic"
	OpenAI    Provider = "openai"
	Gemini    Provider = "gemini"
)

// api describes a provider's API.
type api struct {
	// base is the API's address, unless the variable baseVar overrides it.
	base string
	// baseVar is also the variable that tells a CLI the address.
	baseVar string
	// prefix is the path that CLIs expect in the address.
	prefix string
	// keys lists the kinds of keys; the first one that is set is used.
	keys []key
	// endpoints has patterns of path.Match, below the prefix. All are for POST.
	endpoints []string
	// count reads the tokens that data, an answer or an event, reports into c.
	count func(data []byte, c *responseUsage)
}

// key is a kind of key: the variable that holds it, and how the API takes it.
type key struct {
	variable string
	header   string
	// scheme is put before the key.
	scheme string
	// beta is a value of Anthropic-Beta that the API requires for this kind of key.
	beta string
}

// apis describes all providers.
var apis = map[Provider]*api{
	Anthropic: {
		base: "https://api.anthropic.com", baseVar: "ANTHROPIC_BASE_URL",
		keys: []key{
			{variable: "ANTHROPIC_AUTH_TOKEN", header: "Authorization", scheme: "Bearer "},
			{variable: "ANTHROPIC_API_KEY", header: "X-Api-Key"},
			{variable: "CLAUDE_CODE_OAUTH_TOKEN", header: "Authorization", scheme: "Bearer ", beta: "oauth-2025-04-20"},
		},
		endpoints: []string{"/v1/messages", "/v1/messages/count_tokens"},
		count:     countAnthropic,
	},
	OpenAI: {
		base: "https://api.openai.com/v1", baseVar: "OPENAI_BASE_URL", prefix: "/v1",
		keys:      []key{{variable: "OPENAI_API_KEY", header: "Authorization", scheme: "Bearer "}},
		endpoints: []string{"/responses", "/chat/completions"},
		count:     countOpenAI,
	},
	Gemini: {
		base: "https://generativelanguage.googleapis.com", baseVar: "GOOGLE_GEMINI_BASE_URL",
		keys: []key{{variable: "GEMINI_API_KEY", header: "X-Goog-Api-Key"}},
		endpoints: []string{
			"/v1beta/models/*:generateContent", "/v1beta/models/*:streamGenerateContent", "/v1beta/models/*:countTokens",
		},
		count: countGemini,
	},
}

// endpoint returns the path below the API's base that a request is for; false if the
// gateway does not forward it. Only listed endpoints pass: a key can do more than ask a
// model.
func (a *api) endpoint(r *http.Request) (string, bool) {
	rest, ok := strings.CutPrefix(r.URL.Path, a.prefix)
	// A path that needs cleaning or decoding may mean one thing here and another upstream.
	if !ok || r.Method != http.MethodPost || r.URL.RawPath != "" || path.Clean(rest) != rest {
		return "", false
	}
	for _, pattern := range a.endpoints {
		if match, err := path.Match(pattern, rest); match && err == nil {
			return rest, true
		}
	}
	return "", false
}

// strippedHeaders lists headers that are removed from an agent's requests: the gateway
// alone adds a key, and the machine is not described to the provider.
var strippedHeaders = []string{
	"Authorization", "X-Api-Key", "X-Goog-Api-Key", "Api-Key", "Cookie", "Proxy-Authorization",
	"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-Ip",
	"X-Http-Method-Override", "X-Http-Method", "X-Method-Override",
}

// requestToken returns the token that a request carries, in any provider's header;
// empty if there is none.
func requestToken(r *http.Request) string {
	for _, header := range []string{"X-Api-Key", "X-Goog-Api-Key", "Authorization"} {
		value := strings.TrimPrefix(r.Header.Get(header), "Bearer ")
		if strings.HasPrefix(value, tokenPrefix) {
			return value
		}
	}
	return ""
}
