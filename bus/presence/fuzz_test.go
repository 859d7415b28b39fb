package presence

import (
	"strings"
	"testing"
	"unicode"

	forge "github.com/pfl-forge/pfl-forge"
)

// FuzzAnswer: whoever may say that it runs says no more than a replica can: ids
// are ids, lists are short, and no text steers a terminal.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte(`{"name":"pfl-forge-reviewer","metadata":{"replica":"reviewer-0","projects":"shop,bank","version":"v1","executor":"pods"}}`))
	f.Add([]byte(`{"name":"pfl-forge-runner","metadata":{"replica":"r","rules":"4","version":"\u001b[31m","started":"2026-01-02T03:04:05Z"}}`))
	f.Add([]byte(`{"name":"pfl-forge-reviewer","metadata":{"replica":"r","unwell":"disk\u001b[2J full","unwell_since":"2026-01-02T03:04:05Z"}}`))
	f.Add([]byte(`{"stream":"FORGE_INTENTS","seq":7}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, ok := read(data)
		if !ok {
			return
		}
		if _, err := forge.ParseReplicaID(string(r.ID)); err != nil || !isService(r.Service) || len(r.Projects) > maxProjects || len(r.Agents) > maxAgents {
			t.Errorf("%q is %+v, %v", data, r, err)
		}
		texts := []string{r.Version, r.Unwell, string(r.Group), string(r.Executor.Name), r.Executor.Reason, r.Executor.RuntimeClass}
		for _, text := range append(texts, r.Agents...) {
			if strings.ContainsFunc(text, unicode.IsControl) {
				t.Errorf("%q says %q", data, text)
			}
		}
	})
}
