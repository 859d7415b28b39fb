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

// api is what the gateway knows about a provider's API.
type api struct {
	base      string   // where it is, unless baseVar says so
	baseVar   string   // by which a CLI is told
	prefix    string   // path of the base, which CLIs expect in it
	keys      []key    // the first that is set counts
	endpoints []string // patterns of path.Match, below the prefix; all are POST
	count     func(data []byte, c *responseUsage)
}

// key is a variable by which a CLI gets its key, and how the API takes that.
type key struct {
	variable string
	header   string
	scheme   string // before the key
	beta     string // a value of Anthropic-Beta without which the API refuses this kind of key
}

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

// endpoint returns the path below the API's base that a request is for; false if it
// is none that the gateway forwards.
func (a *api) endpoint(r *http.Request) (string, bool) {
	rest, ok := strings.CutPrefix(r.URL.Path, a.prefix)
	// What needs cleaning or decoding could be read in one way here and in another there.
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

// secrets are headers that never pass from an agent to a model: the key is ours to give.
var strippedHeaders = []string{
	"Authorization", "X-Api-Key", "X-Goog-Api-Key", "Api-Key", "Cookie", "Proxy-Authorization",
	"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-Ip",
}

// requestToken returns what a request identifies its call by.
func requestToken(r *http.Request) string {
	for _, header := range []string{"X-Api-Key", "X-Goog-Api-Key", "Authorization"} {
		value := strings.TrimPrefix(r.Header.Get(header), "Bearer ")
		if strings.HasPrefix(value, tokenPrefix) {
			return value
		}
	}
	return ""
}
