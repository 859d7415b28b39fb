package gateway

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// ways has requests by which an agent whose network is the model would get out, or get
// what its role does not have, by provider and endpoint.
var ways = []struct {
	provider   Provider
	path, kind string
	bodies     []string
}{
	{Anthropic, "/v1/messages", "Anthropic's tools, servers and files", []string{
		`{"mcp_servers":[{"type":"url","url":"https://evil.example"}]}`,
		`{"tools":[{"type":"web_search_20250305","name":"web_search"}]}`,
		`{"tools":[{"name":"a","input_schema":{}},{"type":"web_fetch_20250910","name":"web_fetch"}]}`,
		`{"tools":[{"type":"code_execution_20250825","name":"code_execution"}]}`,
		`{"tools":[{"type":"mcp_toolset","mcp_server_name":"x"}]}`,
		`{"tools":[{"type":"tool_of_tomorrow","name":"x"}]}`, `{"tools":[{"type":["custom"]}]}`, `{"tools":{"type":"web_search_20250305"}}`, `{"tools":[1]}`,
		`{"container":{"skills":[{"type":"anthropic","skill_id":"x"}]}}`, `{"field_of_tomorrow":1}`,
		`{"messages":[{"role":"user","content":[{"type":"image","source":{"type":"url","url":"https://evil.example/?secret"}}]}]}`,
		`{"messages":[{"role":"user","content":[{"type":"document","source":{"type":"url","url":"https://evil.example"}}]}]}`,
		`{"messages":[{"role":"user","content":[{"type":"document","source":{"type":"file","file_id":"f"}}]}]}`,
		`{"messages":[{"role":"user","content":[{"type":"image"}]}]}`,
		`{"messages":[{"role":"user","content":[{"type":"container_upload","file_id":"f"}]}]}`,
		`{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"image","source":{"type":"url","url":"http://e"}}]}]}]}`,
		`{"messages":[{"role":"user","content":[{"type":"document","source":{"type":"content",` +
			`"content":[{"type":"image","source":{"type":"url","url":"http://e"}}]}}]}]}`,
		`{"system":[{"type":"document","source":{"type":"url","url":"http://e"}}]}`,
		`{"tools":[],"tools":[{"type":"web_search_20250305"}]}`, `{"tools":[{"type":"web_search_20250305"}],"tools":[]}`,
		`{"tools":[{"type":"custom","type":"web_search_20250305"}]}`, `{"t\u006fols":[{"type":"web_\u0073earch_20250305"}]}`,
		`{} {"mcp_servers":[]}`, `[{"mcp_servers":[]}]`, `{"model":`, ``, "\xff", "{\"model\":\"\xff\"}", "\ufeff{}", strings.Repeat(`{"system":[`, 600),
	}},
	{Anthropic, "/v1/messages/count_tokens", "the same where tokens are counted", []string{`{"mcp_servers":[]}`, `{"tools":[{"type":"web_fetch_20250910"}]}`}},
	{OpenAI, "/responses", "OpenAI's tools, files and what it stored", []string{
		`{"tools":[{"type":"web_search"}]}`, `{"tools":[{"type":"web_search_preview"}]}`, `{"tools":[{"type":"file_search","vector_store_ids":["v"]}]}`,
		`{"tools":[{"type":"mcp","server_url":"https://evil.example"}]}`, `{"tools":[{"type":"code_interpreter","container":{"type":"auto"}}]}`,
		`{"tools":[{"type":"image_generation"}]}`, `{"tools":[{"type":"shell","environment":{"type":"container_auto"}}]}`, `{"tools":[{}]}`,
		`{"tools":[{"type":"namespace","name":"n","tools":[{"type":"mcp","server_url":"https://evil.example"}]}]}`,
		`{"previous_response_id":"r"}`, `{"conversation":"c"}`, `{"prompt":{"id":"p"}}`, `{"background":true}`,
		`{"input":[{"role":"user","content":[{"type":"input_image","image_url":"https://evil.example"}]}]}`,
		`{"input":[{"role":"user","content":[{"type":"input_image","file_id":"f"}]}]}`,
		`{"input":[{"type":"message","role":"user","content":[{"type":"input_file","file_url":"https://evil.example"}]}]}`,
		`{"input":[{"type":"function_call_output","call_id":"c","output":[{"type":"input_file","file_id":"f"}]}]}`,
		`{"input":[{"type":"item_reference","id":"i"}]}`, `{"input":[{"type":"mcp_approval_response","approve":true}]}`,
	}},
	{OpenAI, "/chat/completions", "the same in completions", []string{
		`{"web_search_options":{}}`, `{"tools":[{"type":"web_search"}]}`, `{"messages":[{"role":"user","content":[{"type":"file","file":{"file_id":"f"}}]}]}`,
		`{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://evil.example"}}]}]}`, `{"input":"of another endpoint"}`,
	}},
	{Gemini, "/v1beta/models/m:generateContent", "Gemini's tools, files and caches", []string{
		`{"tools":[{"googleSearch":{}}]}`, `{"tools":[{"google_search":{}}]}`, `{"tools":[{"urlContext":{}}]}`, `{"tools":[{"codeExecution":{}}]}`,
		`{"tools":[{"functionDeclarations":[],"googleSearchRetrieval":{}}]}`, `{"tools":[{"fileSearch":{}}]}`, `{"tools":[{"computerUse":{}}]}`,
		`{"tools":[{"mcpServers":[]}]}`, `{"tools":{"googleSearch":{}}}`, `{"tools":[],"Tools":[{"googleSearch":{}}]}`, `{"cachedContent":"cachedContents/x"}`,
		`{"contents":[{"parts":[{"fileData":{"fileUri":"https://evil.example"}}]}]}`, `{"contents":[{"parts":[{"file_data":{"file_uri":"https://e"}}]}]}`,
		`{"contents":{"parts":[]}}`, `{"toolConfig":{"retrievalConfig":{}}}`, `{"systemInstruction":{"parts":[{"fileData":{}}]}}`,
		`{"contents":[{"parts":[{"functionResponse":{"name":"f","parts":[{"fileData":{"fileUri":"https://e"}}]}}]}]}`,
		`{"system_instruction":{"parts":[]},"systemInstruction":{"parts":[{"fileData":{}}]}}`,
	}},
	{Gemini, "/v1beta/models/m:countTokens", "the same where tokens are counted", []string{`{"generateContentRequest":{"tools":[{"googleSearch":{}}]}}`}},
}

// TestNoWayOutThroughTheProvider sends what an agent that reaches its model alone could have
// the provider do for it: nothing of that is forwarded, and with a network of its own all
// of it that is JSON is.
func TestNoWayOutThroughTheProvider(t *testing.T) {
	for _, w := range ways {
		t.Run(w.kind, func(t *testing.T) {
			m := newModel(t, plain200)
			g := start(t, Config{}, everyKey(m.URL)...)
			alone, full := open(t, g, w.provider, Limit{ModelOnly: true}), open(t, g, w.provider, Limit{})
			for _, body := range w.bodies {
				status, said := ask(t, alone, w.path, body, "Content-Type: application/json")
				if status != http.StatusForbidden || len(m.got) > 0 || !strings.Contains(said, "policy.network") {
					t.Fatalf("status %d, %d forwarded, for %.100q: %.200s", status, len(m.got), body, said)
				}
				if status, said := ask(t, full, w.path, body, "Content-Type: application/json"); status != http.StatusOK {
					t.Errorf("with a network: status %d for %.100q: %s", status, body, said)
				}
				m.next(t)
			}
		})
	}
}

// TestPackedRequestsDoNotPass sends what the gateway would not read as the provider does.
func TestPackedRequestsDoNotPass(t *testing.T) {
	m := newModel(t, plain200)
	g := start(t, Config{}, everyKey(m.URL)...)
	alone := open(t, g, Anthropic, Limit{ModelOnly: true})
	for _, header := range [][]string{
		{"Content-Type: application/json", "Content-Encoding: gzip"},
		{"Content-Type: application/json", "Content-Encoding: deflate"},
		{"Content-Type: application/json", "Content-Encoding: br"},
		{"Content-Type: application/json", "Content-Encoding: identity, gzip"},
		{"Content-Type: multipart/form-data; boundary=x"},
		{"Content-Type: application/x-www-form-urlencoded"},
		{"Content-Type: "},
		{"Content-Type: ;"},
	} {
		if status, said := ask(t, alone, "/v1/messages", `{"model":"m"}`, header...); status != http.StatusForbidden || len(m.got) > 0 {
			t.Errorf("status %d for %q: %s", status, header, said)
		}
	}
	// Neither an upgrade to another protocol, nor another endpoint.
	for _, path := range []string{"/v1/messages/batches", "/v1/files", "/v1/skills", "/v1/models"} {
		if status, _ := ask(t, alone, path, `{}`, "Connection: Upgrade", "Upgrade: websocket"); status != http.StatusNotFound || len(m.got) > 0 {
			t.Errorf("status %d for %s", status, path)
		}
	}
	resp, err := send(t.Context(), t, alone, http.MethodGet, "/v1/messages", "", "Connection: Upgrade", "Upgrade: websocket")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusNotFound || len(m.got) > 0 {
		t.Errorf("status %d for an upgrade", resp.StatusCode)
	}
}

// TestWhatAgentsSendPasses has what the request itself holds, and tools that the agent runs.
func TestWhatAgentsSendPasses(t *testing.T) {
	for path, bodies := range map[string][]string{
		"/v1/messages": {
			`{"model":"m","max_tokens":1,"stream":true,"thinking":{"type":"adaptive"},
				"tools":[{"name":"a","input_schema":{"properties":{"mcp_servers":{},"type":{"type":"url"}}}},
				{"type":"custom","name":"b"},{"type":"bash_20250124","name":"bash"},{"type":"text_editor_20250728","name":"e"}],
				"system":[{"type":"text","text":"mcp_servers","cache_control":{"type":"ephemeral"}}],
				"messages":[{"role":"user","content":"\"type\":\"url\""},{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"},
				{"type":"tool_use","id":"i","name":"a","input":{"source":{"type":"url"},"content":[{"type":"web_search"}]}}]},
				{"role":"user","content":[{"type":"tool_result","tool_use_id":"i","content":[{"type":"text","text":"x"},
				{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA"}}]},{"type":"document","source":{"type":"text","data":"x"}}]}]}`,
		},
		"/responses": {
			`{"model":"m","input":"text","tools":[{"type":"function","name":"a","parameters":{}},{"type":"custom","name":"b"},{"type":"local_shell"},
				{"type":"namespace","name":"n","tools":[{"type":"function","name":"c"}]}]}`,
			`{"model":"m","store":false,"include":["reasoning.encrypted_content"],"input":[{"role":"user","content":[{"type":"input_text","text":"x"},
				{"type":"input_image","image_url":"data:image/png;base64,AA"}]},{"type":"reasoning","summary":[],"content":null},
				{"type":"function_call","name":"a","arguments":"{}","call_id":"c"},{"type":"function_call_output","call_id":"c","output":"x"}]}`,
		},
		"/chat/completions": {`{"model":"m","tools":[{"type":"function","function":{"name":"a"}}],"messages":[{"role":"user","content":"x"},
			{"role":"user","content":[{"type":"text","text":"x"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AA"}}]}]}`},
		"/v1beta/models/m:streamGenerateContent?alt=sse": {`{"contents":[{"role":"user","parts":[{"text":"x"}]},{"role":"model","parts":[
			{"functionCall":{"name":"f","args":{"file_data":1,"fileData":2}},"thoughtSignature":"s"}]},
				{"parts":[{"functionResponse":{"name":"f","response":{"a_b":1,"aB":2}}}]}],
			"systemInstruction":{"parts":[{"text":"x"}]},"tools":[{"functionDeclarations":[{"name":"googleSearch"}]}],"generationConfig":{"temperature":1}}`},
	} {
		m := newModel(t, plain200)
		g := start(t, Config{}, everyKey(m.URL)...)
		provider := map[byte]Provider{'m': Anthropic, 'r': OpenAI, 'c': OpenAI, 'b': Gemini}[strings.TrimPrefix(strings.TrimPrefix(path, "/v1/"), "/")[0]]
		if strings.HasPrefix(path, "/v1beta") {
			provider = Gemini
		}
		grant := open(t, g, provider, Limit{ModelOnly: true})
		for _, body := range bodies {
			status, said := ask(t, grant, path, body, "Content-Type: application/json; charset=utf-8",
				"Anthropic-Beta: claude-code-20250219, mcp-client-2025-11-20,Web-Fetch-2025-09-10,interleaved-thinking-2025-05-14", "X-Http-Method-Override: DELETE")
			if status != http.StatusOK {
				t.Fatalf("%s: status %d: %s", path, status, said)
			}
			r := m.next(t)
			if got, _ := io.ReadAll(r.Body); string(got) != body {
				t.Errorf("%s: the model gets %s", path, got)
			}
			if got := r.Header.Get("Anthropic-Beta"); got != "claude-code-20250219,interleaved-thinking-2025-05-14" || r.Header.Get("X-Http-Method-Override") != "" {
				t.Errorf("betas %q, headers %v", got, r.Header)
			}
		}
	}
}

// plain200 answers whatever it is asked.
func plain200(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{}`) }

// everyKey has an account for each provider at one address.
func everyKey(url string) []string {
	var out []string
	for _, name := range []string{"ANTHROPIC_BASE_URL", "OPENAI_BASE_URL", "GOOGLE_GEMINI_BASE_URL"} {
		out = append(out, name+"="+url)
	}
	return append(out, "ANTHROPIC_API_KEY=k", "OPENAI_API_KEY=k", "GEMINI_API_KEY=k")
}

// ask posts a body with these headers.
func ask(t *testing.T, grant *Grant, path, body string, header ...string) (int, string) {
	t.Helper()
	resp, err := send(t.Context(), t, grant, http.MethodPost, path, body, header...)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	said, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(said)
}
