package imports

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// decoders are the packages that read bytes of outsiders, and their fuzz targets.
var decoders = map[string][]string{
	"agent":                           {"FuzzAnswers"},
	"agent/claude":                    {"FuzzTranscript"},
	"agent/cli":                       {"FuzzObject"},
	"agent/codex":                     {"FuzzOutput"},
	"agent/exec":                      {"FuzzOutput"},
	"agent/gateway":                   {"FuzzScreen", "FuzzMeter"},
	"agent/gemini":                    {"FuzzOutput"},
	"agent/opencode":                  {"FuzzOutput"},
	"agent/prompt":                    {"FuzzFence"},
	"agent/remote":                    {"FuzzUnpack", "FuzzFrame"},
	"bus/codec":                       {"FuzzRoundTrip", "FuzzUnmarshal"},
	"bus/internal/wire":               {"FuzzCommand", "FuzzSummary"},
	"bus/journal/chain":               {"FuzzRef", "FuzzCheckpoint"},
	"bus/requests":                    {"FuzzSubmission"},
	"bus/signed":                      {"FuzzProof", "FuzzTogether"},
	"bus/subjects":                    {"FuzzParseSubjects", "FuzzTimerSubjects", "FuzzOutside"},
	"cmd/pfl-forge/internal/console":  {"FuzzDecode"},
	"cmd/pfl-forge/internal/goalfile": {"FuzzParse"},
	"config":                          {"FuzzParse"},
	"forgedir/drafts":                 {"FuzzDraft"},
	"forgedir/projection":             {"FuzzIntent"},
	"git":                             {"FuzzNames"},
	"internal/slug":                   {"FuzzNamed"},
	"internal/strictyaml":             {"FuzzDecode", "FuzzRoundTrip"},
	"internal/term":                   {"FuzzSanitize"},
	"internal/transcript":             {"FuzzLines"},
	"jobs/evidence":                   {"FuzzResolve"},
	"jobs/guard":                      {"FuzzCommandFiles"},
	"internal/identity":               {"FuzzRules"},
	"notify":                          {"FuzzParse"},
	"services/gateway/forges/gitea":   {"FuzzHint"},
	"services/gateway/forges/github":  {"FuzzHint"},
	"services/gateway/hooks":          {"FuzzHooks"},
	"services/gateway/intake":         {"FuzzCommands", "FuzzPlain", "FuzzRules"},
	"services/gateway/tokens":         {"FuzzParse"},
	"proof":                           {"FuzzCertificates", "FuzzProofs", "FuzzSigners", "FuzzStatements"},
}

// unfuzzed are packages with functions that look like decoders, and why they need no target.
var unfuzzed = map[string]string{
	".":                           "commands as JSON are read back from what this program wrote; bus/codec reads those of outsiders",
	"agent/agenttest":             "reads what tests send",
	"agent/agenttest/injection":   "reads what tests send",
	"bus/work":                    "is bus/internal/wire",
	"services/runner/flow/outbox": "snapshots are read back from what this program wrote",
}

// decoder finds functions that make something of bytes.
var decoder = regexp.MustCompile(`(?m)^func (?:\([^)]*\) )?(?:Parse|Decode|Unmarshal)\w*(?:\[[^]]*\])?\((?:\w+, )?\w+ \[\]byte`)

// target finds fuzz targets.
var target = regexp.MustCompile(`(?m)^func (Fuzz\w+)\(f \*testing\.F\)`)

// TestDecodersAreFuzzed checks that each package that reads bytes of outsiders has its fuzz targets: what looks
// like a decoder has one or a reason, so that none is forgotten.
func TestDecodersAreFuzzed(t *testing.T) {
	root := os.DirFS(repository(t))
	files, err := scan(root)
	if err != nil {
		t.Fatal(err)
	}
	found, decodes := map[string][]string{}, map[string]bool{}
	for _, f := range files {
		source, err := fs.ReadFile(root, f.path)
		if err != nil {
			t.Fatal(err)
		}
		dir := path.Dir(f.path)
		if f.test {
			for _, m := range target.FindAllSubmatch(source, -1) {
				found[dir] = append(found[dir], string(m[1]))
			}
		} else if !f.generated && decoder.Match(source) {
			decodes[dir] = true
		}
	}
	for dir, names := range decoders {
		for _, name := range names {
			if !slices.Contains(found[dir], name) {
				t.Errorf("%s has no fuzz target %s", dir, name)
			}
		}
	}
	for dir := range decodes {
		if len(found[dir]) == 0 && unfuzzed[dir] == "" {
			t.Errorf("%s reads bytes and has no fuzz target; CONTRIBUTING.md says how", dir)
		}
	}
	for dir := range unfuzzed {
		if !decodes[dir] || len(found[dir]) > 0 {
			t.Errorf("%s needs no exception", dir)
		}
	}
	if len(found) < len(decoders) || len(decodes) < 10 || strings.Join(found["git"], "") != "FuzzNames" {
		t.Errorf("the search finds %v and %v only", found, decodes)
	}
}
